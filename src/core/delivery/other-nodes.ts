/** Reads which other nodes there are, for answers that are merged from what each node knows. */
import type { Deps } from '../deps.ts';
import { PAGE_MAX } from '../limits.ts';

/**
 * `others`: the ids of all other nodes in order, including silent ones. `silent`: the ids of the silent nodes. Answers
 * list them as gaps, and they are not asked.
 */
export type OtherNodes = { readonly others: readonly string[]; readonly silent: ReadonlySet<string> };

export async function otherNodes({ backend, nodeId }: Pick<Deps, 'backend' | 'nodeId'>): Promise<OtherNodes> {
  const [silent, { rows }] = await Promise.all([
    backend.nodes.silent(),
    backend.nodes.list({ first: PAGE_MAX, after: null }),
  ]);
  const others = new Set([...rows.map(({ row }) => row.nodeId), ...silent]);
  others.delete(nodeId);
  return { others: [...others].sort(), silent: new Set(silent) };
}
