/** Stands in a file below src exactly once, and is replaced. */
export type Edit = { readonly file: string; readonly find: string; readonly replace: string };

/** A mistake in the relay's sources that a run must notice. */
export type Mutant = Edit & {
  readonly name: string;
  readonly says: string;
  readonly mode: 'direct' | 'shared';
  /** Where the sources guard against it in more than one place, the others. */
  readonly also?: readonly Edit[];
  /** The plan under which it shows. */
  readonly plan: string;
  /** Invariants, or promises of the plan, any of which catches it. */
  readonly caughtBy: readonly string[];
};
export type Mistake = Omit<Mutant, 'mode'>;

/** A mistake, wherever the sources hold the places of it. */
export type Plant = Edit & { readonly also?: readonly Edit[] };
