/**
 * Defines the forms of the figures that the processes of an episode report. An episode is one attack beside an honest
 * user.
 */
import { z } from 'zod';

/** The honest user's observations in one phase. Times are in milliseconds. */
export const PHASE = z.object({
  calls: z.number(),
  /** The faults of calls that did not end with the expected result. */
  wrong: z.array(z.string()),
  /** The number of calls that were refused because the store was full. It must be 0 in other phases. */
  refused: z.number(),
  p50: z.number(),
  p99: z.number(),
  /**
   * The number of reads by the operator and, while the store is full, by the honest user. `readsWrong`: the faults of
   * reads that were not answered with 200.
   */
  reads: z.number(),
  readsWrong: z.array(z.string()),
  readP99: z.number(),
  /** The number of requests for /healthz. `healthWrong`: the faults of those that were not answered with 200. */
  health: z.number(),
  healthWrong: z.array(z.string()),
  /** The longest time until /healthz was answered. */
  healthMax: z.number(),
  /**
   * The number of trials. In a trial, a user who has used nothing connects a client and calls it, or the operator
   * subscribes to events. `trialsWrong`: the faults of failed trials.
   */
  trials: z.number(),
  trialsWrong: z.array(z.string()),
});
export type Phase = z.infer<typeof PHASE>;

/** The form of the check of the honest user's data after the attack. */
export const WHOLENESS = z.object({
  ids: z.number(),
  /** The ids of commands that ran again when they were repeated, or whose answer differed from the recorded outcome. */
  idsBroken: z.array(z.string()),
  /** The commands whose retained rows are incomplete. */
  rowsMissing: z.array(z.string()),
});
export type Wholeness = z.infer<typeof WHOLENESS>;

/** The options of one phase of the honest user's work. `isFull`: whether the store is full during a part of it. */
export const PHASE_OPTIONS = z.object({ name: z.string(), seconds: z.number(), isFull: z.boolean() });

/**
 * The commands whose handlers waited while the store was full. `wrong`: the faults of those that did not end with their
 * result.
 */
export const HELD = z.object({ calls: z.number(), wrong: z.array(z.string()) });
export type HeldCalls = z.infer<typeof HELD>;

/** The number of the hostile user's operations, by name. An attack without operations proves nothing. */
export const OPERATION_COUNTS = z.record(z.string(), z.number());
export type OperationCounts = z.infer<typeof OPERATION_COUNTS>;

export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Combines the figures of two phases: numbers are added, and the longer times are used. */
export function phasesTogether(one: Phase, other: Phase): Phase {
  return {
    calls: one.calls + other.calls,
    wrong: [...one.wrong, ...other.wrong],
    refused: one.refused + other.refused,
    p50: Math.max(one.p50, other.p50),
    p99: Math.max(one.p99, other.p99),
    reads: one.reads + other.reads,
    readsWrong: [...one.readsWrong, ...other.readsWrong],
    readP99: Math.max(one.readP99, other.readP99),
    health: one.health + other.health,
    healthWrong: [...one.healthWrong, ...other.healthWrong],
    healthMax: Math.max(one.healthMax, other.healthMax),
    trials: one.trials + other.trials,
    trialsWrong: [...one.trialsWrong, ...other.trialsWrong],
  };
}
