/** Finds by samples whether the heap keeps growing. */

/** One sample of the relay's heap, after garbage collection. Sizes in bytes. */
export type Sample = {
  readonly minute: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly calls: number;
  /** Since the previous sample: the most expensive event-loop turn (CPU), and the longest stall. Milliseconds. */
  readonly worstTurnMs: number;
  readonly stalledMs: number;
};

/** The first minutes are not judged, because caches and the records of the idempotency window fill up. */
export const WARM_UP_MINUTES = 10;
/** The growth that is permitted after the warm-up, as a share of the heap at its end, along the best-fitting line. */
const GROWTH_PART = 0.05;
/** Less growth than this is noise of the garbage collector. */
const NOISE_BYTES = 3 * 1024 * 1024;

export type Judged = {
  readonly flat: boolean;
  /** By the best-fitting line (least squares), over the judged time. */
  readonly grownBytes: number;
  readonly mostBytes: number;
  readonly samples: number;
};

/**
 * Whether the heap stays flat after the warm-up: the best line through the samples grows by at most 5% of its start
 * value, or 3 MiB. Throws for fewer than three samples.
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
