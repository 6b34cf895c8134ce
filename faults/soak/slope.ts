/** Judges from samples whether the relay's heap, or the keys or the memory of its Redis, keep growing. */
import type { StoreSize } from './store.ts';

/** One sample of the relay's heap after garbage collection, and of its Redis. Sizes are in bytes. */
export type Sample = {
  readonly minute: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** The size of Redis; null in direct mode. */
  readonly store: StoreSize | null;
  readonly calls: number;
  /**
   * The CPU time of the most expensive turn of the event loop since the previous sample, and the longest stall, in
   * milliseconds.
   */
  readonly worstTurnMs: number;
  readonly stalledMs: number;
};

/**
 * The number of minutes at the start that are not judged, because caches and the records of the idempotency window are
 * still filling up.
 */
export const WARM_UP_MINUTES = 10;
/** The permitted growth after the warm-up along the best-fitting line, as a fraction of the line's first value. */
const GROWTH_PART = 0.05;
const MIB = 1024 * 1024;

export const inMib = (bytes: number): string => (bytes / MIB).toFixed(1);
const withUnit = (bytes: number): string => `${inMib(bytes)} MiB`;

/** A value of the samples that is judged. `noise`: the growth that may be noise. `text`: formats the value. */
export type Measure = {
  readonly name: string;
  readonly of: (sample: Sample) => number;
  readonly noise: number;
  readonly text: (value: number) => string;
};

/** The heap. A growth of less than 3 MiB may be noise of the garbage collector. */
export const HEAP: Measure = { name: 'heap', of: ({ heapBytes }) => heapBytes, noise: 3 * MIB, text: withUnit };
/**
 * The number of keys in Redis, for samples with a store. Their number varies, because spans of time begin and end, each
 * with a few keys per user.
 */
export const STORE_KEYS: Measure = {
  name: 'keys in Redis',
  of: ({ store }) => store?.keys ?? NaN,
  noise: 100,
  text: (keys) => keys.toFixed(0),
};
/** The memory of Redis, for samples with a store. */
export const STORE_BYTES: Measure = {
  name: 'memory of Redis',
  of: ({ store }) => store?.bytes ?? NaN,
  noise: 3 * MIB,
  text: withUnit,
};

export type Judged = {
  readonly flat: boolean;
  /** The growth along the best-fitting line (least squares) over the judged time, and the permitted maximum. */
  readonly grown: number;
  readonly most: number;
  readonly samples: number;
};

/**
 * Judges whether a value stays flat after the warm-up: the best-fitting line through the samples may rise by 5% of its
 * first value, or by the measure's noise. Throws if there are fewer than three samples.
 */
export function judgeSlope(samples: readonly Sample[], warmUpMinutes: number, { of, noise } = HEAP): Judged {
  const judged = samples.filter(({ minute }) => minute >= warmUpMinutes);
  const [first, last] = [judged[0], judged.at(-1)];
  if (!first || !last || judged.length < 3)
    throw new Error(`${judged.length} samples after the warm-up: three are needed`);
  const meanMinute = mean(judged.map(({ minute }) => minute));
  const meanValue = mean(judged.map(of));
  const top = sum(judged.map((sample) => (sample.minute - meanMinute) * (of(sample) - meanValue)));
  const bottom = sum(judged.map(({ minute }) => (minute - meanMinute) ** 2));
  const slope = top / bottom;
  const start = meanValue + slope * (first.minute - meanMinute);
  const grown = slope * (last.minute - first.minute);
  const most = Math.max(noise, GROWTH_PART * start);
  return { flat: grown <= most, grown, most, samples: judged.length };
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}
