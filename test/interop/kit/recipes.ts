/** Writes the examples of docs/graphql-clients.md that use other libraries into files. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { printedSchema } from '../../../src/graphql/schema/schema.ts';
import { examplesOf } from '../../docs/kit/examples.ts';

const PAGE = 'docs/graphql-clients.md';
/** The folder of the written examples. It is below the folder of the libraries, so that the examples find them. */
export const RECIPES = join(import.meta.dirname, '../.cache/recipes');

export type Recipe = { readonly file: string; readonly text: string };

/** Returns the blocks that name a file after `interop:`. */
export function readRecipes(): readonly Recipe[] {
  return examplesOf(PAGE).flatMap(({ info, text }) => {
    const file = /^interop: (\S+)$/.exec(info)?.[1];
    return file === undefined ? [] : [{ file, text }];
  });
}

/** Writes each recipe, and the schema that `callboard schema` prints, into RECIPES. */
export function writeRecipes(): void {
  rmSync(RECIPES, { recursive: true, force: true });
  for (const { file, text } of [...readRecipes(), { file: 'schema.graphql', text: printedSchema() }]) {
    const path = join(RECIPES, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
