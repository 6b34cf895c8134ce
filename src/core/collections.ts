/** Collections: a map for entries that come and go, a map keyed by client, and a map with a bounded size for caches. */
import type { ClientKey } from './ids.ts';
import type { Clock } from './ports.ts';

/**
 * The inner table is replaced after this many deletes, or after as many deletes as it has entries left, whichever is
 * more. So the copying costs constant time per delete (amortised).
 */
const RENEW_AFTER = 128;

/**
 * A Map for entries that come and go with every command. V8 replaces a table that is full of deleted entries, and the
 * old table keeps a pointer to its successor. If the old table was promoted to the old generation, it keeps all later
 * tables and their objects alive until the next full garbage collection. Making a new Map after RENEW_AFTER deletes
 * breaks this chain. Iterates like a Map, even while entries are added and deleted. The inner Map is created with the
 * first entry, because each of thousands of idle clients has maps that often stay empty.
 */
export class ChurnMap<K, V> {
  #entries: Map<K, V> | null = null;
  #deleted = 0;
  #readers = 0;

  get size(): number {
    return this.#entries?.size ?? 0;
  }

  has(key: K): boolean {
    return this.#entries !== null && this.#entries.has(key);
  }

  get(key: K): V | undefined {
    return this.#entries?.get(key);
  }

  set(key: K, value: V): this {
    if (this.#deleted >= RENEW_AFTER && this.#deleted >= this.size && this.#readers === 0) this.#renew();
    (this.#entries ??= new Map()).set(key, value);
    return this;
  }

  delete(key: K): boolean {
    const found = this.#entries !== null && this.#entries.delete(key);
    if (found) this.#deleted++;
    return found;
  }

  clear(): void {
    this.#entries = null;
    this.#deleted = 0;
  }

  /** Returns the entry that was added first, as `[key, value]`. */
  first(): [K, V] | undefined {
    for (const entry of this.#entries ?? []) return entry;
    return undefined;
  }

  *[Symbol.iterator](): Generator<[K, V]> {
    if (this.#entries === null) return;
    // An iterator of the inner Map does not see entries of a new one, so the Map is not replaced while an iteration
    // runs.
    this.#readers++;
    try {
      yield* this.#entries;
    } finally {
      this.#readers--;
    }
  }

  *keys(): Generator<K> {
    for (const [key] of this) yield key;
  }

  *values(): Generator<V> {
    for (const [, value] of this) yield value;
  }

  #renew(): void {
    this.#entries = new Map(this.#entries);
    this.#deleted = 0;
  }
}

/**
 * A map keyed by client. It looks up the user and then the client id, so that no look-up builds a key string. Iterates
 * like a Map.
 */
export class ByClient<V> {
  readonly #users = new Map<string, Map<string, V>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get({ userId, clientId }: ClientKey): V | undefined {
    return this.#users.get(userId)?.get(clientId);
  }

  set({ userId, clientId }: ClientKey, value: V): void {
    const known = this.#users.get(userId);
    const clients = known ?? new Map<string, V>();
    if (!known) this.#users.set(userId, clients);
    const before = clients.size;
    this.#size += clients.set(clientId, value).size - before;
  }

  delete({ userId, clientId }: ClientKey): void {
    const clients = this.#users.get(userId);
    if (!clients?.delete(clientId)) return;
    this.#size--;
    if (clients.size === 0) this.#users.delete(userId);
  }

  ofUser(userId: string): Iterable<V> {
    return this.#users.get(userId)?.values() ?? [];
  }

  *entries(): Generator<readonly [ClientKey, V]> {
    for (const [userId, clients] of this.#users)
      for (const [clientId, value] of clients) yield [{ userId, clientId }, value];
  }

  *values(): Generator<V> {
    for (const clients of this.#users.values()) yield* clients.values();
  }
}

// A map with a bounded number of entries and, optionally, a bounded age of each entry. The relay's caches use it.

type BoundedMapOptions = {
  /** The most entries, at least 1. If there is one more, the oldest is evicted. */
  readonly most: number;
  /** What makes an entry the youngest: setting it (`set`, the default), or also reading it (`used`). */
  readonly order?: 'set' | 'used';
  /** How long an entry lives after it was set, in milliseconds. Absent: until it is evicted or deleted. */
  readonly ttl?: { readonly ms: number; readonly clock: Pick<Clock, 'monotonic'> };
};

/** An entry, linked to its neighbours in the order of age. Thanks to the links, reading an entry changes no table. */
type Entry<K, V> = { readonly key: K; value: V; setAt: number; older: Entry<K, V> | null; younger: Entry<K, V> | null };

/**
 * A map that evicts its oldest entry when it has more than `most` entries. With a TTL, an entry is no longer returned
 * after `ttl.ms` milliseconds of monotonic time. It is removed when it is read, or when it is the oldest and room is
 * needed. Every method takes constant time (amortised).
 */
export class BoundedMap<K, V> {
  readonly #options: BoundedMapOptions;
  #entries = new ChurnMap<K, Entry<K, V>>();
  #oldest: Entry<K, V> | null = null;
  #youngest: Entry<K, V> | null = null;

  constructor(options: BoundedMapOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { ttl, order } = this.#options;
    if (ttl && ttl.clock.monotonic() - entry.setAt >= ttl.ms) {
      this.#remove(entry);
      return undefined;
    }
    if (order === 'used' && entry !== this.#youngest) {
      this.#unlink(entry);
      this.#append(entry);
    }
    return entry.value;
  }

  /** Yields the keys, oldest first. */
  *keys(): Generator<K> {
    for (let entry = this.#oldest; entry; entry = entry.younger) yield entry.key;
  }

  /** Sets the value of a key. The entry becomes the youngest, and its TTL begins again. */
  set(key: K, value: V): void {
    const { most, ttl } = this.#options;
    const setAt = ttl ? ttl.clock.monotonic() : 0;
    const known = this.#entries.get(key);
    if (known) {
      known.value = value;
      known.setAt = setAt;
      this.#unlink(known);
      this.#append(known);
      return;
    }
    const entry: Entry<K, V> = { key, value, setAt, older: null, younger: null };
    this.#entries.set(key, entry);
    this.#append(entry);
    if (this.#entries.size > most && this.#oldest) this.#remove(this.#oldest);
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry) this.#remove(entry);
    return entry !== undefined;
  }

  clear(): void {
    this.#entries = new ChurnMap();
    this.#oldest = null;
    this.#youngest = null;
  }

  #remove(entry: Entry<K, V>): void {
    this.#entries.delete(entry.key);
    this.#unlink(entry);
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#youngest;
    if (this.#youngest) this.#youngest.younger = entry;
    else this.#oldest = entry;
    this.#youngest = entry;
  }

  #unlink(entry: Entry<K, V>): void {
    const { older, younger } = entry;
    if (older) older.younger = younger;
    else this.#oldest = younger;
    if (younger) younger.older = older;
    else this.#youngest = older;
    entry.older = null;
    entry.younger = null;
  }
}
