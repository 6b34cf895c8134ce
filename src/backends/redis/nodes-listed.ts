/** Reads which nodes exist, and which of them have stopped renewing their lease. */
import { NODE_SILENT_MS } from '../../core/limits.ts';
import type { RedisDeps } from './deps.ts';
import { listOf, numbersOf } from './replies.ts';
import { partitionsOf } from './store-partitions.ts';

/** Stored by `nodes-reap` as the end of the lease of a node that releases its id. */
const LEAVING = 1;

/** The nodes of one partition, read at one time. */
type NodesSeen = {
  /** The time of the store at this read, in epoch milliseconds. */
  readonly now: number;
  /** When the lease of each attached node ends, in epoch milliseconds. */
  readonly leases: ReadonlyMap<string, number>;
  /** The nodes that died and are still listed. */
  readonly gone: readonly string[];
};

export async function lookAtNodes(
  { store, clock }: Pick<RedisDeps, 'store' | 'clock'>,
  partition: number,
): Promise<NodesSeen> {
  const now = clock.now();
  const [leases, gone] = await store.read([
    ['ZRANGE', store.key(partition, 'nodes'), 0, -1, 'WITHSCORES'],
    ['ZRANGEBYSCORE', store.key(partition, 'nodesgone'), `(${now}`, '+inf'],
  ]);
  return { now, leases: numbersOf(leases), gone: listOf(gone).map(String) };
}

/** Implements NodeStore.silent. Reads all partitions, because a node may reach only some of them. */
export async function silentNodes(deps: Pick<RedisDeps, 'store' | 'clock' | 'leaseMs'>): Promise<readonly string[]> {
  const seen = await Promise.all(partitionsOf(deps.store).map((partition) => lookAtNodes(deps, partition)));
  return [...new Set(seen.flatMap((one) => silentIn(one, deps.leaseMs)))].sort();
}

/**
 * Returns the nodes whose last heartbeat is too long ago, and the nodes that died. A node's last heartbeat was at the
 * end of its lease minus the length of a lease.
 */
function silentIn({ now, leases, gone }: NodesSeen, leaseMs: number): readonly string[] {
  const since = now - Math.min(NODE_SILENT_MS, leaseMs);
  const late = [...leases].filter(([, end]) => end !== LEAVING && end - leaseMs <= since).map(([node]) => node);
  return [...late, ...gone];
}
