import type { PromiseName } from './promises.ts';

/** What a run is judged by, as its plan says. */
export type Expectation = {
  /** The store was made to lose what it held, so admitted commands may be gone. */
  readonly loss: boolean;
  /** What the plan is judged by besides. */
  readonly promises?: readonly PromiseName[];
};
