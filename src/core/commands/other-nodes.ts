/** Lists the nodes of the deployment, for answers that are merged from the answers of all nodes. */
import type { Backend } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { PAGE_MAX, NODE_LEASE_MS } from '../limits.ts';
import type { DispatcherNode } from './node-store.ts';

/**
 * `others`: the ids of all other nodes in order, including the silent ones. `silent`: the ids of the silent nodes,
 * which are not asked, and which answers list as gaps.
 */
type OtherNodes = { readonly others: readonly string[]; readonly silent: ReadonlySet<string> };

export async function otherNodes({ backend, nodeId }: Pick<Deps, 'backend' | 'nodeId'>): Promise<OtherNodes> {
  const [silent, reported] = await Promise.all([backend.nodes.silent(), reportTimes(backend)]);
  const others = new Set([...reported.map((node) => node.nodeId), ...silent]);
  others.delete(nodeId);
  return { others: [...others].sort(), silent: new Set(silent) };
}

/** Returns all nodes that may have links or requests, including those that have started and not reported yet. */
export async function nodesWithLinks(deps: Pick<Deps, 'backend' | 'nodeId'>): Promise<OtherNodes> {
  const { others, silent } = await otherNodes(deps);
  const all = new Set([...others, ...((await deps.backend.nodes.living?.()) ?? [])]);
  all.delete(deps.nodeId);
  return { others: [...all].sort(), silent };
}

/** Returns when each node last reported. If the store has only `list`, returns at most PAGE_MAX nodes. */
async function reportTimes({ nodes }: Pick<Backend, 'nodes'>): Promise<readonly ReportTime[]> {
  if (nodes.reportTimes) return nodes.reportTimes();
  const { rows } = await nodes.list({ first: PAGE_MAX, after: null });
  return rows.map(({ row }) => row);
}

/** Counts the nodes that have reported. `stale`: how many of them have a lease that ran out. */
export async function countNodes({ backend, clock }: Pick<Deps, 'backend' | 'clock'>): Promise<NodeCounts> {
  const times = await reportTimes(backend);
  const now = clock.now();
  const stale = times.filter(({ updatedAt }) => now - updatedAt >= NODE_LEASE_MS).length;
  return { live: times.length - stale, stale };
}

type NodeCounts = { readonly live: number; readonly stale: number };
type ReportTime = Pick<DispatcherNode, 'nodeId' | 'updatedAt'>;
