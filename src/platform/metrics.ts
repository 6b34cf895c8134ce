/** Implements core's Metrics in memory, records the numbers as time series, and writes them for Prometheus. */
import { COUNTER_NAMES, HISTOGRAM_NAMES, SAMPLED_GAUGE_NAMES, type GaugeName, type Metrics } from '../core/metrics.ts';
import { Counts, Exemplars, Gauges } from './counts.ts';
import type { Exposition, GaugeReader, MetricsFormat } from './prometheus.ts';
import { Recorder } from './time-series.ts';

export type Meter = Metrics & {
  /** Registers the function that reads a gauge at each exposition. If it fails, the gauge keeps its last value. */
  gauge(name: GaugeName, read: () => number | Promise<number>): void;
  /**
   * Registers the function that reads a gauge with a label. A label value for which `read` yields no pair is not
   * written.
   */
  gauges(name: GaugeName, read: GaugeReader): void;
  /** Writes all metrics as text. */
  expose(format?: MetricsFormat): Promise<{ readonly contentType: string; readonly text: string }>;
  /** How many bytes the recorded time series take, approximately. */
  readonly recordedBytes: number;
  close(): void;
};

/**
 * Implements core's Metrics. The Prometheus client (prom-client) is loaded at the first exposition, to save memory
 * until then, and its histogram of garbage collections begins then. `now`: epoch milliseconds, for the times of
 * exemplars.
 */
export function createMetrics(now: () => number = Date.now): Meter {
  const counts = new Counts([...COUNTER_NAMES, ...SAMPLED_GAUGE_NAMES], HISTOGRAM_NAMES);
  const sampled = new Gauges(counts);
  const recorder = new Recorder(counts, sampled);
  const exemplars = new Exemplars(now);
  const gauges = new Map<GaugeName, GaugeReader>();
  const open = new Map<MetricsFormat, Promise<Exposition>>();
  const load = async (format: MetricsFormat): Promise<Exposition> => {
    const { createExposition } = await import('./prometheus.ts');
    return createExposition(format, { counts, exemplars, gauges });
  };
  const totalsOf = (name: string): readonly [string, number][] =>
    counts.cells(name).map(({ label, base }) => [label === undefined ? name : `${name}:${label}`, counts.total(base)]);
  return {
    count: (name, label) => counts.count(name, label),
    observe(name, ms, label, of) {
      const cell = counts.observe(name, ms, label);
      if (of && cell) exemplars.add(cell, ms, of);
    },
    sample: (name, read) => sampled.add(name, read),
    snapshot: () => new Map(COUNTER_NAMES.flatMap(totalsOf)),
    closeSlot(at) {
      recorder.closeSlot(at);
      exemplars.nextSlot();
    },
    read: (query, at) => recorder.read(query, at),
    gauge: (name, read) => void gauges.set(name, async () => [['', await read()]]),
    gauges: (name, read) => void gauges.set(name, read),
    async expose(format = 'text') {
      if (format === 'openmetrics') exemplars.begin();
      const exposition = open.get(format) ?? load(format);
      open.set(format, exposition);
      const { contentType, text } = await exposition;
      return { contentType, text: await text() };
    },
    get recordedBytes() {
      return recorder.bytes;
    },
    close() {
      for (const exposition of open.values()) void exposition.then(({ close }) => close());
    },
  };
}
