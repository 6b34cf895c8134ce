/** Copies the sources and plants one mutant in the copy. The project's own files are never changed. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import type { Edit, Plant } from './mutant.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

export function editsOf({ file, find, replace, also = [] }: Plant): readonly Edit[] {
  return [{ file, find, replace }, ...also];
}

/** Returns the text of the file with the mistake. Throws unless the text to replace occurs in the file exactly once. */
export function mutate({ file, find, replace }: Edit, source: string = join(ROOT, 'src')): string {
  const parts = readFileSync(join(source, file), 'utf8').split(find);
  if (parts.length !== 2) throw new Error(`${file} holds what is replaced ${parts.length - 1} times: ${find}`);
  return parts.join(replace);
}

/** A copy of the sources, which is removed at disposal. */
export type SourceCopy = AsyncDisposable & { readonly source: string; readonly folder: string };

export function copySources(from: string = join(ROOT, 'src')): SourceCopy {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-mutant-'));
  const source = join(folder, 'src');
  cpSync(from, source, { recursive: true });
  for (const name of ['node_modules', 'package.json', 'dist', 'schema.graphql', 'generated', 'demo'])
    symlinkSync(join(ROOT, name), join(folder, name));
  return {
    source,
    folder,
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Copies the sources and plants one mistake in the copy. A file outside the sources, such as `../faults/x.ts`, is
 * copied to the same place beside them.
 */
export function plantMutant(mutant: Plant, from: string = join(ROOT, 'src')): SourceCopy {
  const copy = copySources(from);
  for (const edit of editsOf(mutant)) {
    const file = join(copy.source, edit.file);
    mkdirSync(dirname(file), { recursive: true });
    if (!existsSync(file)) cpSync(join(from, edit.file), file);
    writeFileSync(file, mutate(edit, copy.source));
  }
  return copy;
}
