/** Recognises repeated messages within one process, and counts the messages that were seen and repeated. */
import type { DedupStats, DedupStore } from '../../core/dedup/dedup.ts';
import { DEDUP_GRAIN_MS, DEDUP_TTL_MS, DEDUP_WINDOW_SECONDS } from '../../core/limits.ts';
import { silentMetrics, type Metrics } from '../../core/metrics.ts';
import type { Clock, Log } from '../../core/ports.ts';
import type { Holdings, Shares } from '../../core/shares/shares.ts';

export interface MemoryDedup extends DedupStore {
  /**
   * Counts one arrival of a message. Returns true if it is the first within DEDUP_TTL_MS. The first arrival sets the
   * mark, and later ones do not renew it.
   */
  see(key: DedupKey, now?: number): boolean;
  /** Reads the marks, oldest first. Between two of them, marks may be set, evicted and expire. */
  marks(): Generator<DedupKey & { readonly setAt: number }>;
  /** Sets a mark that was set at this time before a restart. Counts nothing. */
  restore(key: DedupKey, setAt: number): void;
  /** Evicts a mark that was evicted at this time before a restart, if it is there. */
  evict(key: DedupKey, now: number): void;
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
    marks: () => marks.all(),
    restore: (key, setAt) => void marks.set(key, setAt),
    evict: (key, now) => marks.evictAgain(key, now),
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

function createCounters() {
  const buckets = new Map<number, { seen: number; unique: number }>();
  const forget = (oldest: number): void => {
    for (const bucket of buckets.keys()) {
      if (bucket < oldest) buckets.delete(bucket);
    }
  };
  return {
    count(now: number, first: boolean): void {
      const at = bucketOf(now);
      const bucket = buckets.get(at) ?? { seen: 0, unique: 0 };
      if (!buckets.has(at)) forget(at - bucketsOf(DEDUP_WINDOW_SECONDS.max));
      buckets.set(at, bucket);
      bucket.seen++;
      if (first) bucket.unique++;
    },
    /**
     * Sums the counters of the window. `from`: when the oldest time slot of the window began, in epoch milliseconds.
     */
    sum(now: number, windowSeconds: number): Counted & { readonly from: number } {
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

// Remembers in memory which message ids were seen, so that duplicates are recognised. The number of ids is bounded for
// each user and in total.

/** The ids that identify a message to the deduplicator. */
export type DedupKey = { readonly userId: string; readonly clientId: string; readonly messageId: string };

type DedupMarksOptions = {
  readonly shares: Shares;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly drops?: MarkDrops | undefined;
};

/**
 * Learns which marks were evicted for lack of room. Which ones depends on what all users hold, so a journal has to
 * record it.
 */
export interface MarkDrops {
  /** True while a journal is read: nothing is evicted, because the journal says what was evicted. */
  readonly replaying: boolean;
  markDropped(key: DedupKey): void;
}

/** The message ids of one client that are remembered now. */
type ClientMarks = { readonly clientId: string; readonly ids: Set<string> };

/**
 * The remembered message ids, called marks, in the order in which they were set. A mark lives for DEDUP_TTL_MS. If the
 * total of the share `dedup_marks` is exceeded, marks are evicted earlier: the oldest one of the user who is most over
 * their guarantee, or the oldest of all if no user is over. Setting and dropping a mark takes amortised constant time,
 * besides the choice of the user to evict from.
 */
export class DedupMarks {
  readonly #options: DedupMarksOptions;
  readonly #metrics: Metrics;
  readonly #users = new Map<string, UserMarks>();
  /**
   * The user of each mark, in the order in which the marks were set. `#ends` has the expiry of each mark. Evicting a
   * mark leaves its entry in place, so the first `evicted` entries of a user have no mark any more.
   */
  #places: (UserMarks | undefined)[] = [];
  #ends: number[] = [];
  #head = 0;
  /** The number of entries that were cut from the beginning of `#places`. */
  #cut = 0;
  /** The number of evictions, each of which moves the ids of a user against its entries. */
  #evictions = 0;
  #size = 0;
  #evictedAt = -Infinity;

  constructor(options: DedupMarksOptions) {
    this.#options = options;
    this.#metrics = options.metrics ?? silentMetrics;
  }

  get size(): number {
    return this.#size;
  }

  /** When the last mark was dropped for lack of room, in epoch milliseconds; -Infinity: never. */
  get evictedAt(): number {
    return this.#evictedAt;
  }

  /** The number of entries in `#places`: at most about twice the number of marks. */
  get places(): number {
    return this.#places.length - this.#head;
  }

  /** Sets a mark. Returns true if the id had no live mark before. */
  set({ userId, clientId, messageId }: DedupKey, now: number): boolean {
    this.expire(now);
    const user = this.#users.get(userId) ?? this.#userOf(userId);
    if (!user.add(clientId, messageId)) return false;
    this.#size++;
    this.#places.push(user);
    this.#ends.push(now + DEDUP_TTL_MS);
    const { total } = this.#options.shares.bounds.dedup_marks;
    if (total !== null && this.#size > total && !this.#options.drops?.replaying) this.#evict(now);
    return true;
  }

  /** Reads the marks that are there now, oldest first. Between two of them, marks may be set, evicted and expire. */
  *all(): Generator<DedupKey & { readonly setAt: number }> {
    const last = this.#cut + this.#places.length;
    let evictions = -1;
    let place = 0;
    let next = new Map<UserMarks, number>();
    for (; ; place++) {
      // What was read twice does no harm: setting a mark again changes nothing.
      if (evictions !== this.#evictions || place < this.#cut + this.#head) {
        evictions = this.#evictions;
        place = this.#cut + this.#head;
        next = new Map();
      }
      const user = this.#places[place - this.#cut];
      const end = this.#ends[place - this.#cut] ?? 0;
      if (!user || place >= last) return;
      const number = next.get(user) ?? user.dropped - user.evicted;
      next.set(user, number + 1);
      const key = user.markOf(number);
      if (key) yield { ...key, userId: user.holdings.userId, setAt: end - DEDUP_TTL_MS };
    }
  }

  /** Drops the marks that have expired. */
  expire(now: number): void {
    for (let user = this.#places[this.#head]; user; user = this.#places[this.#head]) {
      if (user.evicted > 0) user.evicted--;
      else if ((this.#ends[this.#head] ?? 0) <= now) this.#drop(user);
      else return;
      this.#shift();
    }
  }

  #userOf(userId: string): UserMarks {
    const made = new UserMarks(this.#options.shares.of(userId));
    this.#users.set(userId, made);
    return made;
  }

  #evict(now: number): void {
    const holder = this.#options.shares.mostOver('dedup_marks');
    const user = (holder && this.#users.get(holder.userId)) ?? this.#oldest();
    if (user) this.#evictFrom(user, now);
  }

  /** Evicts a mark that was evicted before a restart. It is the oldest one of its user, or gone already. */
  evictAgain({ userId, clientId, messageId }: DedupKey, now: number): void {
    const user = this.#users.get(userId);
    const oldest = user?.markOf(user.dropped);
    if (user && oldest?.clientId === clientId && oldest.messageId === messageId) this.#evictFrom(user, now);
  }

  #evictFrom(user: UserMarks, now: number): void {
    const oldest = user.markOf(user.dropped);
    if (oldest) this.#options.drops?.markDropped({ userId: user.holdings.userId, ...oldest });
    this.#evictedAt = now;
    this.#metrics.count('dedup_marks_evicted');
    if (user.evictedAt + DEDUP_TTL_MS <= now)
      this.#options.log.warn(
        { userId: user.holdings.userId },
        'no room for deduplication marks: some are dropped early',
      );
    user.evictedAt = now;
    this.#evictions++;
    user.evicted++;
    this.#drop(user);
    if (this.places > 2 * this.#size + 16) this.#compact();
  }

  #oldest(): UserMarks | undefined {
    // Skips the first entries as far as their marks were evicted. At this time no mark has expired.
    this.expire(-Infinity);
    return this.#places[this.#head];
  }

  /** Drops the user's oldest mark. A user without marks is forgotten. */
  #drop(user: UserMarks): void {
    user.dropFirst();
    this.#size--;
    if (user.size === 0) this.#users.delete(user.holdings.userId);
  }

  #shift(): void {
    // Clears the entry at once, so that it refers to no user until the arrays are shortened.
    this.#places[this.#head++] = undefined;
    if (this.#head * 2 <= this.#places.length) return;
    this.#places = this.#places.slice(this.#head);
    this.#ends = this.#ends.slice(this.#head);
    this.#cut += this.#head;
    this.#head = 0;
  }

  /** Removes the entries whose marks were evicted. These are the first entries of each user. */
  #compact(): void {
    let kept = 0;
    for (let at = this.#head; at < this.#places.length; at++) {
      const user = this.#places[at];
      if (user === undefined || user.evicted-- > 0) continue;
      user.evicted = 0;
      this.#places[kept] = user;
      this.#ends[kept++] = this.#ends[at] ?? 0;
    }
    this.#places.length = kept;
    this.#ends.length = kept;
    this.#head = 0;
  }
}

/**
 * The marks of one user. Ids are kept in one Set for each client. An id is the same string as in its history row, so
 * its text takes no further memory.
 */
class UserMarks {
  readonly holdings: Holdings;
  /**
   * The number of this user's entries in DedupMarks whose marks were evicted. They come before the entries that still
   * have marks.
   */
  evicted = 0;
  /** When a mark was last evicted, in epoch milliseconds; -Infinity: never. */
  evictedAt = -Infinity;
  /** The number of marks that were dropped. Marks are numbered in the order in which they were set. */
  dropped = 0;
  readonly #clients = new Map<string, ClientMarks>();
  // Finding the first key of a Set means skipping all deleted keys, so a queue keeps the order.
  #ids: (string | undefined)[] = [];
  #owners: (ClientMarks | undefined)[] = [];
  #head = 0;

  constructor(holdings: Holdings) {
    this.holdings = holdings;
  }

  get size(): number {
    return this.#ids.length - this.#head;
  }

  /** Adds an id. Returns false if it is already there. */
  add(clientId: string, id: string): boolean {
    const client = this.#clients.get(clientId) ?? { clientId, ids: new Set<string>() };
    const before = client.ids.size;
    if (client.ids.add(id).size === before) return false;
    if (before === 0) this.#clients.set(clientId, client);
    this.#ids.push(id);
    this.#owners.push(client);
    this.holdings.take('dedup_marks', 1);
    return true;
  }

  /** Returns the mark of this number; null if it was dropped. */
  markOf(number: number): Omit<DedupKey, 'userId'> | null {
    const at = this.#head + number - this.dropped;
    const [messageId, client] = number < this.dropped ? [] : [this.#ids[at], this.#owners[at]];
    return messageId === undefined || !client ? null : { clientId: client.clientId, messageId };
  }

  dropFirst(): void {
    const id = this.#ids[this.#head];
    const client = this.#owners[this.#head];
    if (id === undefined || client === undefined) return;
    client.ids.delete(id);
    if (client.ids.size === 0) this.#clients.delete(client.clientId);
    this.holdings.release('dedup_marks', 1);
    this.dropped++;
    this.#ids[this.#head] = undefined;
    this.#owners[this.#head++] = undefined;
    if (this.#head * 2 <= this.#ids.length) return;
    this.#ids = this.#ids.slice(this.#head);
    this.#owners = this.#owners.slice(this.#head);
    this.#head = 0;
  }
}
