/** A queue from which items may be deleted in any order. */
import { lowerBound } from './sorted-map.ts';

/** An item of a queue, with the number that it was added with. */
type Numbered<T> = { readonly item: T; readonly number: number };

/** The queue is compacted once it has more slots than 1.5 times its items plus SLACK. */
const SLACK = 32;

/**
 * A first-in, first-out queue of items that may also be deleted early, at any position. Either all items have a number
 * or none has. The constructor gets `gone`, which returns whether an item was deleted. The code that deletes an item
 * must call `noteDeleted` once for it. Each method takes amortised constant time. Each item and each number takes one
 * slot of an array.
 */
export class SparseQueue<T> {
  readonly #gone: (item: T, number: number) => boolean;
  /** The items, from index `#head` on, and their numbers. */
  readonly #items: (T | undefined)[] = [];
  readonly #numbers: number[] = [];
  #head = 0;
  #size = 0;
  /** `next` reads the indexes from `#next` on, and stops before `#end`. */
  #next = 0;
  #end = 0;

  constructor(gone: (item: T, number: number) => boolean) {
    this.#gone = gone;
  }

  /** The number of items that are not deleted. */
  get size(): number {
    return this.#size;
  }

  push(item: T, number?: number): void {
    this.#items.push(item);
    if (number !== undefined) this.#numbers.push(number);
    this.#size++;
  }

  /** Returns the oldest item that is not deleted. */
  first(): T | undefined {
    if (this.#size === 0) return undefined;
    for (; this.#head < this.#items.length; this.#head++) {
      const found = this.#at(this.#head);
      if (found !== undefined) return found;
      // Clears the slot at once, so that the item is not kept in memory until the array is shortened.
      this.#items[this.#head] = undefined;
    }
    return undefined;
  }

  /** Counts a deletion. Call it once for each deleted item, after `gone` returns true for the item. */
  noteDeleted(): void {
    this.#size--;
    if (this.#items.length > 1.5 * this.#size + SLACK) this.#compact();
  }

  /** Reads the items that are not deleted, oldest first. No item may be deleted during the iteration. */
  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#head; at < this.#items.length; at++) {
      const item = this.#at(at);
      if (item !== undefined) yield item;
    }
  }

  /**
   * Reads the items that are not deleted, newest first. With `below`, reads only items with a lower number; numbers
   * must then ascend. No item may be added or deleted during the iteration.
   */
  *backwards(below = Infinity): Generator<Numbered<T>> {
    for (let at = lowerBound(this.#items.length, (i) => this.#number(i) < below) - 1; at >= this.#head; at--) {
      const item = this.#at(at);
      if (item !== undefined) yield { item, number: this.#number(at) };
    }
  }

  /** Starts a new pass of `next` over the items that are in the queue now. The queue supports one pass at a time. */
  rewind(): void {
    this.#next = this.#head;
    this.#end = this.#items.length;
  }

  /**
   * Returns the next item of the pass that `rewind` started, oldest first, without deleted items; undefined at the end
   * of the pass. Items may be added and deleted between two calls.
   */
  next(): Numbered<T> | undefined {
    while (this.#next < this.#end) {
      const at = this.#next++;
      const item = this.#at(at);
      if (item !== undefined) return { item, number: this.#number(at) };
    }
    return undefined;
  }

  #at(index: number): T | undefined {
    const item = this.#items[index];
    return item === undefined || this.#gone(item, this.#number(index)) ? undefined : item;
  }

  #number(index: number): number {
    return this.#numbers[index] ?? 0;
  }

  #compact(): void {
    let [kept, next, end] = [0, 0, 0];
    const isNumbered = this.#numbers.length > 0;
    for (let at = this.#head; at < this.#items.length; at++) {
      const item = this.#at(at);
      if (item === undefined) continue;
      this.#items[kept] = item;
      if (isNumbered) this.#numbers[kept] = this.#number(at);
      kept++;
      if (at < this.#next) next = kept;
      if (at < this.#end) end = kept;
    }
    [this.#next, this.#end] = [next, end];
    this.#items.length = kept;
    if (isNumbered) this.#numbers.length = kept;
    this.#head = 0;
  }
}
