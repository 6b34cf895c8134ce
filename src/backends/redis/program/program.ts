/** Builds the programs that Redis runs from the Lua files of the rooms. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

export type Program = { readonly source: string; readonly sha: string };

/**
 * The acts by name, and the programs that run them. Redis executes the definition of each function in a script on every
 * call, so a call uses the smallest program that contains its acts.
 */
export type Programs = {
  readonly classOf: ReadonlyMap<string, ActClass>;
  /** What each act states about the rows that it reads; see LuaFile. */
  readonly rowsOf: ReadonlyMap<string, LuaFile['rows']>;
  /**
   * Returns the program for a call of these acts, which must be of one class. For a single act, the program contains
   * only this act. For several acts, it contains all grouped acts if each of them is grouped (`-- grouped: yes`),
   * otherwise all acts.
   */
  programFor(names: readonly string[]): Program;
};

const OWN = new URL('../', import.meta.url);
const FLAGS: Readonly<Record<ActClass, string>> = { grow: '#!lua', allow_oom: '#!lua flags=allow-oom' };

/**
 * Reads the acts of the rooms in `root`. The act `<verb>` in `<room>.lua` has the name `<room>-<verb>`. Libraries
 * (`lib-*`) are read from `root` and from this backend's own rooms. Throws if a header is invalid.
 */
export function loadPrograms(root: URL = OWN): Programs {
  const files = root.href === OWN.href ? readRooms(OWN) : [...readRooms(OWN).filter(isLibrary), ...readRooms(root)];
  const libraries = new Map(files.filter(isLibrary).map((file) => [file.name, file]));
  const acts = new Map(files.filter((file) => !isLibrary(file)).map((file) => [file.name, file]));
  const classOf = new Map([...acts].map(([name, { actClass }]) => [name, actClass ?? fail(`${name} has no class`)]));
  const grouped = [...acts.values()].filter((act) => act.grouped);
  const known = new Map<string, Program>();
  const build = (key: string, wanted: readonly LuaFile[], actClass: ActClass): Program => {
    const found = known.get(key) ?? compile(FLAGS[actClass], [...neededBy(wanted, libraries), ...wanted]);
    known.set(key, found);
    return found;
  };
  return {
    classOf,
    rowsOf: new Map([...acts].map(([name, { rows }]) => [name, rows])),
    programFor(names) {
      const [first = ''] = names;
      const actClass = classOf.get(first) ?? fail(`There is no act "${first}".`);
      const act = acts.get(first);
      if (act && names.every((name) => name === first)) return build(first, [act], actClass);
      if (names.every((name) => acts.get(name)?.grouped)) return build(`${actClass} grouped`, grouped, actClass);
      return build(`${actClass} all`, [...acts.values()], actClass);
    },
  };
}

/**
 * The programs of transactions (transaction.lua). `usual`: for a call whose streams are open. `opening`: can open
 * streams. `full`, `fullOpening`: the same two for a Redis without memory, for calls that free memory.
 */
export function transactionPrograms(): Readonly<Record<'usual' | 'opening' | 'full' | 'fullOpening', Program>> {
  const libraries = new Map(readRooms().map((file) => [file.name, file]));
  const wanted = libraries.get('lib-history-open') ?? fail('There is no library that opens streams.');
  const opening = [...neededBy([wanted], libraries), wanted].map(({ text }) => text);
  const usual = ['local lib', frame('transaction')];
  const full = [frame('prelude'), ...opening, frame('transaction')];
  return {
    usual: programOf(FLAGS.grow, usual),
    opening: programOf(FLAGS.grow, full),
    full: programOf(FLAGS.allow_oom, usual),
    fullOpening: programOf(FLAGS.allow_oom, full),
  };
}

