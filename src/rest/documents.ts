/** Reads the GraphQL operation documents, from which the REST routes are compiled, from the package. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The text of one file of operations; `name` is the file name. */
export type DocumentText = { readonly name: string; readonly text: string };

/** Reads the documents that ship with callboard: one file per room, each operation a route. */
export function readOperations(folder: string = join(import.meta.dirname, 'operations')): readonly DocumentText[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.graphql'));
  return names.sort().map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));
}
