/** The counters and gauges as prom-client exposes them. Loaded at the first request for metrics. */
import { Counter, Gauge, Registry, collectDefaultMetrics } from 'prom-client';

/** A counter as it is read for an exposition. `label`: the name of its label, if it has one. */
export type CounterSource = {
  readonly name: string;
  readonly help: string;
  readonly label: string | null;
  /** The count of each label value; the key is undefined where the counter has no label. */
  readonly cells: ReadonlyMap<string | undefined, { readonly count: number }>;
};

/** A gauge as it is read for an exposition: pairs of label value and number; a gauge without a label yields one pair. */
export type GaugeSource = {
  readonly name: string;
  readonly help: string;
  readonly label: string | null;
  read(): Iterable<readonly [string, number]> | Promise<Iterable<readonly [string, number]>>;
};

/** Creates a registry that reads these sources at each exposition, and that has the default metrics of the process. */
export function createRegistry(sources: {
  readonly counters: readonly CounterSource[];
  readonly gauges: readonly GaugeSource[];
}): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const counter of sources.counters) addCounter(registry, counter);
  for (const gauge of sources.gauges) addGauge(registry, gauge);
  return registry;
}

function addCounter(registry: Registry, { name, help, label, cells }: CounterSource): void {
  const counter: Counter = new Counter({
    name: `callboard_${name}_total`,
    help,
    labelNames: label === null ? [] : [label],
    registers: [registry],
    collect() {
      counter.reset();
      for (const [value, { count }] of cells) counter.inc(label === null ? {} : { [label]: value ?? 'none' }, count);
    },
  });
}

function addGauge(registry: Registry, { name, help, label, read }: GaugeSource): void {
  const gauge: Gauge = new Gauge({
    name: `callboard_${name}`,
    help,
    labelNames: label === null ? [] : [label],
    registers: [registry],
    async collect() {
      try {
        for (const [value, number] of await read()) gauge.set(label === null ? {} : { [label]: value }, number);
      } catch {
        // One failing gauge must not make the whole exposition fail.
      }
    },
  });
}
