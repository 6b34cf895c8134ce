/**
 * The names of all metrics, and the port through which the relay counts and measures. A metric has at most one label
 * with few values, so the number of time series stays small.
 */
import type { ReadingQuery, NodeReading } from './metrics/reading.ts';

/** The counters and their help texts. Lists of nodes show some of them for each node. */
export const COUNTERS = {
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

/** The histograms of durations. They are measured in milliseconds and shown in seconds. */
export const HISTOGRAMS = {
  command_seconds: 'Time from the admission of a command to its end, by outcome.',
  dispatch_seconds: 'Time that a command spent in the queue of its client’s link, from queued to dispatched.',
  ack_seconds: 'Time from the dispatch of a command to the acknowledgement of its client.',
  client_rtt_seconds: 'Time from a ping on a link to the pong of its peer.',
  http_seconds:
    'Time from the arrival of an HTTP request to the end of its response, by route. Event streams are left out.',
} as const;

/**
 * The gauges: values that are computed when the metrics are read. Those in SAMPLED_GAUGES are computed every five
 * seconds too.
 */
export const GAUGES = {
  ready: 'Whether this node takes new links and commands, as `/readyz` says: 1, or 0 if not.',
  nodes:
    'Nodes of the deployment, by state: `live`, or `stale` for some 30 s after the lease of a node ended without its stop.',
  links: 'Open links of clients and callers, also those that are not welcomed yet.',
  client_links: 'Open links of clients on this node, by client type.',
  caller_links: 'Open links of callers on this node.',
  commands_queued: 'Commands queued for the client links of this node.',
  commands_in_flight: 'Commands that were dispatched on the client links of this node and have not ended.',
  waiters: 'Pending RPCs of this node: waits of its callers for a command.',
  oldest_wait_seconds: 'Age of the oldest pending RPC of this node; 0 if there is none.',
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
 * The gauges that are recorded over time, with the node's value at the end of each time slot. `sum` or `max` is how the
 * values of several nodes are combined. If one step of a series covers several slots, `sum` uses the value of the last
 * slot and `max` the highest value.
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

/** The label name of each metric. A metric that is not listed has no label. */
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

/**
 * The command whose duration was measured. Readers of the metrics get it as an example of such a duration (an
 * exemplar).
 */
export type MeasuredCommand = {
  readonly commandId: string;
  readonly traceId: string | null;
  readonly traceFlags: string | null;
  /** The span of the call, as the command's record stores it. */
  readonly callSpan: string | null;
};

/**
 * Reads a gauge as pairs of a label value and a number. The label value is null if the gauge has no label. Numbers are
 * whole; durations are in milliseconds.
 */
export type SampleReader = () => Iterable<readonly [string | null, number]>;

export interface Metrics {
  count(name: CounterName, label?: string): void;
  /** Adds one duration. A negative duration counts as 0; it can occur because the clocks of nodes differ. */
  observe(name: HistogramName, ms: number, label?: string, of?: MeasuredCommand): void;
  /**
   * Sets the function that reads a sampled gauge. It is called at the end of each slot, and when the series of this
   * node are read.
   */
  sample(name: SampledGaugeName, read: SampleReader): void;
  /**
   * Returns what each counter has counted since the node started. A key is the name of a counter, followed by `:label`
   * if it has a label.
   */
  snapshot(): ReadonlyMap<string, number>;
  /**
   * Closes the current time slot if `now` (epoch milliseconds) is after its end. The slot then contains everything that
   * was counted and measured since the last call, and the sampled gauges as they are now.
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
