/** Lists silent nodes as gaps of an answer, because rows of a silent node may be out of date. */
import { type ObservedSource, gapOf, type EvidenceSource } from './completeness.ts';
import { thenDo, type MaybePromise } from './maybe-promise.ts';
import type { Scan } from './page.ts';
import type { Clock } from './ports.ts';

const NONE: readonly ObservedSource[] = [];
/**
 * How long the list of silent nodes is cached, in milliseconds: much less than the time after which a node is silent.
 */
const CACHE_MS = 250;

/** The method of `NodeStore` that lists the silent nodes. */
type SilentNodes = { silent(): MaybePromise<readonly string[]> };
type CachedNodes = { readonly at: number; nodes: MaybePromise<readonly string[]> };

/** For each store, the last result or the request under way. */
const cache = new WeakMap<SilentNodes, CachedNodes>();

/**
 * Returns the gaps that silent nodes cause in an answer: one source per silent node, with `observed` 0. `nodeId`
 * selects one node; null selects all. Empty if no node is silent. The result is at most CACHE_MS old. Throws what the
 * store throws.
 */
export function silentSources(
  { backend, clock }: { readonly backend: { readonly nodes: SilentNodes }; readonly clock: Clock },
  source: EvidenceSource,
  nodeId: string | null = null,
): MaybePromise<readonly ObservedSource[]> {
  return thenDo(silentNodes(backend.nodes, clock.now()), (nodes) => {
    if (nodes.length === 0) return NONE;
    const asOf = clock.now();
    return nodes
      .filter((silent) => nodeId === null || silent === nodeId)
      .map((silent) => gapOf(source, asOf, silent, 'node_silent'));
  });
}

function silentNodes(store: SilentNodes, now: number): MaybePromise<readonly string[]> {
  const last = cache.get(store);
  if (last && now >= last.at && now - last.at < CACHE_MS) return last.nodes;
  const found = store.silent();
  const cached: CachedNodes = { at: now, nodes: found };
  cache.set(store, cached);
  if (!(found instanceof Promise)) return found;
  return (cached.nodes = found.then(
    (nodes) => (cached.nodes = nodes),
    (error: unknown) => {
      if (cache.get(store) === cached) cache.delete(store);
      throw error;
    },
  ));
}

/** Adds gaps to a page of a store. */
export function withGaps<T>(scan: Scan<T>, gaps: readonly ObservedSource[]): Scan<T> {
  return gaps.length === 0 ? scan : { ...scan, gaps: [...scan.gaps, ...gaps] };
}
