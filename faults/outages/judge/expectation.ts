/** Defines what a run is judged by besides the invariants: whether data may be lost, and the promises of the plan. */
import type { PromiseName } from './promises.ts';

/** What a run is judged by, which depends on its plan. */
export type Expectation = {
  /** Whether the faults made the store lose data, so that admitted commands may be missing. */
  readonly loss: boolean;
  /** The promises of the plan, which are judged beyond the invariants. */
  readonly promises?: readonly PromiseName[];
};
