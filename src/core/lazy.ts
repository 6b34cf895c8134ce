/** A Set and a Map that take almost no memory while they are empty. */
import { ChurnMap, ChurnSet } from './churn.ts';

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
