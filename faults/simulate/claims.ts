/** What simulations must reach: nothing is tested of what they never reach. */
import { STORES, type Setting, type StoreName, type WorkloadName } from './workloads.ts';

/** What the runs of each store must have counted, besides each of its faults, as `Relays.count` names it. */
const OF_STORE: Readonly<Record<StoreName, readonly string[]>> = {
  owned: [
    'snapshot',
    'log: took over',
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
    'call: completed',
    'call: cancelled',
    'call: expired connect_timeout',
    'call: failed handler_failed',
    'call: outcome_unknown instance_replaced',
    'call: outcome_unknown response_timeout',
    'cancel: requested',
    'cancel: too_late',
    'link lost: connection_lost',
    'log: link opened',
    'log: link closed',
  ],
  store: ['admit: admitted', 'admit: store_full', 'cancel: settled'],
};

/** Returns what a long series of runs must have counted. */
export function claimsOf({ acts, store }: Setting): readonly string[] {
  return [...STORES[store].faults.map(({ name }) => `fault: ${name}`), ...OF_STORE[store], ...OF_WORKLOAD[acts]];
}

/** Returns what was never counted. */
export function unmet(claims: readonly string[], seen: Readonly<Record<string, number>>): readonly string[] {
  return claims.filter((what) => !seen[what]);
}
