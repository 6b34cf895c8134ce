/** A queue from which items may be deleted in any order. The memory of chunks that became empty is used again. */

/** The number of slots in a full chunk. */
const CHUNK = 512;
/** The queue is compacted once its deleted items outnumber its other items by more than this. */
const SLACK = 32;

/**
 * A part of a queue: the slots of `items` from `head` to `tail`. A chunk that was read to its end is filled again
 * instead of being replaced.
 */
type Chunk<T> = { readonly items: (T | undefined)[]; head: number; tail: number; next: Chunk<T> | null };

/**
 * A first-in, first-out queue of items that may also be deleted early, at any position. `gone` returns whether an item
 * was deleted, and `left` must be called once for each deletion. Each method takes amortised constant time, and each
 * item one slot of an array. A queue whose length stays about the same allocates nothing.
 */
export class SparseQueue<T> {
  readonly #gone: (item: T) => boolean;
  #first: Chunk<T> | null = null;
  #last: Chunk<T> | null = null;
  #spare: Chunk<T> | null = null;
  #slots = 0;
  #size = 0;

  constructor(gone: (item: T) => boolean) {
    this.#gone = gone;
  }

  /** The number of items that are not deleted. */
  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    this.#append(item);
    this.#size++;
  }

  /** Returns the oldest item that is not deleted. */
  first(): T | undefined {
    if (this.#size === 0) return undefined;
    for (let chunk = this.#first; chunk; chunk = this.#drop(chunk)) {
      for (; chunk.head < chunk.tail; chunk.head++, this.#slots--) {
        const item = chunk.items[chunk.head];
        if (item !== undefined && !this.#gone(item)) return item;
        // Clears the slot at once, so that the item is not kept in memory until the chunk is filled again.
        chunk.items[chunk.head] = undefined;
      }
    }
    return undefined;
  }

  /** Counts a deletion. Call it once for each deleted item, after `gone` returns true for the item. */
  left(): void {
    this.#size--;
    if (this.#slots > 2 * this.#size + SLACK) this.#compact();
  }

  #append(item: T): void {
    let chunk = this.#last;
    if (!chunk || chunk.tail === CHUNK) {
      const next = this.#spare ?? { items: [], head: 0, tail: 0, next: null };
      this.#spare = null;
      if (chunk) chunk.next = next;
      else this.#first = next;
      this.#last = chunk = next;
    }
    chunk.items[chunk.tail++] = item;
    this.#slots++;
  }

  /** Removes the first chunk after it was read to its end, and returns the next one. */
  #drop(chunk: Chunk<T>): Chunk<T> | null {
    const { next } = chunk;
    this.#first = next;
    if (!next) this.#last = null;
    chunk.head = 0;
    chunk.tail = 0;
    chunk.next = null;
    this.#spare = chunk;
    return next;
  }

  #compact(): void {
    let chunk = this.#first;
    this.#first = null;
    this.#last = null;
    this.#slots = 0;
    for (; chunk; chunk = chunk.next) {
      for (let at = chunk.head; at < chunk.tail; at++) {
        const item = chunk.items[at];
        if (item !== undefined && !this.#gone(item)) this.#append(item);
      }
    }
  }
}
