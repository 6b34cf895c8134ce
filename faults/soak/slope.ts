/** Judges from samples whether the heap keeps growing. */

/** One sample of the relay's heap, after garbage collection. Sizes in bytes. */
export type Sample = {
  readonly minute: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly calls: number;
  /**
   * The most expensive turn of the event loop since the previous sample (CPU time), and the longest stall.
   * Milliseconds.
   */
  readonly worstTurnMs: number;
  readonly stalledMs: number;
};

/**
 * The number of minutes at the start that are not judged, because caches and the records of the idempotency window fill
 * up.
 */
export const WARM_UP_MINUTES = 10;
/**
 * The growth that is permitted after the warm-up, along the best-fitting line, as a fraction of the heap at the line's
 * start.
 */
const GROWTH_PART = 0.05;
/** A growth by less than this many bytes is noise of the garbage collector. */
const NOISE_BYTES = 3 * 1024 * 1024;

export type Judged = {
  readonly flat: boolean;
  /** The growth along the best-fitting line (least squares) over the judged time, in bytes. */
  readonly grownBytes: number;
  readonly mostBytes: number;
  readonly samples: number;
};

/**
 * Judges whether the heap stays flat after the warm-up: the best line through the samples grows by at most 5% of its
 * start value, or 3 MiB. Throws for fewer than three samples.
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
