/**
 * The list of all metrics, the port through which the relay counts and measures, the series and the buckets of
 * histograms, and the form in which nodes send each other what they recorded. Each metric has at most one label, whose
 * values are bounded, so the number of series stays small.
 */

/** The counters, each with its help text. The listing of nodes shows some of them for each node. */
const COUNTERS = {
  commands_admitted: 'Commands admitted.',
  commands_refused: 'Invocations refused before admission, by code.',
  commands_dispatched: 'Commands whose write to the client socket was started.',
  commands_acknowledged: 'Commands acknowledged by their client.',
  commands_ended: 'Commands ended, by outcome.',
  late_results: 'Results that arrived after their command had ended and were kept as evidence.',
  fenced_results: 'Results refused because another instance of the client is bound.',
  node_losses: 'Times this node lost its lease, or its store lost confirmed data, by cause.',
  commands_recovered: 'Commands queued or written again after their node or link was lost.',
  payloads_spilled: 'Payloads written to the spill store.',
  payloads_unstored: 'Payloads that could not be written to the spill store.',
  results_given_up:
    'Results of ended commands that are no longer retained within their window, by reason: `share`, `retention` or `record` (it was reduced).',
  records_reduced: 'Records of ended commands reduced to marks for lack of room.',
  ids_forgotten: 'Ids made by the relay that were forgotten early: there was no room for a record or a mark.',
  dedup_marks_evicted: 'Deduplication marks dropped early for lack of room: a duplicate may then be retained again.',
  messages_ingested: 'Messages received for ingestion, by verdict.',
  context_reports: 'Reports of contexts and windows, by outcome.',
  replies_dropped: 'Replies dropped because their waiter no longer existed.',
  links_opened: 'Links opened, by kind: `client` or `caller`.',
  links_closed: 'Client links closed, by cause.',
  frames_refused: 'Frames refused, by code.',
  requests:
    'HTTP requests and upgrades, by the part of the relay that answered: `graphql`, `rest`, `events`, `builtin` (other fixed paths), `preflight` (of CORS) or `none`.',
  inbound_limited: 'Times a user was slowed or refused for sending more bytes per second than allowed, by transport.',
  sockets_refused:
    'Connections closed to make room because too many are open without a valid token, by bound, and those refused by the share `sockets`.',
  unread_cut: 'Connections closed because their user left more bytes unread than the share allows.',
  sockets_cut: 'Connections closed because their peer read nothing of a pending answer.',
  tokens_refused: 'Tokens and tickets refused, by reason.',
  errors_masked: 'Unexpected errors reported to the requester as `internal`.',
  audit_failures:
    'Rows of the audit that could not be written. The act of such a row was refused, or its outcome is missing.',
} as const;

/** The histograms of durations, which are measured in milliseconds and shown in seconds. */
const HISTOGRAMS = {
  command_seconds: 'Time from the admission of a command to its end, by outcome.',
  dispatch_seconds: 'Time that a command spent in the queue of its client’s link, from queued to dispatched.',
  ack_seconds: 'Time from the dispatch of a command to the acknowledgement of its client.',
  client_rtt_seconds: 'Time from a ping on a link to the pong of its peer.',
  http_seconds:
    'Time from the arrival of an HTTP request to the end of its response, by route. Event streams are left out.',
} as const;

/**
 * The gauges: values that are computed when metrics are read. Those in SAMPLED_GAUGES are also computed every five
 * seconds.
 */
const GAUGES = {
  ready: 'Whether this node takes new links and commands, as `/readyz` says: 1, or 0 if not.',
  nodes:
    'Nodes of the deployment, by state: `live`, or `stale` for some 30 s after the lease of a node ended without its stop.',
  links: 'Open links of clients and callers, also those that are not welcomed yet.',
  client_links: 'Open links of clients on this node, by client type.',
  caller_links: 'Open links of callers on this node.',
  commands_queued: 'Commands queued for the client links of this node.',
  commands_in_flight: 'Commands that were dispatched on the client links of this node and have not ended.',
  waiters: 'Pending RPCs of the deployment: waits of callers for a command.',
  oldest_wait_seconds: 'Age of the oldest pending RPC of the deployment; 0 if there is none.',
  reservations:
    'Live commands of the deployment by admission scope: the 20 scopes of the policy with the most, and `other` for the rest, such as the scopes of single users.',
  reservations_limit: 'Capacity of the admission scopes that `reservations` names, under the policy of this node.',
  reservations_fullest_ratio:
    'Highest fraction of its capacity that any admission scope has in use, also that of a user.',
  share_used: 'Amount of each share that all users together hold, in bytes or as a count.',
  share_limit: 'Limit of each share for all users together; shares without a total have no value.',
  share_users_over: 'Number of users who hold more than their guarantee of each share.',
  unauthenticated_sockets: 'Open sockets without a valid token.',
  policy_fault: 'Whether this node does not use its changed policy file and runs the policy before it: 1, or 0 if not.',
} as const;

