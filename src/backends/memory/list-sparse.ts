/** Beyond so many places of items that went early, and as many as are left, the places are taken back. */
const SLACK = 32;

/**
 * First in, first out, of items that may also go early, from anywhere. `gone` says which ones went: whoever lets one go calls `left` once.
 * Each step takes amortised constant time, at one place in an array for each item.
 */
export class SparseQueue<T> {
  readonly #gone: (item: T) => boolean;
  #items: (T | undefined)[] = [];
  #head = 0;
  #size = 0;

  constructor(gone: (item: T) => boolean) {
    this.#gone = gone;
  }

  /** Items that did not go. */
  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    this.#items.push(item);
    this.#size++;
  }

  /** The oldest item that did not go. */
  first(): T | undefined {
    if (this.#size === 0) return undefined;
    for (; this.#head < this.#items.length; this.#head++) {
      const item = this.#items[this.#head];
      if (item !== undefined && !this.#gone(item)) return item;
      // The slot is emptied at once, so that nothing is held until the array is shortened.
      this.#items[this.#head] = undefined;
    }
    return undefined;
  }

  /** One item went: `gone` says so of it. */
  left(): void {
    this.#size--;
    if (this.#items.length <= 2 * this.#size + SLACK) return;
    this.#items = this.#items.slice(this.#head).filter((item) => item !== undefined && !this.#gone(item));
    this.#head = 0;
  }
}
