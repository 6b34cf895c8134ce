/** Recognises repeated messages within one process, and counts the messages that were seen and repeated. */
import type { DedupStats, DedupStore } from '../../core/dedup/dedup.ts';
import { DEDUP_GRAIN_MS, DEDUP_TTL_MS, DEDUP_WINDOW_SECONDS } from '../../core/limits.ts';
import { silentMetrics, type Metrics } from '../../core/metrics.ts';
import type { Clock, Log } from '../../core/ports.ts';
import type { Holdings, Shares } from '../../core/shares/shares.ts';
import { SparseQueue } from './sparse-queue.ts';
import { createEvidence, type EvidenceKind, type EvidenceKinds, type EvidenceTable } from './evidence.ts';

export interface MemoryDedup extends DedupStore {
  /**
   * Counts one arrival of a message. Returns true if it is the first within DEDUP_TTL_MS. The first arrival sets the
   * mark, and later ones do not renew it.
   */
  see(key: DedupKey, now?: number): boolean;
  /**
   * Counts one arrival of an end of a command. Sets no mark, because the command's record shows whether the end
   * `isNew`.
   */
  countEnd(isNew: boolean, now: number): void;
  /** Starts a new pass of `marks` over the marks that are set now. The store supports one pass at a time. */
  rewind(): void;
  /**
   * Reads the marks of the pass that `rewind` started, oldest first. Marks may be set, evicted or expire between two
   * steps.
   */
  marks(): Generator<DedupKey & { readonly setAt: number }>;
  /** Sets a mark that was set at `setAt` before a restart. Counts nothing. */
  restore(key: DedupKey, setAt: number): void;
  /** Evicts a mark that was evicted at `now` before a restart, if the mark exists. */
  evict(key: DedupKey, now: number): void;
  /** Evicts marks until their total is within its limit. Returns the same as `EvidenceKind.keepWithin`. */
  keepWithin(now: number): boolean;
  /** Drops all marks: no user holds any of them afterwards. */
  discard(): void;
  /** Tells the store that the process was not running until `now`, so the counters contain no earlier arrivals. */
  resume(now: number): void;
}

/**
 * Creates the deduplicator. Its marks stay within their share. It has one counter for each time slot of DEDUP_GRAIN_MS.
 */
export function createMemoryDedup({ clock, ...options }: DedupMarksOptions & { readonly clock: Clock }): MemoryDedup {
  const marks = new DedupMarks(options);
  const counters = createCounters();
  let resumedAt = -Infinity;
  return {
    see(key, now = clock.now()) {
      const first = marks.set(key, now);
      counters.count(now, first);
      return first;
    },
    countEnd: (isNew, now) => counters.count(now, isNew, isNew ? 1 : 0),
    rewind: () => marks.rewind(),
    marks: () => marks.all(),
    restore: (key, setAt) => void marks.set(key, setAt),
    evict: (key, now) => marks.evictAgain(key, now),
    keepWithin: (now) => marks.keepWithin(now, null),
    discard: () => marks.discard(),
    resume: (now) => void (resumedAt = now),
    stats(windowSeconds) {
      const now = clock.now();
      marks.expire(now);
      const { from, newEnds: _, ...counted } = counters.sum(now, windowSeconds);
      const { newEnds, from: endsFrom } = counters.sum(now, DEDUP_TTL_MS / 1000);
      // If a mark was evicted early, a duplicate may have counted as unique until the time at which the mark would have
      // expired.
      const exact = Math.max(marks.evictedAt + DEDUP_TTL_MS, resumedAt) < from;
      const liveKeys = resumedAt < endsFrom ? marks.size + newEnds : null;
      return { windowSeconds, ...counted, exact, grainSeconds: DEDUP_GRAIN_MS / 1000, liveKeys };
    },
    backend: () => ({ implementation: 'memory', ttlSeconds: DEDUP_TTL_MS / 1000, namespace: null }),
  };
}

type DedupCounts = Pick<DedupStats, 'seen' | 'unique' | 'duplicates'> & {
  /** How many of the unique messages were ends of commands. */
  readonly newEnds: number;
};