/**
 * The gauges that are also recorded over time, with the node's value at the end of each time slot. `sum` or `max` says
 * how the values of several nodes are combined. If one step of a series has several slots, `sum` takes the value of the
 * last slot and `max` the highest value.
 */
export const SAMPLED_GAUGES = {
  client_links: 'sum',
  caller_links: 'sum',
  commands_queued: 'sum',
  commands_in_flight: 'sum',
  waiters: 'sum',
  oldest_wait_seconds: 'max',
} as const satisfies Partial<Record<GaugeName, 'sum' | 'max'>>;

export type SampledGaugeName = keyof typeof SAMPLED_GAUGES;
export type CounterName = keyof typeof COUNTERS;
export type HistogramName = keyof typeof HISTOGRAMS;
export type GaugeName = keyof typeof GAUGES;
export type MetricName = CounterName | HistogramName | GaugeName;

export const COUNTER_NAMES: readonly CounterName[] = namesOf(COUNTERS);
export const HISTOGRAM_NAMES: readonly HistogramName[] = namesOf(HISTOGRAMS);
export const GAUGE_NAMES: readonly GaugeName[] = namesOf(GAUGES);
export const SAMPLED_GAUGE_NAMES: readonly SampledGaugeName[] = namesOf(SAMPLED_GAUGES);

/** The name of each metric's label. Metrics that are not listed have no label. */
export const LABELS: Readonly<Partial<Record<MetricName, string>>> = {
  commands_refused: 'code',
  commands_ended: 'outcome',
  node_losses: 'cause',
  messages_ingested: 'verdict',
  context_reports: 'outcome',
  links_opened: 'kind',
  links_closed: 'cause',
  frames_refused: 'code',
  results_given_up: 'reason',
  requests: 'handler',
  inbound_limited: 'transport',
  sockets_refused: 'bound',
  tokens_refused: 'reason',
  command_seconds: 'outcome',
  http_seconds: 'route',
  nodes: 'state',
  client_links: 'client_type',
  reservations: 'scope',
  reservations_limit: 'scope',
  share_used: 'share',
  share_limit: 'share',
  share_users_over: 'share',
};

/** The command that a measured duration belongs to. Readers of the metrics get it as an example of such a duration. */
export type MeasuredCommand = {
  readonly commandId: string;
  readonly traceId: string | null;
  readonly traceFlags: string | null;
  /** The span of the call, as the command's record holds it. */
  readonly callSpan: string | null;
};

/**
 * Reads a gauge as pairs of label value and number. The label is null if the gauge has none. Numbers are whole;
 * durations are in milliseconds.
 */
export type SampleReader = () => Iterable<readonly [string | null, number]>;

export interface Metrics {
  count(name: CounterName, label?: string): void;
  /** Adds one duration. A negative one, which differing clocks of nodes can cause, counts as zero. */
  observe(name: HistogramName, ms: number, label?: string, of?: MeasuredCommand): void;
  /**
   * Sets the function that reads a sampled gauge. It is called at the end of each slot, and when the series of this
   * node are read.
   */
  sample(name: SampledGaugeName, read: SampleReader): void;
  /**
   * Returns what each counter has counted since the node started. The key is the name of the counter, followed by
   * `:label` if it has a label.
   */
  snapshot(): ReadonlyMap<string, number>;
  /**
   * Closes the current time slot if `now` (epoch milliseconds) is beyond it. All that was counted and measured since
   * the last call belongs to that slot, and the sampled gauges are read now as its values.
   */
  closeSlot(now: number): void;
  /** Returns what this node recorded in a window of time, including the open slot. */
  read(query: ReadingQuery, now: number): NodeReading;
}

