/**
 * Maps the name of a series to its metric, and a metric to its series. A series shows a counter, a sampled gauge, or a
 * quantile of a histogram, such as `command_p99`.
 */
import {
  type CounterName,
  type SampledGaugeName,
  type HistogramName,
  COUNTER_NAMES,
  SAMPLED_GAUGE_NAMES,
  HISTOGRAM_NAMES,
  type MetricName,
} from '../metrics.ts';

/**
 * The metric whose values a series shows. `quantile`: the quantile of a histogram, such as 0.99; null for a counter or
 * a gauge.
 */
export type SeriesSource =
  | { readonly kind: 'counter'; readonly metric: CounterName; readonly quantile: null }
  | { readonly kind: 'gauge'; readonly metric: SampledGaugeName; readonly quantile: null }
  | { readonly kind: 'histogram'; readonly metric: HistogramName; readonly quantile: number };

const QUANTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;
const UNIT = /_seconds$/;

const SOURCES: ReadonlyMap<string, SeriesSource> = new Map<string, SeriesSource>([
  ...COUNTER_NAMES.map((metric) => [metric, { kind: 'counter', metric, quantile: null }] as const),
  ...SAMPLED_GAUGE_NAMES.map((metric) => [metric, { kind: 'gauge', metric, quantile: null }] as const),
  ...HISTOGRAM_NAMES.flatMap((metric) =>
    Object.entries(QUANTILES).map(
      ([suffix, quantile]) =>
        [`${metric.replace(UNIT, '')}_${suffix}`, { kind: 'histogram', metric, quantile }] as const,
    ),
  ),
]);

/** Returns the metric that a series shows; undefined if there is no series with this name. */
export function sourceOf(series: string): SeriesSource | undefined {
  return SOURCES.get(series);
}

/** Returns the names of all series that show this metric. */
export function seriesOf(name: MetricName): readonly string[] {
  return [...SOURCES].flatMap(([series, { metric }]) => (metric === name ? [series] : []));
}
