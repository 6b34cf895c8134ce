/** The type of what a run is judged by. */
import type { PromiseName } from './promises.ts';

/** What a run is judged by. It depends on the run's plan. */
export type Expectation = {
  /** Whether the faults made the store lose data, so that admitted commands may be missing. */
  readonly loss: boolean;
  /** The promises of the plan, which are judged beyond the invariants. */
  readonly promises?: readonly PromiseName[];
};