export const silentMetrics: Metrics = {
  count() {},
  observe() {},
  sample() {},
  snapshot: () => new Map(),
  closeSlot() {},
  read: ({ points }) => ({ known: '0'.repeat(points), rows: [] }),
};

function namesOf<Name extends string>(helps: Readonly<Record<Name, string>>): readonly Name[] {
  return Object.keys(helps) as Name[];
}

// Finds the metric that a series shows, and the series that show a metric. A series shows a counter, a sampled gauge,
// or a quantile of a histogram, such as `command_p99`.

/**
 * Where the values of a series come from. `quantile`: which quantile of a histogram, such as 0.99; null for a counter
 * and for a gauge.
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

/** Returns the counter, gauge or quantile that a series shows; undefined if there is no series of this name. */
export function sourceOf(series: string): SeriesSource | undefined {
  return SOURCES.get(series);
}

/** Returns the names of all series that show this metric. */
function seriesOf(name: MetricName): readonly string[] {
  return [...SOURCES].flatMap(([series, { metric }]) => (metric === name ? [series] : []));
}

// Every metric that the relay exposes, as data: for documentation, dashboards and alert rules.

export type MetricType = 'counter' | 'histogram' | 'gauge';

export type MetricText = {
  /** The name in `/metrics`. Samples of a histogram end with `_bucket`, `_sum` and `_count`. */
  readonly exposedName: string;
  readonly type: MetricType;
  readonly help: string;
  /** The name of its label; null if it has none. */
  readonly label: string | null;
  /** The names under which `Query.series` shows it; empty for a gauge that is not sampled. */
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

// The buckets of every histogram. They are log-linear, eight for each doubling, from 1 ms to the longest life of a
// command, so a quantile is at most 6 % off. Each bound that `/metrics` shows is also the bound of a bucket, so that
// `/metrics` and the series count the same.

/** The upper bounds that `/metrics` shows, in milliseconds. */
export const SHOWN_BOUNDS_MS: readonly number[] = [
  ...[5, 10, 25, 50, 100, 250, 500],
  ...[1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000],
];

/** The binary logarithm of the number of buckets for each doubling of the value. */
const LOG_PARTS = 3;
const PARTS = 2 ** LOG_PARTS;
/**
 * The longest life of a command: 600 s, the sum of the largest budgets to connect and to respond. Longer durations
 * share the last bucket.
 */
const LONGEST_MS = 600_000;
/** The upper bounds of the log-linear buckets, in milliseconds, before the shown bounds divide some of them. */
const PLAIN_BOUNDS_MS = plainBounds();
/**
 * The upper bound of each bucket, in milliseconds. A bucket contains the durations above the bound of the previous one.
 */
const BOUNDS_MS = [...new Set([...PLAIN_BOUNDS_MS, ...SHOWN_BOUNDS_MS])].sort((a, b) => a - b);

export const BUCKETS: number = BOUNDS_MS.length;

/**
 * For each plain bucket: the first bucket that is a part of it, and the shown bound that divides it; Infinity if none
 * does.
 */
const FIRST = Uint8Array.from(PLAIN_BOUNDS_MS, (_, plain) => BOUNDS_MS.findIndex((ms) => ms > lowerPlainBound(plain)));
const DIVIDED_AT = Float64Array.from(
  PLAIN_BOUNDS_MS,
  (upper, plain) => SHOWN_BOUNDS_MS.find((ms) => ms > lowerPlainBound(plain) && ms < upper) ?? Infinity,
);

/** For each shown bound: the bucket of which it is the upper bound. */
export const SHOWN_BUCKETS: readonly number[] = SHOWN_BOUNDS_MS.map((ms) => BOUNDS_MS.indexOf(ms));

/**
 * For each bucket: the index of the first shown bound that is not below it. A bucket above all shown bounds has the
 * number of shown bounds instead.
 */
const SHOWN_INDEX = Uint8Array.from(BOUNDS_MS, (upper) => {
  const found = SHOWN_BOUNDS_MS.findIndex((ms) => upper <= ms);
  return found < 0 ? SHOWN_BOUNDS_MS.length : found;
});

/**
 * Returns the index of the lowest shown bound that the duration does not exceed; the number of bounds if it exceeds
 * all.
 */
export function shownIndexOf(ms: number): number {
  return SHOWN_INDEX[bucketOf(ms)] ?? SHOWN_BOUNDS_MS.length;
}

/**
 * Returns the bucket of a duration in milliseconds. A duration of 1 ms or less, or a value that is not a number,
 * belongs to the first bucket.
 */
export function bucketOf(ms: number): number {
  const parts = Math.ceil(ms * PARTS) - 1;
  if (!(parts >= PARTS)) return 0;
  if (ms >= LONGEST_MS) return BUCKETS - 1;
  const doublings = 31 - LOG_PARTS - Math.clz32(parts);
  const plain = 1 + doublings * PARTS + (parts >>> doublings) - PARTS;
  return (FIRST[plain] ?? 0) + (ms > (DIVIDED_AT[plain] ?? Infinity) ? 1 : 0);
}

/**
 * Returns the duration in milliseconds that represents a bucket. Durations from 1 ms to LONGEST_MS differ from it by at
 * most 6 %.
 */
export function durationOf(bucket: number): number {
  const upper = BOUNDS_MS[bucket] ?? LONGEST_MS;
  const lower = BOUNDS_MS[bucket - 1];
  return lower === undefined ? upper : (2 * lower * upper) / (lower + upper);
}

/**
 * Returns a quantile of the counted durations, in milliseconds: the smallest duration such that the fraction `quantile`
 * of all durations is not longer. `counts`: the number of durations in each bucket. Null if there are none.
 */
export function quantileOf(counts: ArrayLike<number>, quantile: number): number | null {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i] ?? 0;
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(quantile * total));
  let seen = 0;
  for (let i = 0; i < counts.length; i++) {
    seen += counts[i] ?? 0;
    if (seen >= rank) return durationOf(i);
  }
  return durationOf(counts.length - 1);
}

