/** Reads which other nodes there are, for answers that are merged of what each node knows. */
import type { Deps } from '../deps.ts';
import { PAGE_MAX } from '../limits.ts';

/** `others`: ids in order, with the silent ones. `silent`: nodes with a late beat, which are named and not asked. */
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
