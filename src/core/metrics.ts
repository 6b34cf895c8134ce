/**
 * Counters as a port, of low cardinality by construction: a name from this list and one label from a closed set. `snapshot` is what
 * a node shows of itself in `delivery.nodes`.
 */
export const COUNTERS = {
  commands_admitted: 'Commands admitted.',
  commands_refused: 'Invocations refused before admission, by code.',
  commands_dispatched: 'Commands whose socket write was begun.',
  commands_acknowledged: 'Commands acknowledged by their client.',
  commands_ended: 'Commands ended, by outcome.',
  late_results: 'Results kept as evidence after their command had ended.',
  fenced_results: 'Results refused because another instance is bound.',
  node_losses: 'Times that this node lost what it held, by cause.',
  commands_recovered: 'Commands requeued after their node or link was lost.',
  payloads_spilled: 'Payloads written to the spill store.',
  payloads_unstored: 'Payloads that the spill store did not take.',
  results_given_up:
    'Results of ended commands that are no longer retained within their window, by reason: `share`, `retention` or `record` (it was reduced).',
  records_reduced: 'Records of ended commands reduced to marks for lack of room.',
  ids_forgotten: 'Ids made by the relay that were forgotten early: there was no room for a record or a mark.',
  dedup_marks_evicted: 'Deduplication marks dropped early for lack of room: a duplicate may then be retained again.',
  messages_ingested: 'Ingested messages, by verdict.',
  context_reports: 'Reports of contexts and windows, by outcome.',
  replies_dropped: 'Replies whose waiter was gone.',
  links_opened: 'Client links opened, by kind.',
  links_closed: 'Client links closed, by cause.',
  frames_refused: 'Frames refused, by code.',
  requests: 'HTTP requests, by door.',
  inbound_limited: 'Times that a user sent more bytes a second than allowed, by way.',
  sockets_refused: 'Connections refused because too many are open without a token, by bound.',
  unread_cut: 'Connections cut because their user left more bytes unread than their share.',
  sockets_cut: 'Connections cut because their peer read nothing of an answer.',
  tokens_refused: 'Tokens and tickets refused, by reason.',
  errors_masked: 'Errors shown as `internal`.',
} as const;

export type CounterName = keyof typeof COUNTERS;

export interface Metrics {
  count(name: CounterName, label?: string): void;
  /** Counter name (with `:label` where it has one) to its value since the node started. */
  snapshot(): ReadonlyMap<string, number>;
}

export const silentMetrics: Metrics = { count() {}, snapshot: () => new Map() };
