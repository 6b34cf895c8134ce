/** Describes all metrics of the relay as data, for documentation, dashboards and alert rules. */
import {
  COUNTER_NAMES,
  HISTOGRAM_NAMES,
  GAUGE_NAMES,
  COUNTERS,
  type CounterName,
  HISTOGRAMS,
  type HistogramName,
  GAUGES,
  type GaugeName,
  LABELS,
  type MetricName,
} from '../metrics.ts';
import { seriesOf } from './series-source.ts';

export type MetricType = 'counter' | 'histogram' | 'gauge';

export type MetricText = {
  /** The name in `/metrics`. The samples of a histogram have the suffixes `_bucket`, `_sum` and `_count`. */
  readonly exposedName: string;
  readonly type: MetricType;
  readonly help: string;
  /** The name of the metric's label; null if it has none. */
  readonly label: string | null;
  /** The series of `Query.series` that show the metric; empty for a gauge that is not sampled. */
  readonly series: readonly string[];
};

const PREFIX = 'callboard_';

/** All metrics: counters, histograms, gauges. */
export const METRICS: readonly MetricText[] = [
  ...COUNTER_NAMES.map(counterText),
  ...HISTOGRAM_NAMES.map(histogramText),
  ...GAUGE_NAMES.map(gaugeText),
];

export function counterText(name: CounterName): MetricText {
  return text('counter', name, { exposedName: `${PREFIX}${name}_total`, help: COUNTERS[name] });
}

export function histogramText(name: HistogramName): MetricText {
  return text('histogram', name, { exposedName: PREFIX + name, help: HISTOGRAMS[name] });
}

export function gaugeText(name: GaugeName): MetricText {
  return text('gauge', name, { exposedName: PREFIX + name, help: GAUGES[name] });
}

function text(type: MetricType, name: MetricName, shown: Pick<MetricText, 'exposedName' | 'help'>): MetricText {
  return { ...shown, type, label: LABELS[name] ?? null, series: seriesOf(name) };
}
