/** Implements core's Metrics in the text format of Prometheus. */
import type { Registry } from 'prom-client';
import { COUNTERS, type CounterName, type Metrics } from '../core/metrics.ts';
import type { CounterSource, GaugeSource } from './prometheus.ts';

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
 * Implements core's Metrics with plain counters in memory. The Prometheus client is loaded for the first exposition,
 * because most of its cost is the memory of its modules and its observers of the process. Its histogram of garbage
 * collections counts from then on.
 */
export function createMetrics(): Meter {
  const tallies = new Map<string, Tally>(
    Object.entries(COUNTERS).map(([name, help]) => [name, createTally(name, help)]),
  );
  const gauges: GaugeSource[] = [];
  let registry: Promise<Registry> | null = null;
  const open = async (): Promise<Registry> => {
    const { createRegistry } = await import('./prometheus.ts');
    return createRegistry({ counters: [...tallies.values()].map(({ source }) => source), gauges });
  };
  return {
    count(name, label) {
      tallies.get(name)?.add(label);
    },
    snapshot: () => new Map(tallies.values().flatMap(({ source }) => valuesOf(source))),
    gauge: (name, help, read) => void gauges.push({ name, help, label: null, read: async () => [['', await read()]] }),
    gauges: (name, help, { label, read }) => void gauges.push({ name, help, label, read }),
    async expose() {
      const opened = await (registry ??= open());
      return { contentType: opened.contentType, text: await opened.metrics() };
    },
    close: () => void registry?.then((made) => made.clear()),
  };
}

type Tally = { readonly source: CounterSource; add(label: string | undefined): void };

/** A counter whose increments only change a number in memory. */
function createTally(name: string, help: string): Tally {
  const cells = new Map<string | undefined, { count: number }>();
  const cellOf = (label: string | undefined): { count: number } => {
    const bounded = label !== undefined && cells.size >= LABELS_MAX ? 'other' : label;
    const cell = cells.get(bounded) ?? { count: 0 };
    cells.set(bounded, cell);
    return cell;
  };
  return {
    source: { name, help, label: labelOf(name), cells },
    add(label) {
      (cells.get(label) ?? cellOf(label)).count++;
    },
  };
}

/** Counter name (with `:label` where it has one) to its value. */
function valuesOf({ name, cells }: CounterSource): IteratorObject<[string, number]> {
  return cells.entries().map(([label, { count }]) => [label === undefined ? name : `${name}:${label}`, count]);
}

function labelOf(name: string): string | null {
  return Object.entries(LABELS).find(([counter]) => counter === name)?.[1] ?? null;
}
