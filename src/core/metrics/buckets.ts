/**
 * The buckets of every histogram. They are log-linear, eight for each doubling, from 1 ms to the longest life of a
 * command, so a quantile is at most 6 % off. Each bound that `/metrics` shows is the bound of a bucket, so that
 * `/metrics` and the series count the same.
 */

/** The upper bounds that `/metrics` shows, in milliseconds. */
export const SHOWN_BOUNDS_MS: readonly number[] = [
  ...[5, 10, 25, 50, 100, 250, 500],
  ...[1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000],
];

/** The binary logarithm of the number of buckets for each doubling of the value. */
const LOG_PARTS = 3;
const PARTS = 2 ** LOG_PARTS;
/**
 * The longest life of a command: 600 s, the sum of the largest budgets to connect and to respond. Longer durations
 * share the last bucket.
 */
const LONGEST_MS = 600_000;
/** The upper bounds of the log-linear buckets, in milliseconds, before the shown bounds divide some of them. */
const PLAIN_BOUNDS_MS = plainBounds();
/**
 * The upper bound of each bucket, in milliseconds. A bucket contains the durations above the bound of the previous one.
 */
const BOUNDS_MS = [...new Set([...PLAIN_BOUNDS_MS, ...SHOWN_BOUNDS_MS])].sort((a, b) => a - b);

export const BUCKETS: number = BOUNDS_MS.length;

/**
 * For each plain bucket: the first bucket that is a part of it, and the shown bound that divides it; Infinity if none
 * does.
 */
const FIRST = Uint8Array.from(PLAIN_BOUNDS_MS, (_, plain) => BOUNDS_MS.findIndex((ms) => ms > lowerPlainBound(plain)));
const DIVIDED_AT = Float64Array.from(
  PLAIN_BOUNDS_MS,
  (upper, plain) => SHOWN_BOUNDS_MS.find((ms) => ms > lowerPlainBound(plain) && ms < upper) ?? Infinity,
);

/** For each shown bound: the bucket of which it is the upper bound. */
export const SHOWN_BUCKETS: readonly number[] = SHOWN_BOUNDS_MS.map((ms) => BOUNDS_MS.indexOf(ms));

/**
 * For each bucket: the index of the first shown bound that is not below it. A bucket above all shown bounds has the
 * number of shown bounds instead.
 */
const SHOWN_INDEX = Uint8Array.from(BOUNDS_MS, (upper) => {
  const found = SHOWN_BOUNDS_MS.findIndex((ms) => upper <= ms);
  return found < 0 ? SHOWN_BOUNDS_MS.length : found;
});

/**
 * Returns the index of the lowest shown bound that the duration does not exceed; the number of bounds if it exceeds
 * all.
 */
export function shownIndexOf(ms: number): number {
  return SHOWN_INDEX[bucketOf(ms)] ?? SHOWN_BOUNDS_MS.length;
}

/**
 * Returns the bucket of a duration in milliseconds. A duration of 1 ms or less, or a value that is not a number,
 * belongs to the first bucket.
 */
export function bucketOf(ms: number): number {
  const parts = Math.ceil(ms * PARTS) - 1;
  if (!(parts >= PARTS)) return 0;
  if (ms >= LONGEST_MS) return BUCKETS - 1;
  const doublings = 31 - LOG_PARTS - Math.clz32(parts);
  const plain = 1 + doublings * PARTS + (parts >>> doublings) - PARTS;
  return (FIRST[plain] ?? 0) + (ms > (DIVIDED_AT[plain] ?? Infinity) ? 1 : 0);
}

/**
 * Returns the duration in milliseconds that represents a bucket. Durations from 1 ms to LONGEST_MS differ from it by at
 * most 6 %.
 */
export function durationOf(bucket: number): number {
  const upper = BOUNDS_MS[bucket] ?? LONGEST_MS;
  const lower = BOUNDS_MS[bucket - 1];
  return lower === undefined ? upper : (2 * lower * upper) / (lower + upper);
}

/**
 * Returns a quantile of the counted durations, in milliseconds: the smallest duration such that the fraction `quantile`
 * of all durations is not longer. `counts`: the number of durations in each bucket. Null if there are none.
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
