import { Counter, Gauge, Registry, collectDefaultMetrics } from 'prom-client';
import { COUNTERS, type CounterName, type Metrics } from '../core/metrics.ts';

/** What the one label of a counter says. A counter that is not here has none. */
const LABELS: Partial<Record<CounterName, string>> = {
  commands_refused: 'code',
  commands_ended: 'outcome',
  context_reports: 'outcome',
  links_opened: 'kind',
  links_closed: 'cause',
  frames_refused: 'code',
  requests: 'door',
};
/** Every label comes from a closed set; should one ever not, the rest of it is counted together. */
const LABELS_MAX = 64;

export type Meter = Metrics & {
  /** Adds a gauge that is read anew for each exposition. A reader that throws leaves the gauge as it was. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /** The exposition in Prometheus' text format. */
  expose(): Promise<{ readonly contentType: string; readonly text: string }>;
  close(): void;
};

/** core's Metrics over a registry of its own, with the process' metrics beside them. */
export function createMetrics(): Meter {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const values = new Map<string, number>();
  const labels = new Map<CounterName, Set<string>>();
  const counters = new Map<string, Counter>();
  for (const [name, help] of Object.entries(COUNTERS)) {
    const label = labelOf(name);
    const labelNames = label === undefined ? [] : [label];
    counters.set(name, new Counter({ name: `callboard_${name}_total`, help, labelNames, registers: [registry] }));
  }
  const bounded = (name: CounterName, label: string): string => {
    const seen = labels.get(name) ?? new Set();
    labels.set(name, seen);
    if (!seen.has(label) && seen.size === LABELS_MAX) return 'other';
    seen.add(label);
    return label;
  };
  return {
    count(name, label) {
      const labelName = LABELS[name];
      const kept = label === undefined ? undefined : bounded(name, label);
      const key = kept === undefined ? name : `${name}:${kept}`;
      values.set(key, (values.get(key) ?? 0) + 1);
      counters.get(name)?.inc(labelName === undefined ? {} : { [labelName]: kept ?? 'none' });
    },
    snapshot: () => values,
    gauge(name, help, read) {
      const gauge: Gauge = new Gauge({
        name: `callboard_${name}`,
        help,
        registers: [registry],
        collect: () => setFrom(gauge, read),
      });
    },
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
    close: () => registry.clear(),
  };
}

function labelOf(name: string): string | undefined {
  return Object.entries(LABELS).find(([counter]) => counter === name)?.[1];
}

async function setFrom(gauge: Gauge, read: () => number | Promise<number>): Promise<void> {
  try {
    gauge.set(await read());
  } catch {
    // The exposition is worth more than one gauge of it.
  }
}
