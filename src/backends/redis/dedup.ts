/** Core's DedupStore over Redis: counts how many received messages were new and how many were duplicates. */
import type { DedupStore } from '../../core/dedup/dedup.ts';
import { DEDUP_GRAIN_MS, DEDUP_TTL_MS } from '../../core/limits.ts';
import type { RedisDeps } from './deps.ts';
import { listOf, type ReadCommand } from './replies.ts';
import type { Store } from './store.ts';

/**
 * Creates core's DedupStore over Redis. It only reads counters; the acts that ingest messages set the marks and count.
 * The counters are exact unless a mark was dropped early for lack of room.
 */
export function createRedisDedup({ store, clock }: Pick<RedisDeps, 'store' | 'clock'>): DedupStore {
  return {
    async stats(windowSeconds) {
      const buckets = Math.ceil((windowSeconds * 1000) / DEDUP_GRAIN_MS);
      const first = Math.floor(clock.now() / DEDUP_GRAIN_MS) - buckets + 1;
      const read = await store.readAll((partition) => [
        ['HGET', store.key(partition, 'meta'), 'forgot'],
        ...Array.from({ length: buckets }, (_, i): ReadCommand => {
          return ['HMGET', store.key(partition, 'seen', String(first + i)), 'unique', 'duplicates'];
        }),
      ]);
      const counts = read.flatMap(([, ...counted]) => counted.map(listOf));
      const sum = (at: number): number => counts.reduce((all, count) => all + Number(count[at] ?? 0), 0);
      const [unique, duplicates] = [sum(0), sum(1)];
      return {
        windowSeconds,
        seen: unique + duplicates,
        unique,
        duplicates,
        // As in memory: if a mark was dropped early, a duplicate may have counted as unique until the time at which the
        // mark would have expired.
        exact: read.every(([forgot]) => !forgot || Number(forgot) + DEDUP_TTL_MS < first * DEDUP_GRAIN_MS),
        grainSeconds: DEDUP_GRAIN_MS / 1000,
        // Unknown, because Redis does not count keys by kind.
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
