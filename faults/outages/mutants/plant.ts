/** Copies the sources and plants one mutant in the copy. The project's own files are never changed. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..', '..');

export function editsOf({ file, find, replace, also = [] }: Plant): readonly Edit[] {
  return [{ file, find, replace }, ...also];
}

/** Returns the text of the file with the mistake. Throws unless the text to replace occurs exactly once in the file. */
export function mutate({ file, find, replace }: Edit, source: string = join(ROOT, 'src')): string {
  const parts = readFileSync(join(source, file), 'utf8').split(find);
  if (parts.length !== 2) throw new Error(`${file} holds what is replaced ${parts.length - 1} times: ${find}`);
  return parts.join(replace);
}

/** A copy of the sources. Disposal removes it. */
type SourceCopy = AsyncDisposable & { readonly source: string; readonly folder: string };

export function copySources(from: string = join(ROOT, 'src')): SourceCopy {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-mutant-'));
  const source = join(folder, 'src');
  // Timestamps are preserved, because files that are newer than their build are built again. A test that does so must
  // not write into the project's own dist, which another test may be reading.
  const asItIs = { recursive: true, preserveTimestamps: true };
  cpSync(from, source, asItIs);
  if (existsSync(join(ROOT, 'dist'))) cpSync(join(ROOT, 'dist'), join(folder, 'dist'), asItIs);
  for (const name of ['node_modules', 'package.json', 'schema.graphql', 'generated', 'demo'])
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
 * Copies the sources and plants one mistake in the copy. For a file outside the sources, such as `../faults/x.ts`, its
 * folder is copied to the same place beside them.
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

// The types of mutants: mistakes that are planted in the sources, and that a run must notice.

/** A text that occurs exactly once in a file below src, and the text that replaces it. */
type Edit = { readonly file: string; readonly find: string; readonly replace: string };

/** A mistake that is planted in the relay's sources and that a run must notice. */
export type Mutant = Edit & {
  readonly name: string;
  readonly says: string;
  /** The relays with this mistake: `owned` relays own partitions, and `shared` relays do not. */
  readonly mode: 'direct' | 'shared' | 'owned';
  /** Further edits, if several places in the sources guard against the mistake. */
  readonly also?: readonly Edit[];
  /** The name of the plan under which the mistake shows. */
  readonly plan: string;
  /** The names of the invariants, or of the plan's promises, at least one of which must catch the mistake. */
  readonly caughtBy: readonly string[];
};
export type Mistake = Omit<Mutant, 'mode'>;

/** A mistake in one or more files of the sources. */
export type Plant = Edit & { readonly also?: readonly Edit[] };
