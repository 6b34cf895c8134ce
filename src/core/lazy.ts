/**
 * The part of Set that is used here. The inner Set is created with the first item: each client has several that often
 * stay empty, which counts for ten thousand idle clients.
 */
export class LazySet<T> {
  #items: Set<T> | null = null;

  get size(): number {
    return this.#items?.size ?? 0;
  }

  has(item: T): boolean {
    return this.#items !== null && this.#items.has(item);
  }

  add(item: T): void {
    (this.#items ??= new Set()).add(item);
  }

  delete(item: T): void {
    this.#items?.delete(item);
  }

  /** In the order added. As in a Set, items may be added and deleted during the iteration. */
  [Symbol.iterator](): IterableIterator<T> {
    return (this.#items ?? new Set<T>()).values();
  }
}

/** The same for a Map. */
export class LazyMap<K, V> {
  #items: Map<K, V> | null = null;

  get size(): number {
    return this.#items?.size ?? 0;
  }

  get(key: K): V | undefined {
    return this.#items?.get(key);
  }

  set(key: K, value: V): void {
    (this.#items ??= new Map()).set(key, value);
  }

  delete(key: K): void {
    this.#items?.delete(key);
  }

  clear(): void {
    this.#items = null;
  }

  values(): IterableIterator<V> {
    return (this.#items ?? new Map<K, V>()).values();
  }

  [Symbol.iterator](): IterableIterator<[K, V]> {
    return (this.#items ?? new Map<K, V>()).entries();
  }
}
