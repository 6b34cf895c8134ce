/** Lists the silent nodes, whose rows may be out of date, so that answers can report them as gaps. */
import type { NodeStore } from './commands/stores.ts';
import type { Deps } from './deps.ts';
import { thenDo, type MaybePromise } from './maybe-promise.ts';
import type { EvidenceSource, ObservedSource, Scan } from './page.ts';

const NONE: readonly ObservedSource[] = [];
/**
 * How long the list of silent nodes is cached, in milliseconds: far less than the time after which a node counts as
 * silent.
 */
const CACHE_MS = 250;

type SilenceDeps = Pick<Deps, 'backend' | 'clock'>;
type CachedNodes = { readonly at: number; nodes: MaybePromise<readonly string[]> };

/** The latest result of each store, or the request that is under way. */
const cache = new WeakMap<NodeStore, CachedNodes>();

/**
 * Returns the gaps that silent nodes cause in an answer: one source for each silent node. Its `observed` is 0. `nodeId`
 * selects one node; null: all. Empty while no node is silent. The answer is at most CACHE_MS old. Throws as the store
 * does.
 */
export function silentSources(
  { backend, clock }: SilenceDeps,
  source: EvidenceSource,
  nodeId: string | null = null,
): MaybePromise<readonly ObservedSource[]> {
  return thenDo(silentNodes(backend.nodes, clock.now()), (nodes) => {
    if (nodes.length === 0) return NONE;
    const asOf = clock.now();
    return nodes
      .filter((silent) => nodeId === null || silent === nodeId)
      .map((silent): ObservedSource => {
        const gap = { complete: false, observed: 0, limit: null, reason: 'node_silent' } as const;
        return { source, nodeId: silent, ...gap, asOf };
      });
  });
}

function silentNodes(store: NodeStore, now: number): MaybePromise<readonly string[]> {
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

/** Adds gaps to those of a store's page. */
export function withGaps<T>(scan: Scan<T>, gaps: readonly ObservedSource[]): Scan<T> {
  return gaps.length === 0 ? scan : { ...scan, gaps: [...scan.gaps, ...gaps] };
}
