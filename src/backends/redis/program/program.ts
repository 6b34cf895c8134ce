import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/**
 * `grow`: the act may need memory that Redis has not: a full Redis refuses it whole. `settle`: it ends or frees something, and runs even
 * then.
 */
export type ActClass = 'grow' | 'settle';

export type Program = { readonly source: string; readonly sha: string };

/**
 * The acts by name, and the one program of each class: both hold every act, and differ in what Redis lets them do when it is full. `small`:
 * the same with the acts of `grouped` alone, for calls of no others: a call pays for each function that its program defines.
 */
export type Programs = {
  readonly classOf: ReadonlyMap<string, ActClass>;
  readonly grouped: ReadonlySet<string>;
  readonly of: Readonly<Record<ActClass, Program>>;
  readonly small: Readonly<Record<ActClass, Program>>;
};

const FOLDER = new URL('./lua/', import.meta.url);
/** What acts in `grouped` need of what the rooms share. */
const SMALL = /^lib-(commands|dedup|history|history-reads|nodes|record|waiters)\.lua$/;
const FLAGS: Readonly<Record<ActClass, string>> = { grow: '#!lua', settle: '#!lua flags=allow-oom' };

/**
 * Puts the program together: prelude, what groups the writes of a call, what the rooms share (`lib-*.lua`), the acts (`<room>-<verb>.lua`, each with a line
 * `-- class: grow` or `-- class: settle`), and the frame that runs them. All but the libraries and acts are always ours.
 */
export function loadPrograms(folder: URL = FOLDER): Programs {
  const own = (name: string): URL => new URL(name, name.includes('-') ? folder : FOLDER);
  const read = (name: string): string => readFileSync(own(name), 'utf8');
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.lua'))
    .sort();
  const libraries = names.filter((name) => name.startsWith('lib-'));
  const acts = names.filter((name) => name.includes('-') && !name.startsWith('lib-'));
  const classOf = new Map<string, ActClass>();
  for (const name of acts) classOf.set(nameOf(name), classIn(name, read(name)));
  const grouped = acts.filter((name) => read(name).includes(`grouped['${nameOf(name)}'] = true`));
  const programs = (parts: readonly string[]): Programs['of'] => {
    const body = ['prelude.lua', 'group.lua', ...parts, 'driver.lua'].map(read).join('\n');
    return { grow: program(FLAGS.grow, body), settle: program(FLAGS.settle, body) };
  };
  return {
    classOf,
    grouped: new Set(grouped.map(nameOf)),
    of: programs([...libraries, ...acts]),
    small: programs([...libraries.filter((name) => SMALL.test(name)), ...grouped]),
  };
}

function nameOf(file: string): string {
  return file.replace(/\.lua$/, '');
}

function classIn(name: string, text: string): ActClass {
  const found = /^-- class: (grow|settle)$/m.exec(text)?.[1];
  if (found !== 'grow' && found !== 'settle') throw new Error(`${name} names no class`);
  return found;
}

function program(flags: string, body: string): Program {
  const source = `${flags}\n${body}`;
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
