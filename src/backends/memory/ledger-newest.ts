/**
 * A list of items in the order in which they were added, read from the newest. The ledger keeps the order of admission
 * in it.
 */
import { lowerBound } from './collections.ts';

/**
 * An item and the number of its position, called its place. A new item gets a higher place than all items before it,
 * and keeps this place.
 */
export type Newest<T> = { readonly item: T; readonly place: number };

/**
 * A part of the list: the items from index `head` on. An item's place is the origin of the list, plus the `place` of
 * its chunk, plus its own offset.
 */
type Chunk<T> = { readonly place: number; readonly items: (T | undefined)[]; readonly offsets: number[]; head: number };

/** The number of items in a full chunk. */
const CHUNK = 512;
/** The list is compacted once it holds more deleted items than this number plus a quarter of all its items. */
const SLACK = 1024;

/**
 * Items in the order in which they were added, read backwards from any place. Items may be deleted in any order: `gone`
 * returns whether an item was deleted, and `noteDeleted` must be called once for each deletion. Adding an item takes
 * constant time, deleting one amortised constant time, and finding a place a binary search. While items are being read,
 * none may be added or deleted.
 */
export class NewestFirst<T> {
  readonly #gone: (item: T) => boolean;
  readonly #origin: number;
  #chunks: Chunk<T>[] = [];
  #next = 0;
  #count = 0;
  /** The number of deleted items that the list still holds. */
  #deleted = 0;

  /**
   * `gone`: returns whether an item was deleted. `now`: the time in epoch milliseconds. Places start at 1000 times this
   * number, so they are higher than all places of an earlier process.
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

  /** Counts a deletion. Call it once for each deleted item, after `gone` returns true for the item. */
  noteDeleted(): void {
    this.#deleted++;
    this.#dropOldest();
    if (this.#deleted > SLACK + this.#count / 4) this.#compact();
  }

  /** Reads the items whose place is below `after`, newest first, or all items if it is null. Skips deleted items. */
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

  /** The place of the next item. */
  get end(): number {
    return this.#origin + this.#next;
  }

  /**
   * Reads the items from the place `from` on, oldest first. Skips deleted items. A reader may stop, and continue after
   * items were added and deleted, from the place after the last item that it has read.
   */
  *oldestFirst(from: number): Generator<Newest<T>> {
    const start = from - this.#origin;
    const first = lowerBound(this.#chunks.length, (i) => (this.#chunks[i + 1]?.place ?? Infinity) <= start);
    for (const { place, items, offsets } of this.#chunks.slice(first)) {
      for (let i = lowerBound(offsets.length, (at) => place + (offsets[at] ?? 0) < start); i < items.length; i++) {
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
      for (; chunk.head < chunk.items.length; chunk.head++, this.#count--, this.#deleted--) {
        const item = chunk.items[chunk.head];
        if (item !== undefined && !this.#gone(item)) return;
        chunk.items[chunk.head] = undefined;
      }
      this.#chunks.shift();
    }
  }

  /** Removes the deleted items from all chunks, and fills the chunks again. */
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
    this.#deleted = 0;
  }
}
