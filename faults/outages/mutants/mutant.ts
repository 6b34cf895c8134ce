/** Text that occurs exactly once in a file below src, and its replacement. */
export type Edit = { readonly file: string; readonly find: string; readonly replace: string };

/** A mistake in the relay's sources that a run must notice. */
export type Mutant = Edit & {
  readonly name: string;
  readonly says: string;
  readonly mode: 'direct' | 'shared';
  /** The other places, if the sources guard against it in more than one. */
  readonly also?: readonly Edit[];
  /** The plan under which it shows. */
  readonly plan: string;
  /** Invariants, or promises of the plan, one of which catches it. */
  readonly caughtBy: readonly string[];
};
export type Mistake = Omit<Mutant, 'mode'>;

/** A mistake in one or more places of the sources. */
export type Plant = Edit & { readonly also?: readonly Edit[] };
