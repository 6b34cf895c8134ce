import type { Clock } from '../../core/clock.ts';
import type { DedupStore } from '../../core/dedup/store.ts';
import { DEDUP_GRAIN_MS, DEDUP_MARKS, DEDUP_TTL_MS, DEDUP_WINDOW_SECONDS } from '../../core/limits.ts';

/** A message as the deduplicator knows it. None of the three holds a `\n`. */
export type DedupKey = { readonly userId: string; readonly clientId: string; readonly messageId: string };

export interface MemoryDedup extends DedupStore {
  /** Counts one sighting. True when it is the first within DEDUP_TTL_MS: the mark is then set, and later sightings do not renew it. */
  see(key: DedupKey): boolean;
}

type Bucket = { seen: number; unique: number };

/** Marks in the order set, so that the oldest expire first, and counters in buckets of DEDUP_GRAIN_MS. */
export function createMemoryDedup(clock: Clock, maxMarks: number = DEDUP_MARKS): MemoryDedup {
  const marks = new Map<string, number>();
  const buckets = new Map<number, Bucket>();
  let evictedAt = -Infinity;

  const expire = (now: number): void => {
    for (const [key, until] of marks) {
      if (until > now) break;
      marks.delete(key);
    }
    const oldest = bucketOf(now) - DEDUP_WINDOW_SECONDS.max / (DEDUP_GRAIN_MS / 1000);
    for (const bucket of buckets.keys()) {
      if (bucket >= oldest) break;
      buckets.delete(bucket);
    }
  };
  const mark = (key: string, now: number): void => {
    marks.set(key, now + DEDUP_TTL_MS);
    if (marks.size <= maxMarks) return;
    for (const oldest of marks.keys()) {
      marks.delete(oldest);
      break;
    }
    evictedAt = now;
  };
  return {
    see({ userId, clientId, messageId }) {
      const now = clock.now();
      expire(now);
      const key = `${userId}\n${clientId}\n${messageId}`;
      const first = !marks.has(key);
      if (first) mark(key, now);
      const bucket = buckets.get(bucketOf(now)) ?? { seen: 0, unique: 0 };
      buckets.set(bucketOf(now), bucket);
      bucket.seen++;
      if (first) bucket.unique++;
      return first;
    },
    stats(windowSeconds) {
      const now = clock.now();
      expire(now);
      const grainSeconds = DEDUP_GRAIN_MS / 1000;
      const from = bucketOf(now) - Math.ceil(windowSeconds / grainSeconds) + 1;
      const within = [...buckets].filter(([bucket]) => bucket >= from).map(([, counts]) => counts);
      const sum = (read: (bucket: Bucket) => number): number =>
        within.reduce((total, bucket) => total + read(bucket), 0);
      const seen = sum((bucket) => bucket.seen);
      const unique = sum((bucket) => bucket.unique);
      // A mark that went early may have made a duplicate look unique for as long as it would have lived.
      const exact = evictedAt + DEDUP_TTL_MS < from * DEDUP_GRAIN_MS;
      return { windowSeconds, seen, unique, duplicates: seen - unique, exact, grainSeconds, liveKeys: marks.size };
    },
    backend: () => ({ implementation: 'memory', ttlSeconds: DEDUP_TTL_MS / 1000, namespace: null }),
  };
}

function bucketOf(at: number): number {
  return Math.floor(at / DEDUP_GRAIN_MS);
}
