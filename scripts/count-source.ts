/**
 * Prints the number and length of the hand-written source files in src and demo, and how they import each other: `node
 * scripts/count-source.ts [folder]`. The folder is a checkout, by default this one. To compare with an earlier state,
 * run it on a worktree of that state.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { importsOf, type SourceFile } from '../test/architecture/imports.ts';
import { namesTwice, suitcases } from '../test/architecture/subjects.ts';

const root = resolve(process.argv[2] ?? join(import.meta.dirname, '..'));
const COUNTED = /\.(ts|tsx|lua|css|graphql)$/;

const paths = ['src', 'demo']
  .filter((folder) => existsSync(join(root, folder)))
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && COUNTED.test(entry.name))
      .map((entry) => posix.join(folder, posix.relative(join(root, folder), join(entry.parentPath, entry.name)))),
  )
  .filter((path) => !path.startsWith('src/generated/'));
const lengths = paths.map((path) => readFileSync(join(root, path), 'utf8').trimEnd().split('\n').length);
const lines = lengths.reduce((sum, length) => sum + length, 0);
const code = paths
  .filter((path) => /\.tsx?$/.test(path))
  .map((path): SourceFile => ({ path, ...importsOf(path, readFileSync(join(root, path), 'utf8')) }));
const inSrc = code
  .filter(({ path }) => path.startsWith('src/'))
  .map(({ path, own, ...file }) => ({ ...file, path: path.slice(4), own: own.map((to) => posix.relative('src', to)) }));
const importers = Map.groupBy(
  code.flatMap(({ path, own }) => [...new Set(own)].map((to) => ({ to, path }))),
  ({ to }) => to,
);

const counts: Readonly<Record<string, string | number>> = {
  files: paths.length,
  lines,
  'lines a file': Math.round(lines / paths.length),
  'files under 30 lines': lengths.filter((length) => length < 30).length,
  'files of 100 to 450 lines': lengths.filter((length) => length >= 100 && length <= 450).length,
  'longest file': Math.max(...lengths),
  'files on the longest chain of imports': longestChain(code),
  'files with one importer': code.filter(({ path }) => importers.get(path)?.length === 1).length,
  'files of more than one subject': suitcases(code).length,
  'names that a ring has twice': namesTwice(inSrc).length,
};
for (const [name, count] of Object.entries(counts)) process.stdout.write(`${String(count).padStart(7)}  ${name}\n`);

/**
 * Returns the number of files on the longest path along imports. A file that is already on the path is not entered
 * again.
 */
function longestChain(files: readonly SourceFile[]): number {
  const own = new Map(files.map((file) => [file.path, file.own]));
  const known = new Map<string, number>();
  const onTheWay = new Set<string>();
  const lengthFrom = (path: string): number => {
    const before = known.get(path);
    if (before !== undefined || onTheWay.has(path)) return before ?? 0;
    onTheWay.add(path);
    const next = (own.get(path) ?? []).filter((to) => own.has(to)).map(lengthFrom);
    onTheWay.delete(path);
    const length = 1 + Math.max(0, ...next);
    known.set(path, length);
    return length;
  };
  return Math.max(...files.map(({ path }) => lengthFrom(path)));
}
