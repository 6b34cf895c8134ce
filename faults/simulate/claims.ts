/** What simulations must reach: nothing is tested of what they never reach. */
import { STORES, type Setting, type StoreName, type WorkloadName } from './workloads.ts';

/** What the runs of each store must have counted, besides each of its faults, as `Relays.count` names it. */
const OF_STORE: Readonly<Record<StoreName, readonly string[]>> = {
  owned: [
    'snapshot',
    'log: took over',
    'log: Redis has lost data of users whose relay is gone: their commands end as unknown',
    'log: a snapshot was written',
    'log: facts are not recorded: the log does not answer',
    'log: the lease of this relay cannot be renewed',
    'log: the log has lost what it had confirmed: it follows',
    'log: the logs of partitions are out of reach: answers wait',
    'log: Redis has no memory for more: nothing new is admitted',
    'log: Redis has memory again',
  ],
  directory: [
    ...['always', 'off', '20', '100', '1000'].map((sync) => `DATA_SYNC: ${sync}`),
    'away: clean',
    'away: ended',
    'away: lost',
    'compared with the directory',
    'log: a snapshot was written',
    'log: records are missing: commands that had not ended end as unknown',
    'log: the disk of the data directory is full: nothing new is admitted',
    'log: the disk of the data directory has room again',
    'log: what was written last is not whole: it was cut off',
  ],
};

/** What the runs of each workload must have counted: the ends of calls, and the refusals of acts. */
const OF_WORKLOAD: Readonly<Record<WorkloadName, readonly string[]>> = {
  calls: [
    ...['completed', 'cancelled', 'expired connect_timeout', 'expired context_gone', 'expired queue_timeout'],
    ...['failed context_gone', 'failed handler_failed', 'failed not_received', 'failed too_late'],
    ...['outcome_unknown instance_replaced', 'outcome_unknown response_timeout', 'store_lost store_lost'],
  ]
    .map((end) => `call: ${end}`)
    .concat(
      ['cancelled', 'requested', 'too_late', 'not_found', 'unreachable'].map((state) => `cancel: ${state}`),
      ['context_gone', 'draining', 'not_connected', 'store_full', 'unreachable'].map((code) => `request: ${code}`),
      ['absent', 'waiting', 'dispatched', 'acknowledged', 'ended'].map((stage) => `read: ${stage}`),
      ['back_pressure', 'connection_lost', 'draining', 'heartbeat_lost', 'hello_timeout', 'unauthenticated'].map(
        (reason) => `link lost: ${reason}`,
      ),
      ['log: link opened', 'log: link closed', 'end dropped: closed'],
    ),
  store: [
    ...['admit: admitted', 'admit: store_full', 'cancel: settled', 'cancel: unchanged', 'cancel: unknown'],
    ...['read: absent', 'read: waiting', 'read: ended'],
  ],
  events: [
    ...['ingest: graphql', 'ingest: rest', 'event: duplicate', 'event: retained', 'event: retained, published'],
    ...['read: a stream', 'counters: not exact', 'counters of a slot: exact'],
    ...['viewer: live', 'viewer: site', 'viewer ended: left'],
  ],
  pauses: [
    ...['pause: everywhere', 'pause: by the client', 'resume: everywhere', 'request: paused'],
    ...['call: asked for while it is stopped', 'call: completed'],
  ],
  revocations: [
    ...['user', 'client', 'token', 'time'].map((form) => `revoke: by ${form}`),
    ...['links', 'sockets', 'cancelled'].map((what) => `revoke: ended ${what}`),
    ...['call', 'read', 'ingest', 'link'].map((way) => `revoked token: ${way}`),
    ...['revoke: everywhere', 'link ended: revoked', 'stream ended: revoked', 'read: unauthenticated', 'stream: 401'],
    ...['revoked: a queued call was cancelled', 'call: completed', 'call: cancelled'],
  ],
  sites: [
    ...['open: 200', 'share: 200', 'share: forbidden', 'share: session_inactive', 'share: unauthenticated'],
    ...['invoke: 200', 'invoke: session_inactive', 'invoke: site_action_denied', 'invoke: unauthenticated'],
    ...['look: 200', 'look: unauthenticated', 'end: 200', 'ticket: 200', 'ticket: session_inactive'],
    ...['ticket stream: 200', 'ticket stream: 204', 'ticket stream: 401', 'ingest: 200', 'ingest: stale_instance'],
    ...['viewer ended: session_inactive', 'viewer ended: unauthenticated'],
  ],
};

/** What only the runs of a store and a workload together must have counted. */
const OF_BOTH: Readonly<Partial<Record<`${StoreName} ${WorkloadName}`, readonly string[]>>> = {
  'owned store': [
    'admit: attached',
    'admit: store_unavailable',
    'cancel: store_unavailable',
    'read: store_unavailable',
  ],
  'owned events': ['event refused: store_full', 'counters: exact'],
  'owned calls': [
    'relays have addresses',
    'link: to its home',
    'link lost: node_lost',
    'link lost: store_full',
    'request: store_unavailable',
  ],
  'owned revocations': ['revoke: named silent relays'],
  'directory calls': ['call: expired node_lost', 'call: outcome_unknown node_lost'],
};

/** Returns what a long series of runs must have counted. */
export function claimsOf({ acts, store }: Setting): readonly string[] {
  const faults = STORES[store].faults.map(({ name }) => `fault: ${name}`);
  return [...faults, ...OF_STORE[store], ...OF_WORKLOAD[acts], ...(OF_BOTH[`${store} ${acts}`] ?? [])];
}

/** Returns what was never counted. */
export function unmet(claims: readonly string[], seen: Readonly<Record<string, number>>): readonly string[] {
  return claims.filter((what) => !seen[what]);
}
