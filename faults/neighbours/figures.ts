import { z } from 'zod';

/** What the honest user saw in one phase. Times are milliseconds. */
export const PHASE = z.object({
  calls: z.number(),
  /** Calls that did not end with the result that they should have. */
  wrong: z.array(z.string()),
  p50: z.number(),
  p99: z.number(),
  /** Reads of the operator: how many, and those that did not answer 200. */
  reads: z.number(),
  readsWrong: z.array(z.string()),
  readP99: z.number(),
});
export type Phase = z.infer<typeof PHASE>;

/** What of the honest user's was still there after the attack. */
export const WHOLENESS = z.object({
  ids: z.number(),
  /** Ids whose repeat ran again, or was not answered by the recorded outcome. */
  idsBroken: z.array(z.string()),
  /** Commands whose retained rows were no longer all there. */
  rowsMissing: z.array(z.string()),
});
export type Wholeness = z.infer<typeof WHOLENESS>;

/** What the hostile user did, by name; an attack that did nothing proves nothing. */
export const DEEDS = z.record(z.string(), z.number());
export type Deeds = z.infer<typeof DEEDS>;

export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
