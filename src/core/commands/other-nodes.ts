/** Reads which nodes there are, for answers that are merged from what each node knows. */
import type { Backend } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { PAGE_MAX, NODE_LEASE_MS } from '../limits.ts';
import type { DispatcherNode } from './node-store.ts';

/**
 * `others`: the ids of all other nodes in order, including silent ones. `silent`: the ids of the silent nodes. Answers
 * list them as gaps, and they are not asked.
 */
type OtherNodes = { readonly others: readonly string[]; readonly silent: ReadonlySet<string> };

export async function otherNodes({ backend, nodeId }: Pick<Deps, 'backend' | 'nodeId'>): Promise<OtherNodes> {
  const [silent, reported] = await Promise.all([backend.nodes.silent(), reportTimes(backend)]);
  const others = new Set([...reported.map((node) => node.nodeId), ...silent]);
  others.delete(nodeId);
  return { others: [...others].sort(), silent: new Set(silent) };
}

/**
 * Returns the nodes of which each must know something before this one says so: of those, too, that have started and not
 * reported yet.
 */
export async function nodesWithLinks(deps: Pick<Deps, 'backend' | 'nodeId'>): Promise<OtherNodes> {
  const { others, silent } = await otherNodes(deps);
  const all = new Set([...others, ...(deps.backend.nodes.living?.() ?? [])]);
  all.delete(deps.nodeId);
  return { others: [...all].sort(), silent };
}

/** Returns when each node has reported last. Of a store that lists nodes by their reports: at most PAGE_MAX nodes. */
async function reportTimes({ nodes }: Pick<Backend, 'nodes'>): Promise<readonly ReportTime[]> {
  if (nodes.reportTimes) return nodes.reportTimes();
  const { rows } = await nodes.list({ first: PAGE_MAX, after: null });
  return rows.map(({ row }) => row);
}

/** Counts the nodes that have reported. `stale`: those whose lease is over. */
export async function countNodes({ backend, clock }: Pick<Deps, 'backend' | 'clock'>): Promise<NodeCounts> {
  const times = await reportTimes(backend);
  const now = clock.now();
  const stale = times.filter(({ updatedAt }) => now - updatedAt >= NODE_LEASE_MS).length;
  return { live: times.length - stale, stale };
}

type NodeCounts = { readonly live: number; readonly stale: number };
type ReportTime = Pick<DispatcherNode, 'nodeId' | 'updatedAt'>;
