/** Finds files of more than one subject, and names that occur twice. */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { listSource, readSource, type SourceFile } from './imports.ts';

/** The most sections of a file: comments that stand alone above the declarations of a subject. */
const SECTIONS_MAX = 2;

/** The names that two files of one ring have, as `<ring> <name>`, each with its reason. */
export const NAMES_TWICE: Readonly<Record<string, string>> = {
  'backends/redis store': 'One of the parts of a room that Redis still has in several files.',
};

/**
 * Returns the helper files beside src: those in the kit folders of the tests, and the programs in faults, bench and
 * scripts. Paths are below the project.
 */
export function listHelpers(): { readonly helpers: ReadonlySet<string>; readonly files: readonly SourceFile[] } {
  const files = ['test', 'faults', 'bench', 'scripts'].flatMap((folder) =>
    readSource(folder).map((file) => ({
      ...file,
      path: `${folder}/${file.path}`,
      own: file.own.map((to) => posix.normalize(`${folder}/${to}`)),
    })),
  );
  const paths = files.map(({ path }) => path).filter((path) => !path.startsWith('test/') || path.includes('/kit/'));
  return { helpers: new Set(paths), files };
}

/** Returns what shows that a file has more than one subject; undefined if nothing does. */
export function suitcaseFault(text: string): string | undefined {
  if (/\balso\b/i.test(headOf(text))) return 'its head says "also"';
  const sections = sectionsOf(text);
  return sections.length > SECTIONS_MAX ? `it has ${sections.length} sections` : undefined;
}

/** Returns `<path>: <fault>` for each file of more than one subject. */
export function suitcases(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap(({ path, text }) => {
    const fault = suitcaseFault(text);
    return fault === undefined ? [] : [`${path}: ${fault}`];
  });
}

/** Returns the first comment of a file. */
function headOf(text: string): string {
  return /^(?:#!.*\n)?\s*(\/\*\*[^]*?\*\/|(?:\/\/.*\n)+)/.exec(text)?.[1] ?? '';
}

/** Returns the comments that stand alone between two blank lines, each of which begins a section. */
function sectionsOf(text: string): readonly string[] {
  return [...text.matchAll(/(?<=\n\n)(?:\/\/.*\n)+(?=\n)/g)].map(([comment]) => comment);
}

/** Returns `<ring> <name>` for each file name, without its extension, that occurs twice in a ring. */
export function namesTwice(files: readonly SourceFile[]): readonly string[] {
  const names = files
    .filter(({ path }) => posix.basename(path) !== 'index.ts')
    .map(({ path }) => `${ringOf(path)} ${posix.basename(path).replace(/\.tsx?$/, '')}`);
  return [...Map.groupBy(names, (name) => name)].filter(([, all]) => all.length > 1).map(([name]) => name);
}

function ringOf(path: string): string {
  return /^((?:backends|graphql|clients|test|faults|bench|scripts)\/[a-z]+|[a-z]+)\//.exec(path)?.[1] ?? '';
}

/** Returns the length of each Lua file below src. */
export function luaLengths(): readonly { readonly path: string; readonly lines: number }[] {
  const src = join(import.meta.dirname, '..', '..', 'src');
  const paths = listSource().filter((path) => path.endsWith('.lua'));
  return paths.map((path) => ({ path, lines: linesOf(readFileSync(join(src, path), 'utf8')) }));
}

function linesOf(text: string): number {
  return text.trimEnd().split('\n').length;
}
