/** A Map and a Set whose memory stays bounded although their entries come and go with every command. */

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
