import { z } from 'zod';

/** What the honest user observed in one phase. Times in milliseconds. */
export const PHASE = z.object({
  calls: z.number(),
  /** Calls that did not end with the expected result. */
  wrong: z.array(z.string()),
  p50: z.number(),
  p99: z.number(),
  /** The operator's reads: how many, and those that were not answered with 200. */
  reads: z.number(),
  readsWrong: z.array(z.string()),
  readP99: z.number(),
});
export type Phase = z.infer<typeof PHASE>;

/** What was left of the honest user's data after the attack. */
export const WHOLENESS = z.object({
  ids: z.number(),
  /** Ids that ran again when repeated, or were not answered by the recorded outcome. */
  idsBroken: z.array(z.string()),
  /** Commands whose retained rows are incomplete. */
  rowsMissing: z.array(z.string()),
});
export type Wholeness = z.infer<typeof WHOLENESS>;

/** The hostile user's actions, by name; an attack without actions proves nothing. */
export const DEEDS = z.record(z.string(), z.number());
export type Deeds = z.infer<typeof DEEDS>;

export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
