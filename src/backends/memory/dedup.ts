import { ByClient } from '../../core/by-client.ts';
import type { Clock } from '../../core/clock.ts';
import type { DedupStats, DedupStore } from '../../core/dedup/store.ts';
import { DEDUP_GRAIN_MS, DEDUP_MARKS, DEDUP_TTL_MS, DEDUP_WINDOW_SECONDS } from '../../core/limits.ts';
import type { ClientKey } from '../../core/ids.ts';
import { createQueue } from './list-queue.ts';

/** What identifies a message for the deduplicator. */
export type DedupKey = { readonly userId: string; readonly clientId: string; readonly messageId: string };

export interface MemoryDedup extends DedupStore {
  /**
   * Counts one sighting. True if it is the first within DEDUP_TTL_MS; the mark is then set, and later sightings do not
   * renew it.
   */
  see(key: DedupKey): boolean;
}

/**
 * Marks in the order in which they are set, so that the oldest expire first, and counters in buckets of DEDUP_GRAIN_MS.
 */
export function createMemoryDedup(clock: Clock, maxMarks: number = DEDUP_MARKS): MemoryDedup {
  const marks = createMarks(maxMarks);
  const counters = createCounters();
  return {
    see({ userId, clientId, messageId }) {
      const now = clock.now();
      const first = marks.set({ userId, clientId }, messageId, now);
      counters.count(now, first);
      return first;
    },
    stats(windowSeconds) {
      const now = clock.now();
      marks.expire(now);
      const { from, ...counted } = counters.sum(now, windowSeconds);
      // A mark that was dropped early may have made a duplicate look unique, for as long as the mark would have lived.
      const exact = marks.evictedAt() + DEDUP_TTL_MS < from;
      return { windowSeconds, ...counted, exact, grainSeconds: DEDUP_GRAIN_MS / 1000, liveKeys: marks.size() };
    },
    backend: () => ({ implementation: 'memory', ttlSeconds: DEDUP_TTL_MS / 1000, namespace: null }),
  };
}

type Marks = {
  /** True if there was no live mark; a mark is then set. Constant time. */
  set(client: ClientKey, messageId: string, now: number): boolean;
  expire(now: number): void;
  size(): number;
  /** When the last mark was dropped for lack of room, in epoch milliseconds. */
  evictedAt(): number;
};

/** The marks of one client. Only its message ids are hashed, and an id's string is shared with the message's row. */
type ClientMarks = { readonly client: ClientKey; readonly ids: Set<string> };

function createMarks(maxMarks: number): Marks {
  const clients = new ByClient<ClientMarks>();
  // A Set finds its first key only by passing all that were deleted before it, hence the queues.
  const keys = createQueue<string>();
  const owners = createQueue<ClientMarks>();
  const ends = createQueue<number>();
  let size = 0;
  let evictedAt = -Infinity;
  const dropFirst = (): void => {
    const oldest = keys.first();
    const owner = owners.first();
    if (oldest === undefined || owner === undefined) return;
    owner.ids.delete(oldest);
    if (owner.ids.size === 0) clients.delete(owner.client);
    size--;
    keys.shift();
    owners.shift();
    ends.shift();
  };
  const expire = (now: number): void => {
    for (let until = ends.first(); until !== undefined && until <= now; until = ends.first()) dropFirst();
  };
  return {
    expire,
    set(client, messageId, now) {
      expire(now);
      const owner = clients.get(client) ?? { client, ids: new Set<string>() };
      const before = owner.ids.size;
      if (owner.ids.add(messageId).size === before) return false;
      if (before === 0) clients.set(client, owner);
      size++;
      keys.push(messageId);
      owners.push(owner);
      ends.push(now + DEDUP_TTL_MS);
      if (size > maxMarks) {
        dropFirst();
        evictedAt = now;
      }
      return true;
    },
    size: () => size,
    evictedAt: () => evictedAt,
  };
}

type Counted = Pick<DedupStats, 'seen' | 'unique' | 'duplicates'>;
type Counters = {
  count(now: number, first: boolean): void;
  /** Sums the buckets of the window; `from`: when the oldest of them began. */
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
