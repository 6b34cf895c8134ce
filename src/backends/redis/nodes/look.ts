/** Reads which nodes there are, and which of them are silent. Changes nothing. */
import { NODE_SILENT_MS } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import { fieldsOf, listOf } from '../replies.ts';

/** What `nodes-reap` sets as the lease of a node that releases its id. */
const LEAVING = 1;

/** The nodes of one partition. */
export type NodesSeen = {
  /** By the clock of the store, milliseconds. */
  readonly now: number;
  /** When the lease of each attached node ends. */
  readonly leases: ReadonlyMap<string, number>;
  /** Nodes that died and are still listed. */
  readonly gone: readonly string[];
};

export async function lookAtNodes({ store }: Pick<RedisParts, 'store'>, partition: number): Promise<NodesSeen> {
  const [now, leases = null, gone = null] = listOf(await store.act(partition, 'nodes-look', []));
  const ends = [...fieldsOf(leases)].map(([node, end]) => [node, Number(end)] as const);
  return { now: Number(now), leases: new Map(ends), gone: listOf(gone).map(String) };
}

/** NodeStore.silent. Reads every partition, because a node may reach only some of them. */
export async function silentNodes({
  store,
  leaseMs,
}: Pick<RedisParts, 'store' | 'leaseMs'>): Promise<readonly string[]> {
  const partitions = Array.from({ length: store.partitions }, (_, partition) => partition);
  const seen = await Promise.all(partitions.map((partition) => lookAtNodes({ store }, partition)));
  return [...new Set(seen.flatMap((one) => silentIn(one, leaseMs)))].sort();
}

/**
 * The nodes whose last beat is too long ago, and those that died. The time of the last beat is the end of the lease
 * less its length.
 */
function silentIn({ now, leases, gone }: NodesSeen, leaseMs: number): readonly string[] {
  const since = now - Math.min(NODE_SILENT_MS, leaseMs);
  const late = [...leases].filter(([, end]) => end !== LEAVING && end - leaseMs <= since).map(([node]) => node);
  return [...late, ...gone];
}
