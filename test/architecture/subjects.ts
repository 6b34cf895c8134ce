/** Finds files that are no subject of their own: short files with one importer beside them, and names that occur twice. */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { listSource, readSource, type SourceFile } from './imports.ts';

/** A file with fewer lines belongs into its only importer, if that is in the same folder. */
const SHORT_LINES = 100;

const ROOM_IN_PARTS = 'One of the parts of a room that Redis still has in several files.';

/** The short files that stay on their own, each with its reason. */
export const SPLINTERS: Readonly<Record<string, string>> = {
  'console/pages/deduplication.tsx': 'another subject than the nodes, whose page shows it',
  'require-node.ts': 'Must run before any other import of index.ts.',
  'backends/redis/audit.ts': 'Implements a port of core.',
  'backends/memory/revocations.ts': 'Implements a port of core.',
  'graphql/schema/revocations.ts': 'One file a room.',
  'backends/owned/budget.ts': 'A rule of its own, which tests of owners use without the rest of its importer.',
  'backends/owned/connections.ts': 'Keeps what owners told within a bound; its importer passes calls on.',
  'core/commands/answers.ts': 'A subject of its own: what became of an answer, and nothing about the end of a command.',
  'mcp/list-changes.ts': 'Lives as long as an event stream; its importer serves single requests.',
  'mcp/message.ts': 'Bounds what arrives; its importer passes requests on to a package.',
};

/** The names that two files of one ring have, as `<ring> <name>`, each with its reason. */
export const NAMES_TWICE: Readonly<Record<string, string>> = {
  'backends/redis store': ROOM_IN_PARTS,
};

const GUARDS = 'A table of mutants, which a test reads through guards.ts.';

/** The short helper files beside src that stay on their own, each with its reason. */
export const HELPER_SPLINTERS: Readonly<Record<string, string>> = {
  'faults/mutants/guards-advertised.ts': GUARDS,
  'faults/mutants/guards-audit.ts': GUARDS,
  'faults/mutants/guards-json.ts': GUARDS,
  'faults/mutants/guards-places.ts': GUARDS,
  'faults/mutants/guards-redis-history.ts': GUARDS,
  'faults/mutants/guards-revocations.ts': GUARDS,
  'faults/neighbours/attacks/agents.ts': 'A list of attacks, as the files beside it.',
  'test/mcp/kit/host-rules.ts': 'The rules of others, which do not change with ours.',
  'test/mcp/kit/texts.ts': 'Judges tools without the code that marks their texts.',
  'faults/outages/judge/aimed.ts': 'Judges what kills hit; the files beside it judge what came of them.',
  'faults/outages/processes/memory-log.ts': 'An entry point, which node loads before the relay.',
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

/**
 * Returns the paths of short files that exactly one file imports, which is in the same folder. A kit folder counts as
 * part of the folder of its tests. A file that is only loaded when it is needed (`import()`), or as a worker, is an
 * entry point and not meant.
 */
export function splinters(files: readonly SourceFile[]): readonly string[] {
  const importers = Map.groupBy(
    files.flatMap(({ path, own, text }) => [...new Set(own)].map((to) => ({ to, path, text }))),
    ({ to }) => to,
  );
  return files
    .filter(({ text }) => linesOf(text) < SHORT_LINES)
    .map(({ path }) => path)
    .filter((path) => {
      const [only, ...others] = importers.get(path) ?? [];
      if (!only || others.length > 0 || folderOf(only.path) !== folderOf(path)) return false;
      const name = posix.basename(path).replaceAll('.', String.raw`\.`);
      return !new RegExp(String.raw`import\('\./${name}'\)|'\./${name}\?worker`).test(only.text);
    });
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

function folderOf(path: string): string {
  return posix.dirname(path).replace(/\/kit$/, '');
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