function plainBounds(): readonly number[] {
  const bounds = [1];
  for (let doubling = 1; (bounds.at(-1) ?? 0) < LONGEST_MS; doubling *= 2) {
    for (let part = 1; part <= PARTS; part++) bounds.push((doubling * (PARTS + part)) / PARTS);
  }
  return bounds.slice(0, bounds.findIndex((ms) => ms >= LONGEST_MS) + 1);
}

function lowerPlainBound(plain: number): number {
  return PLAIN_BOUNDS_MS[plain - 1] ?? 0;
}

// The time slots in which a node keeps what it counted: how long they are, and how many are kept.

/** The fine slots: 5 s each, for the last hour. */
export const FINE = { slotMs: 5_000, slots: 720 } as const;
/** The coarse slots: a minute each, for the last day. */
export const COARSE = { slotMs: 60_000, slots: 1440 } as const;

// The form in which nodes send each other what they recorded in a window of time.

/**
 * Asks for `points` steps of `stepMs` milliseconds each, from the time `from` on (epoch milliseconds). They are
 * computed from slots of `slotMs` milliseconds. `from` and `stepMs` are multiples of `slotMs`.
 */
export type ReadingQuery = {
  /** The names of the counters, histograms and sampled gauges to read. */
  readonly names: readonly string[];
  readonly from: number;
  readonly slotMs: (typeof FINE | typeof COARSE)['slotMs'];
  readonly stepMs: number;
  readonly points: number;
};

/**
 * One counter, gauge or histogram with one value of its label; `label` is null if it has no label. `counts` is a flat
 * list of its values that are not zero. A counter has two numbers for each value: the index of the point, and the
 * count. A gauge also has two: the index of the point, and the value as a whole number (durations in milliseconds). A
 * histogram has three: the index of the point, the bucket, and the count.
 */
export type ReadingRow = {
  readonly name: string;
  readonly label: string | null;
  readonly counts: readonly number[];
};

/**
 * What one node recorded. `known`: for each point `1` if the node recorded any part of it, else `0`. A row without
 * counts may be left out.
 */
export type NodeReading = {
  readonly known: string;
  readonly rows: readonly ReadingRow[];
  /** The node is of a version that samples no gauges. */
  readonly withoutGauges?: boolean;
};
