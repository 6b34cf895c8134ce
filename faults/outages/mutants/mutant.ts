/**
 * Defines the types of mutants: mistakes that are planted in the sources and that a run must notice. The other files of
 * this folder list and plant them.
 */

/** A text that occurs exactly once in a file below src, and the text that replaces it. */
export type Edit = { readonly file: string; readonly find: string; readonly replace: string };

/** A mistake that is planted in the relay's sources and that a run must notice. */
export type Mutant = Edit & {
  readonly name: string;
  readonly says: string;
  readonly mode: 'direct' | 'shared';
  /** Further edits, if the sources guard against the mistake in more than one place. */
  readonly also?: readonly Edit[];
  /** The name of the plan under which the mistake shows. */
  readonly plan: string;
  /** The names of the invariants, or promises of the plan, of which at least one must catch the mistake. */
  readonly caughtBy: readonly string[];
};
export type Mistake = Omit<Mutant, 'mode'>;

/** A mistake in one or more files of the sources. */
export type Plant = Edit & { readonly also?: readonly Edit[] };
