/** Reads a Lua file and what its header states. */
import { readFileSync } from 'node:fs';

/**
 * What Redis does with an act when it has no memory left. `grow`: it refuses the whole call, because the act may need
 * memory. `allow_oom`: it runs the act, because the act reads, ends or frees something.
 */
export type ActClass = 'grow' | 'allow_oom';

/** An act or a library: its Lua text, and what the header of the text states. */
export type LuaFile = {
  readonly name: string;
  readonly text: string;
  /** `-- needs: lib-a, lib-b`: libraries whose functions this file calls. */
  readonly needs: readonly string[];
  /** `-- class: grow` or `-- class: allow_oom`; null for a library. */
  readonly actClass: ActClass | null;
  /** `-- grouped: yes`: the act may leave its writes to the end of the call, together with those of other acts. */
  readonly grouped: boolean;
  /**
   * `-- rows: 3`: for each three arguments, the act takes as long as reading one record. `-- rows: all`: the act may
   * take as long as a whole call. Null: its work does not depend on its arguments. See MAX_ROWS of store.ts.
   */
  readonly rows: number | 'all' | null;
};

/** Reads a file without sections, which is a part of every program. Throws if its header is not understood. */
export function readLuaFile(file: URL, name: string): LuaFile {
  return luaOf(name, readFileSync(file, 'utf8'));
}

/**
 * Reads the file of a room, in which a line `-- act: open` or `-- library: lib-sites` begins each act and library. The
 * act `open` of the room `sites` has the name `sites-open`. Throws if a header is not understood.
 */
export function readRoomFile(file: URL, room: string): readonly LuaFile[] {
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
