import type { PromiseName } from './promises.ts';

/** What a run is judged by, depending on its plan. */
export type Expectation = {
  /** Whether the store was made to lose data, so that admitted commands may be gone. */
  readonly loss: boolean;
  /** The additional promises of the plan. */
  readonly promises?: readonly PromiseName[];
};
