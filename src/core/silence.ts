import type { NodeStore } from './delivery/nodes.ts';
import type { Deps } from './deps.ts';
import { thenDo, type MaybePromise } from './maybe-promise.ts';
import type { EvidenceSource, ObservedSource, Scan } from './page.ts';

const NONE: readonly ObservedSource[] = [];
/** How long the list of silent nodes is cached: far less than the time after which a node is silent. */
const LOOK_MS = 250;

type Asking = Pick<Deps, 'backend' | 'clock'>;
type Look = { readonly at: number; nodes: MaybePromise<readonly string[]> };

/** The latest result of each store, or the request that is under way. */
const looks = new WeakMap<NodeStore, Look>();

/**
 * The gaps of an answer that silent nodes cause: one source for each silent node, with `observed` 0, since the rows of
 * a silent node show the state that it last reported. `nodeId` selects one node; null: all. Empty while no node is
 * silent. The answer is at most LOOK_MS old. Throws as the store does.
 */
export function silentSources(
  { backend, clock }: Asking,
  source: EvidenceSource,
  nodeId: string | null = null,
): MaybePromise<readonly ObservedSource[]> {
  return thenDo(silentNodes(backend.nodes, clock.now()), (nodes) => {
    if (nodes.length === 0) return NONE;
    const asOf = clock.now();
    return nodes
      .filter((silent) => nodeId === null || silent === nodeId)
      .map((silent): ObservedSource => {
        const seen = { complete: false, observed: 0, limit: null, reason: 'node_silent' } as const;
        return { source, nodeId: silent, ...seen, asOf };
      });
  });
}

function silentNodes(store: NodeStore, now: number): MaybePromise<readonly string[]> {
  const last = looks.get(store);
  if (last && now >= last.at && now - last.at < LOOK_MS) return last.nodes;
  const found = store.silent();
  const look: Look = { at: now, nodes: found };
  looks.set(store, look);
  if (!(found instanceof Promise)) return found;
  return (look.nodes = found.then(
    (nodes) => (look.nodes = nodes),
    (error: unknown) => {
      if (looks.get(store) === look) looks.delete(store);
      throw error;
    },
  ));
}

/** Adds gaps to those of a store's page. */
export function withGaps<T>(scan: Scan<T>, gaps: readonly ObservedSource[]): Scan<T> {
  return gaps.length === 0 ? scan : { ...scan, gaps: [...scan.gaps, ...gaps] };
}