/** Returns the libraries that these files need, directly or through other libraries, sorted by name. */
function neededBy(files: readonly LuaFile[], libraries: ReadonlyMap<string, LuaFile>): readonly LuaFile[] {
  const found = new Map<string, LuaFile>();
  const add = (name: string): void => {
    if (found.has(name)) return;
    const library = libraries.get(name) ?? fail(`There is no Lua library "${name}".`);
    found.set(name, library);
    library.needs.forEach(add);
  };
  for (const { needs } of files) needs.forEach(add);
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function compile(flags: string, files: readonly LuaFile[]): Program {
  return programOf(flags, [frame('prelude'), ...files.map(({ text }) => text), frame('driver')]);
}

function programOf(flags: string, texts: readonly string[]): Program {
  const source = `${flags}\n${texts.join('\n')}`;
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}

/** Returns the text of a Lua file without sections, which is included in programs as a whole. */
function frame(name: string): string {
  return readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8');
}

/** Reads the acts and libraries of the rooms in a folder. Each of its Lua files is a room. */
export function readRooms(root: URL = OWN): readonly LuaFile[] {
  const files = readdirSync(root).filter((file) => file.endsWith('.lua'));
  return files.sort().flatMap((file) => readRoomFile(new URL(file, root), file.slice(0, -'.lua'.length)));
}

function isLibrary({ name }: LuaFile): boolean {
  return name.startsWith('lib-');
}

function fail(message: string): never {
  throw new Error(message);
}

/**
 * What Redis does with an act when it has no memory left. `grow`: Redis refuses the whole call, because the act may
 * need memory. `allow_oom`: Redis runs the act, because the act reads, ends or frees something.
 */
type ActClass = 'grow' | 'allow_oom';

/** An act or a library: its Lua text, and the values of its headers. */
export type LuaFile = {
  readonly name: string;
  readonly text: string;
  /** `-- needs: lib-a, lib-b`: libraries whose functions this file calls. */
  readonly needs: readonly string[];
  /** `-- class: grow` or `-- class: allow_oom`; null for a library. */
  readonly actClass: ActClass | null;
  /** `-- grouped: yes`: a frequent act, which may share a small program with the other acts that have this header. */
  readonly grouped: boolean;
  /**
   * `-- rows: 3`: every three arguments, the act takes as long as reading one record. `-- rows: all`: the act may take
   * as long as a whole call. Null: the duration does not depend on the arguments. See MAX_ROWS in program-calls.ts.
   */
  readonly rows: number | 'all' | null;
};

/**
 * Reads the acts and libraries in the file of a room. Each begins with a line such as `-- act: open` or `-- library:
 * lib-sites`. The act `open` of the room `sites` has the name `sites-open`. Throws if a header is invalid.
 */
function readRoomFile(file: URL, room: string): readonly LuaFile[] {
  const [, ...parts] = readFileSync(file, 'utf8').split(/^-- (act|library): (.+)\n/m);
  return parts.flatMap((kind, i) => {
    const name = parts[i + 1] ?? '';
    return i % 3 === 0 ? [luaOf(kind === 'act' ? `${room}-${name}` : name, parts[i + 2] ?? '')] : [];
  });
}

function luaOf(name: string, text: string): LuaFile {
  const stated = (header: string): string | null => new RegExp(`^-- ${header}: (.+)$`, 'm').exec(text)?.[1] ?? null;
  const actClass = stated('class');
  if (actClass !== null && actClass !== 'grow' && actClass !== 'allow_oom')
    throw new Error(`${name}.lua: "${actClass}" is not a class of acts`);
  return {
    name,
    text,
    needs: stated('needs')?.split(', ') ?? [],
    actClass,
    grouped: stated('grouped') === 'yes',
    rows: rowsOf(name, stated('rows')),
  };
}

function rowsOf(name: string, stated: string | null): LuaFile['rows'] {
  if (stated === null || stated === 'all') return stated;
  if (!/^[1-9]\d?$/.test(stated)) throw new Error(`${name}.lua: "${stated}" is not how many arguments are a row`);
  return Number(stated);
}
