/**
 * Defines the forms of the figures that the processes of an episode report to each other. An episode is one attack
 * beside an honest user.
 */
import { z } from 'zod';

/** What the honest user observed in one phase. Times are in milliseconds. */
export const PHASE = z.object({
  calls: z.number(),
  /** The calls that did not end with the expected result. */
  wrong: z.array(z.string()),
  p50: z.number(),
  p99: z.number(),
  /** The number of the operator's reads. `readsWrong` has those that were not answered with 200. */
  reads: z.number(),
  readsWrong: z.array(z.string()),
  readP99: z.number(),
  /** The number of requests of /healthz. `healthWrong` has those that were not answered with 200. */
  health: z.number(),
  healthWrong: z.array(z.string()),
  /** The longest time until an answer of /healthz. */
  healthMax: z.number(),
  /**
   * The number of trials: a user who has used nothing connects a client and calls it, or the operator subscribes to
   * events. `trialsWrong` has those that failed.
   */
  trials: z.number(),
  trialsWrong: z.array(z.string()),
});
export type Phase = z.infer<typeof PHASE>;

/** The form of the check of the honest user's data after the attack. */
export const WHOLENESS = z.object({
  ids: z.number(),
  /**
   * The ids of commands that ran again when they were repeated, or that were answered with another outcome than the
   * recorded one.
   */
  idsBroken: z.array(z.string()),
  /** The commands whose retained rows are incomplete. */
  rowsMissing: z.array(z.string()),
});
export type Wholeness = z.infer<typeof WHOLENESS>;

/** The numbers of the hostile user's actions, by name. An attack without actions proves nothing. */
export const OPERATION_COUNTS = z.record(z.string(), z.number());
export type OperationCounts = z.infer<typeof OPERATION_COUNTS>;

export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
