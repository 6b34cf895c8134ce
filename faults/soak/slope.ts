/** One look at the heap of the relay after collections. */
export type Sample = {
  readonly minute: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly calls: number;
  /** Since the sample before: the most expensive turn of the event loop (CPU), and its longest stall. Milliseconds. */
  readonly worstTurnMs: number;
  readonly stalledMs: number;
};

/** Minutes that are left out: caches and the records of the idempotency window fill in them. */
export const WARM_UP_MINUTES = 10;
/** How much of the heap at the end of the warm-up it may grow by until the end of the run, along the line that fits the samples best. */
export const GROWTH_PART = 0.05;
/** Less than this is noise of collections, whatever part it is. */
export const NOISE_BYTES = 3 * 1024 * 1024;

export type Judged = {
  readonly flat: boolean;
  /** By the line that fits best (least squares), over the time that is judged. */
  readonly grownBytes: number;
  readonly mostBytes: number;
  readonly samples: number;
};

/**
 * Whether the heap stays flat once it is warm: the best line through the samples after the warm-up grows, over their time, by at most 5% of its value at
 * their beginning, or 3 MiB. Throws for fewer than three samples, which show no line.
 */
export function judgeSlope(samples: readonly Sample[], warmUpMinutes: number): Judged {
  const judged = samples.filter(({ minute }) => minute >= warmUpMinutes);
  const [first, last] = [judged[0], judged.at(-1)];
  if (!first || !last || judged.length < 3)
    throw new Error(`${judged.length} samples after the warm-up: three are needed`);
  const meanMinute = mean(judged.map(({ minute }) => minute));
  const meanBytes = mean(judged.map(({ heapBytes }) => heapBytes));
  const top = sum(judged.map(({ minute, heapBytes }) => (minute - meanMinute) * (heapBytes - meanBytes)));
  const bottom = sum(judged.map(({ minute }) => (minute - meanMinute) ** 2));
  const slope = top / bottom;
  const start = meanBytes + slope * (first.minute - meanMinute);
  const grownBytes = slope * (last.minute - first.minute);
  const mostBytes = Math.max(NOISE_BYTES, GROWTH_PART * start);
  return { flat: grownBytes <= mostBytes, grownBytes, mostBytes, samples: judged.length };
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}
