/** Tests the buckets of histograms. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  BUCKETS,
  bucketOf,
  durationOf,
  quantileOf,
  SHOWN_BOUNDS_MS,
  SHOWN_BUCKETS,
} from '../../src/core/metrics/buckets.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../src/core/limits.ts';

const LONGEST_MS = CONNECT_WITHIN_MS.max + RESPOND_WITHIN_MS.max;
const duration = fc.double({ min: 1, max: LONGEST_MS, noNaN: true });

/** Returns the smallest value that is not exceeded by this fraction of the values. */
function trueQuantile(values: readonly number[], quantile: number): number {
  return values.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(quantile * values.length)) - 1] ?? 0;
}

function counted(values: readonly number[]): Int32Array {
  const counts = new Int32Array(BUCKETS);
  for (const ms of values) counts[bucketOf(ms)]! += 1;
  return counts;
}

it('a bucket represents each duration in it, up to the longest life of a command, with an error of 6 % at most', () => {
  fc.assert(
    fc.property(duration, (ms) => {
      expect(Math.abs(durationOf(bucketOf(ms)) - ms) / ms).toBeLessThanOrEqual(0.06);
    }),
    { numRuns: 5_000 },
  );
});

it('a longer duration is never in an earlier bucket', () => {
  fc.assert(
    fc.property(duration, duration, (a, b) => {
      expect(bucketOf(Math.max(a, b))).toBeGreaterThanOrEqual(bucketOf(Math.min(a, b)));
    }),
    { numRuns: 5_000 },
  );
});

it('a duration that equals a shown bound is counted below it, and the next larger one above it', () => {
  for (const [shown, ms] of SHOWN_BOUNDS_MS.entries()) {
    expect(bucketOf(ms)).toBeLessThanOrEqual(SHOWN_BUCKETS[shown]!);
    expect(bucketOf(ms * (1 + Number.EPSILON * 4))).toBeGreaterThan(SHOWN_BUCKETS[shown]!);
  }
});

it.each([NaN, -1, -Infinity, 0, 0.5, 1])('%d ms belongs to the first bucket', (ms) => {
  expect(bucketOf(ms)).toBe(0);
});

it.each([LONGEST_MS, 10 * LONGEST_MS, 2 ** 40, Infinity])('%d ms belongs to the last bucket', (ms) => {
  expect(bucketOf(ms)).toBe(BUCKETS - 1);
});

it('quantiles of any durations are at most 6 % away from the true ones', () => {
  fc.assert(
    fc.property(
      fc.array(duration, { minLength: 1, maxLength: 300 }),
      fc.constantFrom(0.5, 0.9, 0.95, 0.99),
      (all, q) => {
        const truth = trueQuantile(all, q);
        expect(Math.abs((quantileOf(counted(all), q) ?? 0) - truth) / truth).toBeLessThanOrEqual(0.06);
      },
    ),
  );
  expect(quantileOf(new Int32Array(BUCKETS), 0.5)).toBe(null);
});
