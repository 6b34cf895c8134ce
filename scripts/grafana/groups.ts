/** Groups the metrics of a relay for the dashboard. Every metric is in exactly one group. */
import { COUNTER_NAMES, GAUGE_NAMES, HISTOGRAM_NAMES, type MetricName } from '../../src/core/metrics.ts';

export type MetricGroup = { readonly title: string; readonly metrics: readonly MetricName[] };

export const GROUPS: readonly MetricGroup[] = [
  {
    title: 'Commands',
    metrics: [
      ...(['commands_admitted', 'commands_ended', 'commands_refused'] as const),
      ...(['command_seconds', 'dispatch_seconds', 'ack_seconds'] as const),
      ...(['commands_dispatched', 'commands_acknowledged', 'commands_queued'] as const),
      ...(['commands_in_flight', 'commands_recovered', 'late_results', 'fenced_results'] as const),
    ],
  },
  {
    title: 'Callers that wait, and capacity',
    metrics: [
      ...(['waiters', 'oldest_wait_seconds', 'replies_dropped'] as const),
      ...(['reservations', 'reservations_limit', 'reservations_fullest_ratio'] as const),
      ...(['share_used', 'share_limit', 'share_users_over'] as const),
    ],
  },
  {
    title: 'Links and requests',
    metrics: [
      ...(['links', 'client_links', 'caller_links', 'links_opened', 'links_closed', 'client_rtt_seconds'] as const),
      ...(['requests', 'http_seconds', 'frames_refused', 'inbound_limited', 'tokens_refused'] as const),
      ...(['sockets_refused', 'sockets_cut', 'unread_cut', 'unauthenticated_sockets', 'errors_masked'] as const),
    ],
  },
  { title: 'Nodes', metrics: ['ready', 'nodes', 'node_losses', 'audit_failures'] },
  {
    title: 'What is kept',
    metrics: [
      ...(['messages_ingested', 'context_reports', 'payloads_spilled', 'payloads_unstored'] as const),
      ...(['results_given_up', 'records_reduced', 'ids_forgotten', 'dedup_marks_evicted'] as const),
    ],
  },
];

/** Throws an error that names each metric that is in no group, and each that is in several. */
export function checkGroups(groups: readonly MetricGroup[] = GROUPS): void {
  const grouped = groups.flatMap(({ metrics }) => metrics);
  const missing = [...COUNTER_NAMES, ...HISTOGRAM_NAMES, ...GAUGE_NAMES].filter((name) => !grouped.includes(name));
  const twice = grouped.filter((name, at) => grouped.indexOf(name) !== at);
  if (missing.length > 0) throw new Error(`scripts/grafana/groups.ts has no group for ${missing.join(', ')}.`);
  if (twice.length > 0) throw new Error(`scripts/grafana/groups.ts has ${twice.join(', ')} in several groups.`);
}
