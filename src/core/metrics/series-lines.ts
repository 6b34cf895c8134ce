/**
 * Combines what the nodes recorded to series. Counts are added, gauges are combined as SAMPLED_GAUGES says, and
 * quantiles are computed from the added histograms.
 */
import { LABELS, SAMPLED_GAUGES } from '../metrics.ts';
import { BUCKETS, quantileOf } from './buckets.ts';
import type { NodeReading } from './reading.ts';
import type { SeriesSource } from './series-source.ts';

/**
 * One line of a plot. `points`: one number per step. For a counter, it is the count in this step; for a gauge, its
 * value; for a quantile and for a gauge of time, a duration in seconds. It is null if no node recorded the step, or if
 * nothing was measured in it. `label`: null if the metric has no label, and for a quantile over all labels.
 */
export type SeriesLine = {
  readonly name: string;
  readonly label: string | null;
  readonly points: readonly (number | null)[];
};

const MS_PER_SECOND = 1000;
/** Matches metrics in seconds. Nodes report their values in milliseconds. */
const UNIT = /_seconds$/;

/**
 * The counts of one label, by the index of the point. Each point has one number for a counter, and one number per
 * bucket for a histogram.
 */
type Counts = Map<number, Float64Array>;

/** Returns the lines of one series, ordered by label. A label without recorded values has no line. */
export function linesOf(name: string, source: SeriesSource, readings: readonly NodeReading[]): readonly SeriesLine[] {
  const { metric, quantile } = source;
  const known = knownIn(readings);
  const size = quantile === null ? 1 : BUCKETS;
  const counted = countsByLabel(source, size, readings);
  const scale = source.kind === 'gauge' && UNIT.test(metric) ? MS_PER_SECOND : 1;
  const labelled = [...counted].filter(([label]) => label !== null).sort(byLabel);
  const together = quantile === null ? (counted.get(null) ?? new Map()) : sumOf(counted.values(), size);
  const showsTogether = quantile !== null || LABELS[metric] === undefined;
  const lines: readonly (readonly [string | null, Counts])[] = [
    ...(showsTogether ? [[null, together] as const] : []),
    ...labelled,
  ];
  return lines.map(([label, counts]) => {
    const points = known.map((isKnown, point) => (isKnown ? pointOf(counts.get(point), quantile, scale) : null));
    return { name, label, points };
  });
}

function pointOf(counts: Float64Array | undefined, quantile: number | null, scale: number): number | null {
  if (quantile === null) return (counts?.[0] ?? 0) / scale;
  const ms = counts ? quantileOf(counts, quantile) : null;
  return ms === null ? null : ms / MS_PER_SECOND;
}

function knownIn(readings: readonly NodeReading[]): readonly boolean[] {
  const length = Math.max(0, ...readings.map(({ known }) => known.length));
  return Array.from({ length }, (_, point) => readings.some(({ known }) => known[point] === '1'));
}

type Combine = (a: number, b: number) => number;

function countsByLabel(
  source: SeriesSource,
  size: number,
  readings: readonly NodeReading[],
): Map<string | null, Counts> {
  const found = new Map<string | null, Counts>();
  const combine =
    source.kind === 'gauge' && SAMPLED_GAUGES[source.metric] === 'max' ? Math.max : (a: number, b: number) => a + b;
  for (const { name, label, counts } of readings.flatMap(({ rows }) => rows)) {
    if (name !== source.metric) continue;
    const sums: Counts = found.get(label) ?? new Map();
    found.set(label, sums);
    addRow(sums, size, counts, combine);
  }
  return found;
}

function addRow(sums: Counts, size: number, flat: readonly number[], combine: Combine): void {
  const width = size === 1 ? 2 : 3;
  for (let at = 0; at + width <= flat.length; at += width) {
    const bucket = size === 1 ? 0 : (flat[at + 1] ?? 0);
    const counts = countsAt(sums, flat[at] ?? 0, size);
    counts[bucket] = combine(counts[bucket] ?? 0, flat[at + width - 1] ?? 0);
  }
}

/** Returns the counts of a point. They are created with 0 if they do not exist. */
function countsAt(sums: Counts, point: number, size: number): Float64Array {
  const counts = sums.get(point) ?? new Float64Array(size);
  sums.set(point, counts);
  return counts;
}

function sumOf(each: Iterable<Counts>, size: number): Counts {
  const sums: Counts = new Map();
  for (const counts of each)
    for (const [point, buckets] of counts) {
      const sum = countsAt(sums, point, size);
      for (const [bucket, count] of buckets.entries()) sum[bucket] = (sum[bucket] ?? 0) + count;
    }
  return sums;
}

function byLabel([a]: readonly [string | null, Counts], [b]: readonly [string | null, Counts]): number {
  return (a ?? '') < (b ?? '') ? -1 : 1;
}
