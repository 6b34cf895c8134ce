/** Defines the types of what a judge finds: violations, and how many objects it checked. */

/** A violation, with the ids of the objects that it concerns. */
export type Finding = { readonly what: string; readonly ids: readonly string[] };

export type Judged = {
  /** The number of objects that were checked. An invariant without any object counts as unproven. */
  readonly looked: number;
  readonly findings: readonly Finding[];
  /** Figures about the run, as one line. */
  readonly says?: string;
};

export function find(what: string, found: readonly { readonly text: string }[]): readonly Finding[] {
  return found.length === 0 ? [] : [{ what, ids: found.map(({ text }) => text) }];
}
