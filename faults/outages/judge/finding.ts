/** A violation that the judge found. Decides nothing. */

/** A violation, and the object that it concerns. */
export type Finding = { readonly what: string; readonly ids: readonly string[] };

export type Judged = {
  /** How many objects were checked: an invariant without any is unproven, not kept. */
  readonly looked: number;
  readonly findings: readonly Finding[];
  /** Figures for the reader of the run, one line. */
  readonly says?: string;
};

export function find(what: string, found: readonly { readonly text: string }[]): readonly Finding[] {
  return found.length === 0 ? [] : [{ what, ids: found.map(({ text }) => text) }];
}
