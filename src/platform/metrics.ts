/** Implements core's Metrics in the text format of Prometheus. */
import { Counter, Gauge, Registry, collectDefaultMetrics } from 'prom-client';
import { COUNTERS, type CounterName, type Metrics } from '../core/metrics.ts';

/** The name of each counter's label. Counters that are not listed have no label. */
const LABELS: Partial<Record<CounterName, string>> = {
  commands_refused: 'code',
  commands_ended: 'outcome',
  context_reports: 'outcome',
  links_opened: 'kind',
  links_closed: 'cause',
  frames_refused: 'code',
  results_given_up: 'reason',
  requests: 'door',
  inbound_limited: 'way',
  sockets_refused: 'bound',
  tokens_refused: 'reason',
};
/** Label values come from closed sets. As a safeguard, values beyond this number are counted as `other`. */
const LABELS_MAX = 64;

export type Meter = Metrics & {
  /** Adds a gauge that is read for each exposition. If `read` throws or rejects, the gauge keeps its last value. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /**
   * Adds a gauge with one label, whose values come from a closed set. `read` yields pairs of label value and number.
   */
  gauges(name: string, help: string, of: { readonly label: string; read(): Iterable<readonly [string, number]> }): void;
  /** All metrics in the Prometheus text format. */
  expose(): Promise<{ readonly contentType: string; readonly text: string }>;
  close(): void;
};

/**
 * Implements core's Metrics with a Prometheus registry of its own, which also has the default metrics of the process.
 */
export function createMetrics(): Meter {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const tallies = new Map<string, Tally>();
  for (const [name, help] of Object.entries(COUNTERS)) tallies.set(name, createTally(registry, name, help));
  return {
    count(name, label) {
      tallies.get(name)?.add(label);
    },
    snapshot: () => new Map(tallies.values().flatMap((tally) => tally.values())),
    gauge(name, help, read) {
      const gauge: Gauge = new Gauge({
        name: `callboard_${name}`,
        help,
        registers: [registry],
        collect: () => setFrom(gauge, read),
      });
    },
    gauges(name, help, { label, read }) {
      const gauge: Gauge = new Gauge({
        name: `callboard_${name}`,
        help,
        labelNames: [label],
        registers: [registry],
        collect() {
          for (const [value, number] of read()) gauge.set({ [label]: value }, number);
        },
      });
    },
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
    close: () => registry.clear(),
  };
}

type Tally = {
  add(label: string | undefined): void;
  /** Counter name (with `:label` where it has one) to its value. */
  values(): IteratorObject<[string, number]>;
};

/** A counter whose increments only change a number in memory; the registry gets the values when it is read. */
function createTally(registry: Registry, name: string, help: string): Tally {
  const labelName = labelOf(name);
  const cells = new Map<string | undefined, { count: number }>();
  const counter: Counter = new Counter({
    name: `callboard_${name}_total`,
    help,
    labelNames: labelName === undefined ? [] : [labelName],
    registers: [registry],
    collect() {
      counter.reset();
      for (const [label, { count }] of cells)
        counter.inc(labelName === undefined ? {} : { [labelName]: label ?? 'none' }, count);
    },
  });
  const cellOf = (label: string | undefined): { count: number } => {
    const bounded = label !== undefined && cells.size >= LABELS_MAX ? 'other' : label;
    const cell = cells.get(bounded) ?? { count: 0 };
    cells.set(bounded, cell);
    return cell;
  };
  return {
    add(label) {
      (cells.get(label) ?? cellOf(label)).count++;
    },
    values: () => cells.entries().map(([label, { count }]) => [label === undefined ? name : `${name}:${label}`, count]),
  };
}

function labelOf(name: string): string | undefined {
  return Object.entries(LABELS).find(([counter]) => counter === name)?.[1];
}

async function setFrom(gauge: Gauge, read: () => number | Promise<number>): Promise<void> {
  try {
    gauge.set(await read());
  } catch {
    // One failing gauge must not make the whole exposition fail.
  }
}
