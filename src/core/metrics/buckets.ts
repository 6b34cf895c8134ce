/**
 * The buckets of all histograms. They are log-linear, eight for each doubling, from 1 ms to the longest life of a
 * command, so that quantiles are at most 6 % off. Each bound that `/metrics` shows is the bound of a bucket, so that
 * `/metrics` and the series count the same.
 */

/** The upper bounds that `/metrics` shows, in milliseconds. */
export const SHOWN_BOUNDS_MS: readonly number[] = [
  ...[5, 10, 25, 50, 100, 250, 500],
  ...[1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000],
];

/** The binary logarithm of the number of buckets for each doubling. */
const LOG_PARTS = 3;
const PARTS = 2 ** LOG_PARTS;
/**
 * The longest life of a command: 600 s, the sum of the largest connect budget and the largest response budget. All
 * longer durations are in the last bucket.
 */
const LONGEST_MS = 600_000;
/** The upper bounds of the log-linear buckets, in milliseconds. The shown bounds then divide some of these buckets. */
const PLAIN_BOUNDS_MS = plainBounds();
/**
 * The upper bound of each bucket, in milliseconds. A bucket contains the durations above the bound of the bucket before
 * it.
 */
const BOUNDS_MS = [...new Set([...PLAIN_BOUNDS_MS, ...SHOWN_BOUNDS_MS])].sort((a, b) => a - b);

export const BUCKETS: number = BOUNDS_MS.length;

/**
 * For each log-linear bucket: the first final bucket that is a part of it (FIRST), and the shown bound that divides it,
 * or Infinity (DIVIDED_AT).
 */
const FIRST = Uint8Array.from(PLAIN_BOUNDS_MS, (_, plain) => BOUNDS_MS.findIndex((ms) => ms > lowerPlainBound(plain)));
const DIVIDED_AT = Float64Array.from(
  PLAIN_BOUNDS_MS,
  (upper, plain) => SHOWN_BOUNDS_MS.find((ms) => ms > lowerPlainBound(plain) && ms < upper) ?? Infinity,
);

/** For each shown bound: the bucket that ends at this bound. */
export const SHOWN_BUCKETS: readonly number[] = SHOWN_BOUNDS_MS.map((ms) => BOUNDS_MS.indexOf(ms));

/**
 * For each bucket: the index of the first shown bound that is not below the bucket. For a bucket above all shown
 * bounds: their number.
 */
const SHOWN_INDEX = Uint8Array.from(BOUNDS_MS, (upper) => {
  const found = SHOWN_BOUNDS_MS.findIndex((ms) => upper <= ms);
  return found < 0 ? SHOWN_BOUNDS_MS.length : found;
});

/**
 * Returns the index of the lowest shown bound that is not below the duration; the number of bounds if the duration is
 * above all.
 */
export function shownIndexOf(ms: number): number {
  return SHOWN_INDEX[bucketOf(ms)] ?? SHOWN_BOUNDS_MS.length;
}

/** Returns the bucket of a duration in milliseconds. A duration of 1 ms or less, or NaN, is in the first bucket. */
export function bucketOf(ms: number): number {
  const parts = Math.ceil(ms * PARTS) - 1;
  if (!(parts >= PARTS)) return 0;
  if (ms >= LONGEST_MS) return BUCKETS - 1;
  const doublings = 31 - LOG_PARTS - Math.clz32(parts);
  const plain = 1 + doublings * PARTS + (parts >>> doublings) - PARTS;
  return (FIRST[plain] ?? 0) + (ms > (DIVIDED_AT[plain] ?? Infinity) ? 1 : 0);
}

/**
 * Returns the duration in milliseconds that stands for a bucket. It differs by at most 6 % from every duration in the
 * bucket, for durations from 1 ms to LONGEST_MS.
 */
export function durationOf(bucket: number): number {
  const upper = BOUNDS_MS[bucket] ?? LONGEST_MS;
  const lower = BOUNDS_MS[bucket - 1];
  return lower === undefined ? upper : (2 * lower * upper) / (lower + upper);
}

/**
 * Returns a quantile of the counted durations, in milliseconds: the smallest duration that is not exceeded by the
 * fraction `quantile` of all durations. `counts`: the number of durations in each bucket. Null if nothing was counted.
 */
export function quantileOf(counts: ArrayLike<number>, quantile: number): number | null {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i] ?? 0;
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(quantile * total));
  let seen = 0;
  for (let i = 0; i < counts.length; i++) {
    seen += counts[i] ?? 0;
    if (seen >= rank) return durationOf(i);
  }
  return durationOf(counts.length - 1);
}

function plainBounds(): readonly number[] {
  const bounds = [1];
  for (let doubling = 1; (bounds.at(-1) ?? 0) < LONGEST_MS; doubling *= 2) {
    for (let part = 1; part <= PARTS; part++) bounds.push((doubling * (PARTS + part)) / PARTS);
  }
  return bounds.slice(0, bounds.findIndex((ms) => ms >= LONGEST_MS) + 1);
}

function lowerPlainBound(plain: number): number {
  return PLAIN_BOUNDS_MS[plain - 1] ?? 0;
}
