/** Computes the figures of measurements: medians, ratios and quantiles. */

/** Named measurements of one round. */
export type Sample = Readonly<Record<string, number>>;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** Returns the median of each measurement over all rounds. */
export function medians(rounds: readonly Sample[]): Sample {
  const keys = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(keys.map((key) => [key, median(rounds.map((round) => round[key] ?? NaN))]));
}

/**
 * Returns a quantile of sorted values. `share`: the fraction of the values, from 0 to 1, that do not exceed the
 * quantile.
 */
export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Formats a number with fewer decimals the larger it is: 0.850, 4.70, 13.0, 14285. Empty for a missing value. */
export function shown(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '';
  const size = Math.abs(value);
  return value.toFixed(size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0);
}
