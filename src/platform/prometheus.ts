/** Writes the metrics in Prometheus' formats with prom-client. The module is loaded at the first exposition only. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { SHOWN_BOUNDS_MS, SHOWN_BUCKETS } from '../core/metrics/buckets.ts';
import { counterText, gaugeText, histogramText, type MetricText } from '../core/metrics/metric-texts.ts';
import {
  COUNTER_NAMES,
  HISTOGRAM_NAMES,
  type CounterName,
  type GaugeName,
  type HistogramName,
} from '../core/metrics.ts';
import type { Cell, Counts, Exemplar, Exemplars } from './counts.ts';
/** `text`: version 0.0.4 of Prometheus' own format. `openmetrics`: OpenMetrics 1.0.0, with exemplars. */
export type MetricsFormat = 'text' | 'openmetrics';

/** Reads a gauge: returns pairs of label value and number, or one pair if the gauge has no label. */
export type GaugeReader = () => Iterable<readonly [string, number]> | Promise<Iterable<readonly [string, number]>>;

type ExpositionSources = {
  readonly counts: Counts;
  readonly exemplars: Exemplars;
  readonly gauges: ReadonlyMap<GaugeName, GaugeReader>;
};

export type Exposition = { readonly contentType: string; text(): Promise<string>; close(): void };

type AnyRegistry = Registry<typeof Registry.PROMETHEUS_CONTENT_TYPE | typeof Registry.OPENMETRICS_CONTENT_TYPE>;

/**
 * Gauges of prom-client that have names reserved for counters (`_total`). They are left out; `nodejs_active_resources`
 * shows the same numbers.
 */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/**
 * Creates an exposition of these sources and of the process. Each registry serves one format only, because prom-client
 * renames the counters of a registry for OpenMetrics.
 */
export function createExposition(format: MetricsFormat, sources: ExpositionSources): Exposition {
  const registry: AnyRegistry = new Registry();
  if (format === 'openmetrics') registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry as Registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  for (const name of COUNTER_NAMES) addCounter(registry, name, sources);
  for (const name of HISTOGRAM_NAMES) registry.registerMetric(new RecordedHistogram(name, format, sources));
  for (const [name, read] of sources.gauges) addGauge(registry, name, read);
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    close: () => registry.clear(),
  };
}

function addCounter(registry: AnyRegistry, name: CounterName, { counts }: ExpositionSources): void {
  const text = counterText(name);
  const counter: Counter = new Counter({
    ...configOf(text),
    registers: [registry as Registry],
    collect() {
      counter.reset();
      for (const { label, base } of counts.cells(name)) counter.inc(labelsOf(text, label), counts.total(base));
    },
  });
}

function addGauge(registry: AnyRegistry, name: GaugeName, read: GaugeReader): void {
  const text = gaugeText(name);
  const gauge: Gauge = new Gauge({
    ...configOf(text),
    registers: [registry as Registry],
    async collect() {
      try {
        const rows = [...(await read())];
        gauge.reset();
        for (const [value, number] of rows) gauge.set(labelsOf(text, value), number);
      } catch {
        // One failed gauge must not make the whole exposition fail.
      }
    },
  });
}

/** One sample in the form that prom-client requires. */
type Sample = {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly exemplar?: { readonly labelSet: Exemplar['labels']; readonly value: number; readonly timestamp: number };
};

/** A histogram whose numbers the relay counts. prom-client only writes them. */
class RecordedHistogram extends Histogram {
  readonly #name: HistogramName;
  readonly #text: MetricText;
  readonly #format: MetricsFormat;
  readonly #sources: ExpositionSources;

  constructor(name: HistogramName, format: MetricsFormat, sources: ExpositionSources) {
    const text = histogramText(name);
    super({ ...configOf(text), registers: [] });
    this.#name = name;
    this.#text = text;
    this.#format = format;
    this.#sources = sources;
  }

  /** prom-client calls this method for each exposition. */
  getForPromString(): Promise<object> {
    const { exposedName: name, help } = this.#text;
    const cells = this.#sources.counts.cells(this.#name);
    return Promise.resolve({ name, help, type: 'histogram', values: cells.flatMap((cell) => this.#samples(cell)) });
  }

  #samples(cell: Cell): readonly Sample[] {
    const { label, base, size, sum } = cell;
    const { counts, exemplars } = this.#sources;
    const { exposedName } = this.#text;
    const labels = labelsOf(this.#text, label);
    const upTo = countsUpTo(counts, base, size);
    const buckets = [...SHOWN_BUCKETS, size - 1].map((bucket, shown): Sample => {
      const exemplar = exemplars.get(cell, shown);
      return {
        metricName: `${exposedName}_bucket`,
        labels: { ...labels, le: this.#boundText(shown) },
        value: upTo[bucket] ?? 0,
        ...(exemplar && {
          exemplar: { labelSet: exemplar.labels, value: exemplar.seconds, timestamp: exemplar.at },
        }),
      };
    });
    return [
      ...buckets,
      { metricName: `${exposedName}_sum`, labels, value: sum / 1000 },
      { metricName: `${exposedName}_count`, labels, value: upTo[size - 1] ?? 0 },
    ];
  }

  /** Returns the upper bound of a shown bucket as text, in seconds. OpenMetrics writes whole numbers as `1.0`. */
  #boundText(shown: number): string {
    const ms = SHOWN_BOUNDS_MS[shown];
    if (ms === undefined) return '+Inf';
    const seconds = ms / 1000;
    return this.#format === 'openmetrics' && Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds);
  }
}

/** Returns the cumulative count of each bucket: the number of durations in it and in all lower buckets. */
function countsUpTo(counts: Counts, base: number, size: number): Float64Array {
  const sums = new Float64Array(size);
  let sum = 0;
  for (let bucket = 0; bucket < size; bucket++) sums[bucket] = sum += counts.total(base + bucket);
  return sums;
}

function configOf({ exposedName, help, label }: MetricText) {
  return { name: exposedName, help, labelNames: label === null ? [] : [label] };
}

function labelsOf({ label }: MetricText, value: string | undefined): Record<string, string> {
  return label === null ? {} : { [label]: value ?? 'none' };
}
