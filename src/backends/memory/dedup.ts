/** Recognises repeated messages within one process, and counts the messages that were seen and repeated. */
import type { Clock } from '../../core/clock.ts';
import type { DedupStats, DedupStore } from '../../core/dedup/store.ts';
import { DEDUP_GRAIN_MS, DEDUP_TTL_MS, DEDUP_WINDOW_SECONDS } from '../../core/limits.ts';
import { DedupMarks, type DedupKey, type DedupMarksOptions } from './dedup-marks.ts';

export interface MemoryDedup extends DedupStore {
  /**
   * Counts one arrival of a message. Returns true if it is the first within DEDUP_TTL_MS. The first arrival sets the
   * mark, and later ones do not renew it.
   */
  see(key: DedupKey, now?: number): boolean;
}

/**
 * Creates the deduplicator. Its marks stay within their share, and its counters are kept for each time slot of
 * DEDUP_GRAIN_MS.
 */
export function createMemoryDedup({ clock, ...options }: DedupMarksOptions & { readonly clock: Clock }): MemoryDedup {
  const marks = new DedupMarks(options);
  const counters = createCounters();
  return {
    see(key, now = clock.now()) {
      const first = marks.set(key, now);
      counters.count(now, first);
      return first;
    },
    stats(windowSeconds) {
      const now = clock.now();
      marks.expire(now);
      const { from, ...counted } = counters.sum(now, windowSeconds);
      // If a mark was evicted early, a duplicate may have looked unique until the mark would have expired.
      const exact = marks.evictedAt + DEDUP_TTL_MS < from;
      return { windowSeconds, ...counted, exact, grainSeconds: DEDUP_GRAIN_MS / 1000, liveKeys: marks.size };
    },
    backend: () => ({ implementation: 'memory', ttlSeconds: DEDUP_TTL_MS / 1000, namespace: null }),
  };
}

type Counted = Pick<DedupStats, 'seen' | 'unique' | 'duplicates'>;
type Counters = {
  count(now: number, first: boolean): void;
  /** Sums the counters of the window. `from`: when the oldest time slot of the window began, in epoch milliseconds. */
  sum(now: number, windowSeconds: number): Counted & { readonly from: number };
};

function createCounters(): Counters {
  const buckets = new Map<number, { seen: number; unique: number }>();
  const forget = (oldest: number): void => {
    for (const bucket of buckets.keys()) {
      if (bucket < oldest) buckets.delete(bucket);
    }
  };
  return {
    count(now, first) {
      const at = bucketOf(now);
      const bucket = buckets.get(at) ?? { seen: 0, unique: 0 };
      if (!buckets.has(at)) forget(at - bucketsOf(DEDUP_WINDOW_SECONDS.max));
      buckets.set(at, bucket);
      bucket.seen++;
      if (first) bucket.unique++;
    },
    sum(now, windowSeconds) {
      const first = bucketOf(now) - bucketsOf(windowSeconds) + 1;
      let seen = 0;
      let unique = 0;
      for (const [at, bucket] of buckets) {
        if (at < first) continue;
        seen += bucket.seen;
        unique += bucket.unique;
      }
      return { seen, unique, duplicates: seen - unique, from: first * DEDUP_GRAIN_MS };
    },
  };
}

function bucketOf(at: number): number {
  return Math.floor(at / DEDUP_GRAIN_MS);
}

function bucketsOf(seconds: number): number {
  return Math.ceil((seconds * 1000) / DEDUP_GRAIN_MS);
}
