/** Reads the files of deploy/ into a map, in which a test can replace a text, and writes the map into a folder. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..', '..');
const DEPLOY = join(ROOT, 'deploy');
/** The folder that make-secrets.sh writes; it is in no repository. */
const SECRETS = 'secrets/';

/** The texts of the files of deploy/, by their paths below it. */
export type Tree = ReadonlyMap<string, string>;

export function readTree(): Tree {
  const entries = readdirSync(DEPLOY, { recursive: true, withFileTypes: true });
  const paths = entries.flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name).slice(DEPLOY.length + 1)] : [],
  );
  const own = paths.filter((path) => !path.startsWith(SECRETS)).sort();
  return new Map(own.map((path) => [path, readFileSync(join(DEPLOY, path), 'utf8')]));
}

/** Returns the text of a file. Throws if there is none. */
export function textOf(tree: Tree, path: string): string {
  const text = tree.get(path);
  if (text === undefined) throw new Error(`deploy/ has no ${path}`);
  return text;
}

export function writeTree(tree: Tree, folder: string): void {
  for (const [path, text] of tree) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

/** Returns the tree with another text in one file. Throws if the file does not contain the text to replace. */
export function changed(tree: Tree, path: string, from: string, to: string): Tree {
  const text = textOf(tree, path);
  if (!text.includes(from)) throw new Error(`deploy/${path} has no "${from}"`);
  return new Map([...tree, [path, text.replaceAll(from, to)]]);
}
