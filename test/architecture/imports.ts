/** Reads the sources and their imports, for the tests of the architecture. */
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** One file of src and what it imports: `own` as paths below src, `foreign` as written. */
export type SourceFile = {
  readonly path: string;
  readonly text: string;
  readonly own: readonly string[];
  readonly foreign: readonly string[];
};

const ROOT = join(dirname(import.meta.dirname), '..');
const IMPORT =
  /^\s*(?:import|export)\b[^'"`;]*?from\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm;

/**
 * Returns the paths, with slashes, of all files below src or below another folder of the project. Leaves out
 * node_modules and caches.
 */
export function listSource(folder = 'src'): readonly string[] {
  const root = join(ROOT, folder);
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(root.length + 1)
        .replaceAll('\\', '/'),
    )
    .filter((path) => !/(^|\/)(node_modules|\.cache)\//.test(path))
    .sort();
}

export function readSource(folder = 'src'): readonly SourceFile[] {
  return listSource(folder)
    .filter((path) => /\.(ts|tsx)$/.test(path))
    .map((path) => ({ path, ...importsOf(path, readFileSync(join(ROOT, folder, path), 'utf8')) }));
}

/**
 * Returns what a file imports and re-exports, including `import()` with a literal. Comments are removed first, and the
 * query by which the console's build makes a file a worker (`?worker&url`).
 */
export function importsOf(path: string, text: string): Omit<SourceFile, 'path'> {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|[^:])\/\/.*$/gm, '$1');
  const names = [...code.matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
  const own = names.filter((name) => name.startsWith('.'));
  return {
    text,
    own: own.map((name) => posix.normalize(posix.join(posix.dirname(path), name.replace(/\?.*$/, '')))),
    foreign: names.filter((name) => !name.startsWith('.')),
  };
}

/** Returns the files of one import cycle, or null when there is none. */
export function findCycle(files: readonly SourceFile[]): readonly string[] | null {
  const edges = new Map(files.map(({ path, own }) => [path, own]));
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): readonly string[] | null => {
    const at = trail.indexOf(path);
    if (at >= 0) return [...trail.slice(at), path];
    if (done.has(path)) return null;
    trail.push(path);
    for (const next of edges.get(path) ?? []) {
      const cycle = visit(next);
      if (cycle) return cycle;
    }
    trail.pop();
    done.add(path);
    return null;
  };
  for (const { path } of files) {
    const cycle = visit(path);
    if (cycle) return cycle;
  }
  return null;
}
