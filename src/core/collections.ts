/** Collections that core needs besides those of the language. */
import type { ClientKey } from './ids.ts';

/**
 * The least number of deletes after which the inner table is renewed. A table with more items left is renewed after as
 * many deletes as it has items, so that copying costs amortised constant time.
 */
const RENEW_AFTER = 128;

/**
 * A Map for entries that come and go with every command. When a V8 table is full of deleted entries, V8 replaces it,
 * and the old table keeps a pointer to its successor. An old table that was promoted to the old generation therefore
 * keeps all later tables and their objects alive until the next full collection. A new Map after RENEW_AFTER deletes
 * ends that chain. Iterates as a Map does, also while entries are added and deleted.
 */
export class ChurnMap<K, V> {
  #entries = new Map<K, V>();
  #deleted = 0;
  #readers = 0;

  get size(): number {
    return this.#entries.size;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): this {
    if (this.#deleted >= RENEW_AFTER && this.#deleted >= this.#entries.size && this.#readers === 0) this.#renew();
    this.#entries.set(key, value);
    return this;
  }

  delete(key: K): boolean {
    const found = this.#entries.delete(key);
    if (found) this.#deleted++;
    return found;
  }

  /** Returns the entry that was added first. */
  first(): [K, V] | undefined {
    for (const entry of this.#entries) return entry;
    return undefined;
  }

  *[Symbol.iterator](): Generator<[K, V]> {
    // An iterator of the inner Map sees later changes only while that Map is in use, so the table is not renewed during
    // an iteration.
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

/** Like ChurnMap, for a Set. */
export class ChurnSet<T> {
  readonly #items = new ChurnMap<T, T>();

  get size(): number {
    return this.#items.size;
  }

  has(item: T): boolean {
    return this.#items.has(item);
  }

  add(item: T): this {
    this.#items.set(item, item);
    return this;
  }

  delete(item: T): boolean {
    return this.#items.delete(item);
  }

  [Symbol.iterator](): Generator<T> {
    return this.#items.keys();
  }
}

// A Set and a Map that take almost no memory while they are empty.

/**
 * A Set that creates its inner Set with the first item. It has only the methods that core needs. Each client has
 * several sets that often stay empty, so this saves memory with thousands of idle clients.
 */
export class LazySet<T> {
  #items: ChurnSet<T> | null = null;

  get size(): number {
    return this.#items?.size ?? 0;
  }

  has(item: T): boolean {
    return this.#items !== null && this.#items.has(item);
  }

  add(item: T): void {
    (this.#items ??= new ChurnSet()).add(item);
  }

  delete(item: T): void {
    this.#items?.delete(item);
  }

  /**
   * Iterates over the items in the order in which they were added. As with a Set, items may be added and deleted during
   * the iteration.
   */
  [Symbol.iterator](): IterableIterator<T> {
    return this.#items ? this.#items[Symbol.iterator]() : NOTHING;
  }
}

/** Like LazySet, for a Map. */
export class LazyMap<K, V> {
  #items: ChurnMap<K, V> | null = null;

  get size(): number {
    return this.#items?.size ?? 0;
  }

  get(key: K): V | undefined {
    return this.#items?.get(key);
  }

  set(key: K, value: V): void {
    (this.#items ??= new ChurnMap()).set(key, value);
  }

  delete(key: K): void {
    this.#items?.delete(key);
  }

  /** Returns the entry that was added first. */
  first(): [K, V] | undefined {
    return this.#items?.first();
  }

  clear(): void {
    this.#items = null;
  }

  values(): IterableIterator<V> {
    return this.#items ? this.#items.values() : NOTHING;
  }

  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.#items ? this.#items[Symbol.iterator]() : NOTHING;
  }
}

const NOTHING: IterableIterator<never> = ([] as never[]).values();

// A map whose keys are clients: a user and a client id.

/**
 * A map keyed by client. It looks up the user and then the client id, so that no look-up builds a key string. Iterates
 * as a Map does.
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

  *entries(): Generator<readonly [ClientKey, V]> {
    for (const [userId, clients] of this.#users)
      for (const [clientId, value] of clients) yield [{ userId, clientId }, value];
  }

  *values(): Generator<V> {
    for (const clients of this.#users.values()) yield* clients.values();
  }
}