function createCounters() {
  const buckets = new Map<number, { seen: number; unique: number; newEnds: number }>();
  const forget = (oldest: number): void => {
    for (const bucket of buckets.keys()) {
      if (bucket < oldest) buckets.delete(bucket);
    }
  };
  return {
    count(now: number, first: boolean, newEnds = 0): void {
      const at = bucketOf(now);
      const bucket = buckets.get(at) ?? { seen: 0, unique: 0, newEnds: 0 };
      if (!buckets.has(at)) forget(at - bucketsOf(DEDUP_WINDOW_SECONDS.max));
      buckets.set(at, bucket);
      bucket.seen++;
      if (first) bucket.unique++;
      bucket.newEnds += newEnds;
    },
    /**
     * Sums the counters of the window. `from` is the start of the oldest time slot of the window, in epoch
     * milliseconds.
     */
    sum(now: number, windowSeconds: number): DedupCounts & { readonly from: number } {
      const first = bucketOf(now) - bucketsOf(windowSeconds) + 1;
      let [seen, unique, newEnds] = [0, 0, 0];
      for (const [at, bucket] of buckets) {
        if (at < first) continue;
        seen += bucket.seen;
        unique += bucket.unique;
        newEnds += bucket.newEnds;
      }
      return { seen, unique, duplicates: seen - unique, newEnds, from: first * DEDUP_GRAIN_MS };
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
type DedupKey = { readonly userId: string; readonly clientId: string; readonly messageId: string };

type DedupMarksOptions = {
  readonly shares: Shares;
  /** The evidence of the process. If absent, this table is the only evidence of its kind. */
  readonly evidence?: Pick<EvidenceKinds, 'seen'> | undefined;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly drops?: MarkDrops | undefined;
};

/**
 * Receives the marks that are evicted for lack of room. The choice depends on what all users hold, so a replay cannot
 * repeat it, and a journal must record it.
 */
export interface MarkDrops {
  /**
   * True while a journal is replayed. Then no mark is evicted for lack of room, because the journal records the
   * evictions.
   */
  readonly replaying: boolean;
  /** The drops after this call do not belong to the act that is in progress. */
  beginApart(): void;
  markDropped(key: DedupKey): void;
}

/** A remembered message id of one client. `end`: when it expires, in epoch milliseconds. */
type Mark = {
  readonly user: UserMarks;
  readonly clientId: string;
  readonly messageId: string;
  readonly end: number;
  gone: boolean;
};

/**
 * The marks of one user. `evictedAt` is the time of the last eviction, in epoch milliseconds; -Infinity if there was
 * none.
 */
type UserMarks = {
  readonly holdings: Holdings;
  /** The marks by client id, then by message id. Two maps save building a key text for each look-up. */
  readonly clients: Map<string, Map<string, Mark>>;
  readonly oldestFirst: SparseQueue<Mark>;
  evictedAt: number;
};

function isGone({ gone }: Mark): boolean {
  return gone;
}

/**
 * The remembered message ids, called marks, in the order in which they were set. A mark lives for DEDUP_TTL_MS. If the
 * total of the share `dedup_marks` is exceeded, marks are evicted earlier: the oldest one of the user who is most over
 * their guarantee, or the oldest of all if no user is over. Setting and dropping a mark takes amortised constant time,
 * besides the choice of the user to evict from.
 */
export class DedupMarks implements EvidenceTable {
  readonly #options: DedupMarksOptions;
  readonly #metrics: Metrics;
  readonly #evidence: EvidenceKind;
  readonly #users = new Map<string, UserMarks>();
  readonly #oldestFirst = new SparseQueue<Mark>(isGone);
  #evictedAt = -Infinity;

  constructor(options: DedupMarksOptions) {
    this.#options = options;
    this.#metrics = options.metrics ?? silentMetrics;
    this.#evidence = (options.evidence ?? createEvidence(options.shares)).seen;
    this.#evidence.add(this);
  }

  get isFilling(): boolean {
    return this.#options.drops?.replaying ?? false;
  }

  get held(): number {
    return this.size;
  }

  oldestAt(): number {
    const oldest = this.#options.drops?.replaying ? undefined : this.#oldestFirst.first();
    return oldest ? oldest.end - DEDUP_TTL_MS : Infinity;
  }

  dropOldest(userId: string | null, now: number, isApart: boolean): boolean {
    const { drops } = this.#options;
    const oldest = userId === null ? this.#oldestFirst.first() : this.#users.get(userId)?.oldestFirst.first();
    if (!oldest || drops?.replaying) return false;
    if (isApart) drops?.beginApart();
    this.#evict(oldest, now);
    return true;
  }

  /**
   * Evicts marks until their total is within its limit. `acting`: this table, if the caller is an act that has set a
   * mark here. Returns the same as `EvidenceKind.keepWithin`.
   */
  keepWithin(now: number, acting: DedupMarks | null): boolean {
    const { total } = this.#options.shares.bounds.dedup_marks;
    if (total === null || this.#options.drops?.replaying) return true;
    return this.#evidence.keepWithin(total, now, acting);
  }

  /** Drops all marks: no user holds any of them afterwards. */
  discard(): void {
    this.#evidence.remove(this);
    for (const { holdings } of this.#users.values()) holdings.release('dedup_marks', holdings.held('dedup_marks'));
  }

  get size(): number {
    return this.#oldestFirst.size;
  }

  /** When the last mark was dropped for lack of room, in epoch milliseconds; -Infinity: never. */
  get evictedAt(): number {
    return this.#evictedAt;
  }

  /** Sets a mark. Returns true if the id had no live mark before. */
  set({ userId, clientId, messageId }: DedupKey, now: number): boolean {
    this.expire(now);
    const user = this.#users.get(userId) ?? this.#userOf(userId);
    const ids = user.clients.get(clientId) ?? new Map<string, Mark>();
    if (ids.has(messageId)) return false;
    const mark: Mark = { user, clientId, messageId, end: now + DEDUP_TTL_MS, gone: false };
    user.clients.set(clientId, ids.set(messageId, mark));
    user.oldestFirst.push(mark);
    user.holdings.take('dedup_marks', 1);
    this.#oldestFirst.push(mark);
    this.keepWithin(now, this);
    return true;
  }

  rewind(): void {
    this.#oldestFirst.rewind();
  }

  *all(): Generator<DedupKey & { readonly setAt: number }> {
    for (let next = this.#oldestFirst.next(); next; next = this.#oldestFirst.next()) {
      const { user, clientId, messageId, end } = next.item;
      yield { userId: user.holdings.userId, clientId, messageId, setAt: end - DEDUP_TTL_MS };
    }
  }

  /** Drops the marks that have expired. */
  expire(now: number): void {
    for (let mark = this.#oldestFirst.first(); mark && mark.end <= now; mark = this.#oldestFirst.first())
      this.#drop(mark);
  }

  /**
   * Evicts a mark that was evicted before a restart. Such a mark is the oldest mark of its user, or is no longer here.
   */
  evictAgain({ userId, clientId, messageId }: DedupKey, now: number): void {
    const oldest = this.#users.get(userId)?.oldestFirst.first();
    if (oldest?.clientId === clientId && oldest.messageId === messageId) return this.#evict(oldest, now);
    // The mark is missing if it was evicted while the snapshot was being written.
    this.#evictedAt = Math.max(this.#evictedAt, now);
  }

  #userOf(userId: string): UserMarks {
    const holdings = this.#options.shares.of(userId);
    const oldestFirst = new SparseQueue<Mark>(isGone);
    const made: UserMarks = { holdings, clients: new Map(), oldestFirst, evictedAt: -Infinity };
    this.#users.set(userId, made);
    return made;
  }

  #evict(mark: Mark, now: number): void {
    const { user, clientId, messageId } = mark;
    const { userId } = user.holdings;
    this.#options.drops?.markDropped({ userId, clientId, messageId });
    this.#evictedAt = now;
    this.#metrics.count('dedup_marks_evicted');
    if (user.evictedAt + DEDUP_TTL_MS <= now)
      this.#options.log.warn({ userId }, 'no room for deduplication marks: some are dropped early');
    user.evictedAt = now;
    this.#drop(mark);
  }

  /** Drops a mark. A user without marks is forgotten. */
  #drop(mark: Mark): void {
    const { user, clientId, messageId } = mark;
    const ids = user.clients.get(clientId);
    mark.gone = true;
    ids?.delete(messageId);
    if (ids?.size === 0) user.clients.delete(clientId);
    user.oldestFirst.noteDeleted();
    user.holdings.release('dedup_marks', 1);
    this.#oldestFirst.noteDeleted();
    if (user.oldestFirst.size === 0) this.#users.delete(user.holdings.userId);
  }
}
