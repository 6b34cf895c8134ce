/**
 * Counters as a port. Cardinality is low by construction: a name from this list and at most one label from a closed
 * set. The values are the help texts of the metrics. `delivery.nodes` shows a selection of each node's `snapshot`.
 */
export const COUNTERS = {
  commands_admitted: 'Commands admitted.',
  commands_refused: 'Invocations refused before admission, by code.',
  commands_dispatched: 'Commands whose write to the client socket was started.',
  commands_acknowledged: 'Commands acknowledged by their client.',
  commands_ended: 'Commands ended, by outcome.',
  late_results: 'Results that arrived after their command had ended and were kept as evidence.',
  fenced_results: 'Results refused because another instance of the client is bound.',
  node_losses: 'Times this node lost its lease, or its store lost confirmed data, by cause.',
  commands_recovered: 'Commands requeued after their node or link was lost.',
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
  links_opened: 'Client links opened, by kind.',
  links_closed: 'Client links closed, by cause.',
  frames_refused: 'Frames refused, by code.',
  requests: 'HTTP requests and upgrades, by kind of interface.',
  inbound_limited: 'Times a user was slowed or refused for sending more bytes per second than allowed, by transport.',
  sockets_refused: 'Connections refused because too many are open without a valid token, by exceeded bound.',
  unread_cut: 'Connections closed because their user left more bytes unread than the share allows.',
  sockets_cut: 'Connections closed because their peer read nothing of a pending answer.',
  tokens_refused: 'Tokens and tickets refused, by reason.',
  errors_masked: 'Unexpected errors reported to the requester as `internal`.',
} as const;

export type CounterName = keyof typeof COUNTERS;

export interface Metrics {
  count(name: CounterName, label?: string): void;
  /** Values since the node started, by counter name, followed by `:label` if the counter has one. */
  snapshot(): ReadonlyMap<string, number>;
}

export const silentMetrics: Metrics = { count() {}, snapshot: () => new Map() };
