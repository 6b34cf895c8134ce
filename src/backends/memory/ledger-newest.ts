/** The order of admission, read from the newest. */
import { lowerBound } from './sorted.ts';

/** An item and its place. Each new item gets a higher place than all earlier ones. The place of an item never changes. */
export type Newest<T> = { readonly item: T; readonly place: number };

/**
 * A part of the order: the items from index `head` on. The place of an item is its offset plus the place of the chunk.
 */
type Chunk<T> = { readonly place: number; readonly items: (T | undefined)[]; readonly offsets: number[]; head: number };

/** Entries of one chunk of the list. */
const CHUNK = 512;
/**
 * Items that have left are dropped at once if no older item remains; otherwise when there are this many of them, and
 * they are a quarter of all.
 */
const SLACK = 1024;

/**
 * Items in the order in which they were added, read backwards from any place. Items may leave in any order: `gone` says
 * which have left, and `left` must be called once for each. Adding takes constant time, leaving amortised constant
 * time, and finding a place a binary search. While items are being read, none may be added or leave.
 */
export class NewestFirst<T> {
  readonly #gone: (item: T) => boolean;
  readonly #origin: number;
  #chunks: Chunk<T>[] = [];
  #next = 0;
  #count = 0;
  #left = 0;

  /**
   * `now`: epoch milliseconds. Places start at this number, so that a place of an earlier process comes before every
   * place of this one.
   */
  constructor(gone: (item: T) => boolean, now: number) {
    this.#gone = gone;
    this.#origin = now * 1000;
  }

  push(item: T): void {
    const last = this.#chunks.at(-1);
    const chunk = last && last.items.length < CHUNK ? last : this.#begin();
    chunk.items.push(item);
    chunk.offsets.push(this.#next - chunk.place);
    this.#next++;
    this.#count++;
  }

  /** Call once for each item that left, after `gone` returns true for it. */
  left(): void {
    this.#left++;
    this.#dropOldest();
    if (this.#left > SLACK + this.#count / 4) this.#compact();
  }

  /** The items that have not left, newest first, after a place; null: from the newest. */
  *values(after: number | null): Generator<Newest<T>> {
    const before = after === null ? this.#next : after - this.#origin;
    const chunks = this.#chunks;
    for (let c = lowerBound(chunks.length, (i) => (chunks[i]?.place ?? 0) < before) - 1; c >= 0; c--) {
      const chunk = chunks[c];
      if (!chunk) continue;
      const { place, items, offsets } = chunk;
      for (let i = lowerBound(offsets.length, (at) => place + (offsets[at] ?? 0) < before) - 1; i >= 0; i--) {
        const item = items[i];
        if (item !== undefined && !this.#gone(item)) yield { item, place: this.#origin + place + (offsets[i] ?? 0) };
      }
    }
  }

  #begin(): Chunk<T> {
    const chunk: Chunk<T> = { place: this.#next, items: [], offsets: [], head: 0 };
    this.#chunks.push(chunk);
    return chunk;
  }

  #dropOldest(): void {
    for (let chunk = this.#chunks[0]; chunk; chunk = this.#chunks[0]) {
      for (; chunk.head < chunk.items.length; chunk.head++, this.#count--, this.#left--) {
        const item = chunk.items[chunk.head];
        if (item !== undefined && !this.#gone(item)) return;
        chunk.items[chunk.head] = undefined;
      }
      this.#chunks.shift();
    }
  }

  /** Drops the items that have left, and fills the chunks again. */
  #compact(): void {
    const kept: Chunk<T>[] = [];
    let count = 0;
    for (const { place, items, offsets } of this.#chunks) {
      for (const [i, item] of items.entries()) {
        if (item === undefined || this.#gone(item)) continue;
        const own = place + (offsets[i] ?? 0);
        const last = kept.at(-1);
        const chunk = last && last.items.length < CHUNK ? last : { place: own, items: [], offsets: [], head: 0 };
        if (chunk !== last) kept.push(chunk);
        chunk.items.push(item);
        chunk.offsets.push(own - chunk.place);
        count++;
      }
    }
    this.#chunks = kept;
    this.#count = count;
    this.#left = 0;
  }
}
