/** As much of a Set as is used here, made with its first item: ten thousand idle clients each have some that stay empty. */
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

  /** In the order added. As of a Set, also while items come and go. */
  [Symbol.iterator](): IterableIterator<T> {
    return (this.#items ?? new Set<T>()).values();
  }
}

/** Likewise of a Map. */
export class LazyMap<K, V> {
  #items: Map<K, V> | null = null;

  get size(): number {
    return this.#items?.size ?? 0;
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
