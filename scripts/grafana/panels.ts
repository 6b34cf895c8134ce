/** Defines the panels of the dashboard and what they show, in PromQL. `dashboard.ts` decides their positions. */
import { METRICS, type MetricText } from '../../src/core/metrics/metric-texts.ts';
import type { GaugeName, MetricName } from '../../src/core/metrics.ts';
export type Query = { readonly expr: string; readonly legend: string };
export type Unit = 'short' | 's' | 'ops' | 'percentunit' | 'bytes';
export type Panel = {
  readonly type: 'timeseries' | 'stat';
  readonly title: string;
  readonly description: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
};

const OWN = '{job="$job", instance=~"$instance"}';
const RATE = '[$__rate_interval]';

/** Gauges that describe the whole deployment. Each node reports the same value, so the dashboard shows the maximum. */
const OF_DEPLOYMENT: ReadonlySet<MetricName> = new Set<GaugeName>([
  'reservations',
  'reservations_limit',
  'reservations_fullest_ratio',
  'nodes',
]);

/** Returns the panel of one metric, according to the metric's type and label. */
export function panelOf(name: MetricName): Panel {
  const text = METRICS.find(({ exposedName }) => exposedName.replace(/^callboard_|_total$/g, '') === name);
  if (!text) throw new Error(`The list of metrics has no ${name}.`);
  const { exposedName: exposed, help: description, type } = text;
  const queries = { counter: counterQueries, histogram: histogramQueries, gauge: gaugeQueries }[type](text, name);
  return {
    type: 'timeseries',
    title: titleOf(name),
    description: `${description} \`${exposed}\``,
    unit: unitOf(name, type),
    queries,
  };
}

function counterQueries({ exposedName, label }: MetricText): readonly Query[] {
  const by = label ?? 'instance';
  return [{ expr: `sum by (${by}) (rate(${exposedName}${OWN}${RATE}))`, legend: `{{${by}}}` }];
}

function histogramQueries({ exposedName }: MetricText): readonly Query[] {
  return [0.5, 0.9, 0.99].map((quantile) => ({
    expr: `histogram_quantile(${quantile}, sum by (le) (rate(${exposedName}_bucket${OWN}${RATE})))`,
    legend: `p${quantile * 100}`,
  }));
}

function gaugeQueries({ exposedName, label }: MetricText, name: MetricName): readonly Query[] {
  const by = OF_DEPLOYMENT.has(name) ? (label ?? '') : ['instance', ...(label === null ? [] : [label])].join(', ');
  const legend = by
    .split(', ')
    .filter(Boolean)
    .map((part) => `{{${part}}}`)
    .join(' ');
  const expr = by === '' ? `max(${exposedName}${OWN})` : `max by (${by}) (${exposedName}${OWN})`;
  return [{ expr, legend: legend || 'deployment' }];
}

function titleOf(name: MetricName): string {
  const words = name.replace(/_seconds$/, '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function unitOf(name: MetricName, type: MetricText['type']): Unit {
  if (type === 'counter') return 'ops';
  if (name.endsWith('_seconds')) return 's';
  return name.endsWith('_ratio') ? 'percentunit' : 'short';
}

const stat = (title: string, unit: Unit, expr: string, description: string): Panel => ({
  ...{ type: 'stat', title, description, unit },
  queries: [{ expr, legend: '' }],
});
const process = (title: string, unit: Unit, metric: string, description: string): Panel => ({
  ...{ type: 'timeseries', title, description, unit },
  queries: [{ expr: `max by (instance) (${metric})`, legend: '{{instance}}' }],
});
const shareOf = (outcome: string): string =>
  `(sum(rate(callboard_commands_ended_total{job="$job", instance=~"$instance", outcome="${outcome}"}${RATE})) or vector(0)) / sum(rate(callboard_commands_ended_total${OWN}${RATE}))`;

/** The panels that an operator looks at first. */
export const OVERVIEW: readonly Panel[] = [
  stat('Relays that answer', 'short', 'sum(up{job="$job"})', 'Relays that Prometheus can scrape.'),
  stat('Relays that are ready', 'short', `sum(callboard_ready${OWN})`, 'Relays that take new links and commands.'),
  stat('Clients', 'short', `sum(callboard_client_links${OWN})`, 'Open links of clients on all relays.'),
  stat('Commands a second', 'ops', `sum(rate(callboard_commands_admitted_total${OWN}${RATE}))`, 'Commands admitted.'),
  stat('Completed', 'percentunit', shareOf('completed'), 'The fraction of commands that ended completed.'),
  stat('Unknown', 'percentunit', shareOf('outcome_unknown'), 'The fraction of commands whose outcome is unknown.'),
  stat('Callers that wait', 'short', `sum(callboard_waiters${OWN})`, 'Pending RPCs of all relays.'),
  stat('Oldest wait', 's', `max(callboard_oldest_wait_seconds${OWN})`, 'Age of the oldest pending RPC.'),
];

/** The panels about the relays' processes, with metrics of prom-client. */
export const PROCESS: readonly Panel[] = [
  process('CPU', 'percentunit', `rate(process_cpu_seconds_total${OWN}${RATE})`, 'Processor time: 100 % is one core.'),
  process('Memory', 'bytes', `process_resident_memory_bytes${OWN}`, 'Resident memory of the process.'),
  process('Heap', 'bytes', `nodejs_heap_size_used_bytes${OWN}`, 'JavaScript objects in memory.'),
  process(
    'Event loop delay (p99)',
    's',
    `nodejs_eventloop_lag_p99_seconds${OWN}`,
    'Delay of the event loop since the last scrape.',
  ),
  process('Open descriptors', 'short', `process_open_fds${OWN}`, 'Open files and sockets.'),
  process('Uptime', 's', `time() - process_start_time_seconds${OWN}`, 'Time since the start of the process.'),
];
