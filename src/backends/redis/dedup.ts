/** Core's DedupStore over Redis: reads how many received messages were new and how many were duplicates. */
import type { DedupStore } from '../../core/dedup/dedup.ts';
import { DEDUP_GRAIN_MS, DEDUP_TTL_MS } from '../../core/limits.ts';
import { listOf } from './types.ts';
import type { Store } from './store.ts';

/**
 * Creates Core's DedupStore over Redis. It only reads counters. The acts that ingest messages set the marks. No mark is
 * dropped early, so the counters are exact.
 */
export function createRedisDedup({ store }: { readonly store: Store }): DedupStore {
  return {
    async stats(windowSeconds) {
      const buckets = Math.ceil((windowSeconds * 1000) / DEDUP_GRAIN_MS);
      const counts = await Promise.all(
        Array.from({ length: store.partitions }, (_, partition) => store.act(partition, 'dedup-stats', [buckets])),
      );
      const sum = (at: number): number => counts.reduce<number>((all, count) => all + Number(listOf(count)[at]), 0);
      return {
        windowSeconds,
        seen: sum(0),
        unique: sum(1),
        duplicates: sum(2),
        exact: true,
        grainSeconds: DEDUP_GRAIN_MS / 1000,
        // Redis does not count keys by kind.
        liveKeys: null,
      };
    },
    backend: () => ({ implementation: 'redis', ttlSeconds: DEDUP_TTL_MS / 1000, namespace: store.namespace }),
  };
}

/** The ids that identify a message for deduplication. */
type MarkName = { readonly userId: string; readonly clientId: string; readonly messageId: string };

/** Returns the hash that names a message's deduplication mark. */
export function markHash(store: Pick<Store, 'hash'>, { userId, clientId, messageId }: MarkName): string {
  return store.hash(userId, clientId, messageId);
}
