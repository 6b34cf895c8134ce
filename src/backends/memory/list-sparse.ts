/** The array is compacted once it has this many slots of removed items more than it has items left. */
const SLACK = 32;

/**
 * A first-in, first-out queue of items that may also leave early, from any place. `gone` says which ones have left; for
 * each of them `left` must be called once. Each step takes amortised constant time and each item one slot of an array.
 */
export class SparseQueue<T> {
  readonly #gone: (item: T) => boolean;
  #items: (T | undefined)[] = [];
  #head = 0;
  #size = 0;

  constructor(gone: (item: T) => boolean) {
    this.#gone = gone;
  }

  /** Number of items that have not left. */
  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    this.#items.push(item);
    this.#size++;
  }

  /** The oldest item that has not left. */
  first(): T | undefined {
    if (this.#size === 0) return undefined;
    for (; this.#head < this.#items.length; this.#head++) {
      const item = this.#items[this.#head];
      if (item !== undefined && !this.#gone(item)) return item;
      // Clears the slot at once, so that the item is not held until the array is shortened.
      this.#items[this.#head] = undefined;
    }
    return undefined;
  }

  /** Call once for each item that left, after `gone` returns true for it. */
  left(): void {
    this.#size--;
    if (this.#items.length <= 2 * this.#size + SLACK) return;
    this.#items = this.#items.slice(this.#head).filter((item) => item !== undefined && !this.#gone(item));
    this.#head = 0;
  }
}
