/**
 * Collections of the memory backend: lists and queues with removals, sorted maps, packed times, and an index of items
 * by the time at which they are due.
 */
import { ChurnMap } from '../../core/collections.ts';

/** The node of a value in a list. Its links belong to the list: use the node only as the argument of `remove`. */
export type ListItem<T> = {
  readonly value: T;
  previous: ListItem<T> | null;
  next: ListItem<T> | null;
  listed: boolean;
};

/**
 * A doubly linked list. Appending, removing any node and reading either end each take constant time. A Map keeps the
 * order of insertion too. But it finds its first entry only by skipping all entries that were deleted before it, and it
 * replaces its table again and again. While the list is being iterated, nothing may be removed.
 */
export class List<T> {
  #first: ListItem<T> | null = null;
  #last: ListItem<T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): ListItem<T> | null {
    return this.#first;
  }

  get last(): ListItem<T> | null {
    return this.#last;
  }

  push(value: T): ListItem<T> {
    const place: ListItem<T> = { value, previous: this.#last, next: null, listed: true };
    if (this.#last) this.#last.next = place;
    else this.#first = place;
    this.#last = place;
    this.#size++;
    return place;
  }

  /** Removes a node. A second removal of the same node does nothing. */
  remove(place: ListItem<T>): void {
    if (!place.listed) return;
    const { previous, next } = place;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    place.listed = false;
    // Unlinks the removed node too. If V8 has promoted it to the old generation, it would keep its neighbours alive.
    place.previous = null;
    place.next = null;
    this.#size--;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let place = this.#first; place; place = place.next) yield place.value;
  }
}

// A queue from which items may be deleted in any order.

/** An item of a queue, and the number with which it was added. */
type Numbered<T> = { readonly item: T; readonly number: number };

/** The queue is compacted once its deleted items outnumber half of its other items by more than this. */
const SLACK = 32;

/**
 * A first-in, first-out queue of items that may also be deleted early, at any position. An item may have a number, or
 * none of them has. `gone` returns whether an item was deleted, and `noteDeleted` must be called once for each deletion.
 * Each method takes amortised constant time. Each item and each number takes one slot of an array.
 */
export class SparseQueue<T> {
  readonly #gone: (item: T, number: number) => boolean;
  /** The items, from index `#head` on, and their numbers. */
  readonly #items: (T | undefined)[] = [];
  readonly #numbers: number[] = [];
  #head = 0;
  #size = 0;
  /** The index from which `next` goes on, and the one before which it ends. */
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

  /** Reads the items that are not deleted, oldest first. While they are being read, none may be deleted. */
  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#head; at < this.#items.length; at++) {
      const item = this.#at(at);
      if (item !== undefined) yield item;
    }
  }

  /**
   * Reads the items that are not deleted, newest first. `below`: only items with a lower number, if numbers ascend.
   * While they are being read, none may be added or deleted.
   */
  *backwards(below = Infinity): Generator<Numbered<T>> {
    for (let at = lowerBound(this.#items.length, (i) => this.#number(i) < below) - 1; at >= this.#head; at--) {
      const item = this.#at(at);
      if (item !== undefined) yield { item, number: this.#number(at) };
    }
  }

  /** Lets `next` read the items that are there now, oldest first. There is one such reader at a time. */
  rewind(): void {
    this.#next = this.#head;
    this.#end = this.#items.length;
  }

  /** Returns the next of these items that is not deleted; undefined at the end. Between two calls items may be added. */
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

// Packs times into small integers. V8 would keep larger numbers as separate objects.

/** The first finite time that was packed, in epoch milliseconds. Long-lived objects keep their times relative to it. */
let origin: number | null = null;

/**
 * Returns the value as a small integer if it is one, such as the difference of two times. V8 keeps larger numbers, such
 * as times in epoch milliseconds, as separate objects.
 */
export function smallInteger(value: number): number {
  const whole = value | 0;
  return whole === value ? whole : value;
}

/**
 * Packs a time in epoch milliseconds. A time within three weeks of the first one then needs no separate object.
 */
export function packTime(at: number): number {
  if (origin === null && Number.isFinite(at)) origin = at;
  return smallInteger(at - (origin ?? 0));
}

/** Returns the exact time that `packTime` packed, in epoch milliseconds. */
export function unpackTime(packed: number): number {
  return (origin ?? 0) + packed;
}

// A map whose keys are kept in order, for the stores in memory.

/**
 * The start of a range of keys: after the key `after`, at the key `from`, or at the later of both if both are given.
 */
type RangeStart = { readonly after?: string | null; readonly from?: string | null };

/**
 * A map whose keys are kept in order of UTF-16 code units. `get` and `size` cost one look-up. `set` of a new key and
 * `delete` cost a binary search and a shift of at most SORTED_CHUNK keys. The cost of reading on from a key depends on
 * how much is read, not on the size of the map. While `values` is being read, values may be replaced, but no key may be
 * added or removed.
 */
export interface SortedMap<V> {
  readonly size: number;
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): boolean;
  /** Reads the keys, in no particular order. */
  keys(): IteratorObject<string>;
  values(start?: RangeStart): IteratorObject<V>;
}

/**
 * The most keys of a chunk: large enough that the list of chunks is short, and small enough that shifting the keys of a
 * chunk touches few cache lines.
 */
const SORTED_CHUNK = 256;

export function createSortedMap<V>(): SortedMap<V> {
  return new ChunkedMap<V>();
}

class ChunkedMap<V> implements SortedMap<V> {
  readonly #values = new ChurnMap<string, V>();
  /** The keys in order, divided into chunks. No chunk is empty. */
  readonly #chunks: string[][] = [];

  get size(): number {
    return this.#values.size;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    const before = this.#values.size;
    if (this.#values.set(key, value).size > before) this.#insert(key);
  }

  delete(key: string): boolean {
    if (!this.#values.delete(key)) return false;
    this.#remove(key);
    return true;
  }

  keys(): IteratorObject<string> {
    return this.#values.keys();
  }

  *values({ after = null, from = null }: RangeStart = {}): Generator<V> {
    const exclusive = after !== null && (from === null || after >= from);
    const start = (exclusive ? after : from) ?? '';
    const chunks = this.#chunks;
    const first = this.#chunkOf(start);
    for (let c = first; c < chunks.length; c++) {
      const chunk = chunks[c] ?? [];
      for (let i = c === first ? indexOf(chunk, start) : 0; i < chunk.length; i++) {
        const key = chunk[i];
        if (key === undefined || (exclusive && key === start)) continue;
        const value = this.#values.get(key);
        if (value !== undefined) yield value;
      }
    }
  }

  #chunkOf(key: string): number {
    return lowerBound(this.#chunks.length, (i) => (this.#chunks[i]?.at(-1) ?? '') < key);
  }

  /** Inserts a key in order. Ids that sort by time arrive in order and are appended. */
  #insert(key: string): void {
    const chunks = this.#chunks;
    const newest = chunks.at(-1);
    if (!newest) return void chunks.push([key]);
    if ((newest.at(-1) ?? '') < key) {
      if (newest.length < SORTED_CHUNK) newest.push(key);
      else chunks.push([key]);
      return;
    }
    const at = this.#chunkOf(key);
    const chunk = chunks[at];
    if (!chunk) return;
    chunk.splice(indexOf(chunk, key), 0, key);
    if (chunk.length > SORTED_CHUNK) chunks.splice(at + 1, 0, chunk.splice(SORTED_CHUNK / 2));
  }

  /** Removes a key. Keys that were added in order are mostly removed in order too. */
  #remove(key: string): void {
    const chunks = this.#chunks;
    const at = chunks[0]?.[0] === key ? 0 : this.#chunkOf(key);
    const chunk = chunks[at];
    if (!chunk) return;
    if (chunk[0] === key) chunk.shift();
    else chunk.splice(indexOf(chunk, key), 1);
    if (chunk.length === 0) chunks.splice(at, 1);
  }
}

/**
 * Returns the first index below `length` for which `before` is false, or `length` if there is none. `before` must be
 * true up to some index, and false from there on.
 */
export function lowerBound(length: number, before: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function indexOf(chunk: readonly string[], key: string): number {
  return lowerBound(chunk.length, (i) => (chunk[i] ?? '') < key);
}

// An index of items by the time at which they are due. It has no timers: callers ask it which items are due.

/** The width of a bucket, in milliseconds. The method `due` sorts the items within a bucket. */
const GRAIN_MS = 250;

type Bucket = { readonly number: number; first: DueItem | null; last: DueItem | null; size: number };

/**
 * An item of one DueIndex. The item itself holds its links to its neighbours, so adding and removing it allocate
 * nothing.
 */
export class DueItem {
  /** When the item is due, as `packTime` packs it. This member and those below belong to the index. */
  due = 0;
  dueBucket: Bucket | null = null;
  dueBefore: DueItem | null = null;
  dueAfter: DueItem | null = null;

  get dueAt(): number {
    return unpackTime(this.due);
  }
}

/**
 * Items in buckets, by the time at which they are due. Adding, moving and removing an item each take constant time,
 * however many items there are and however far ahead they are due. An item that is removed early leaves nothing behind.
 * An item belongs to at most one index.
 */
export class DueIndex<T extends DueItem> {
  readonly #buckets = new Map<number, Bucket>();
  #swept: number;
  #size = 0;

  constructor(now: number) {
    this.#swept = Math.floor(now / GRAIN_MS);
  }

  get size(): number {
    return this.#size;
  }

  set(item: T, at: number): void {
    this.delete(item);
    const bucket = this.#bucketOf(Math.max(this.#swept, Math.floor(at / GRAIN_MS)));
    item.due = packTime(at);
    item.dueBucket = bucket;
    item.dueBefore = bucket.last;
    if (bucket.last) bucket.last.dueAfter = item;
    else bucket.first = item;
    bucket.last = item;
    bucket.size++;
    this.#size++;
  }

  delete(item: T): void {
    const { dueBucket: bucket, dueBefore: before, dueAfter: after } = item;
    if (!bucket) return;
    if (before) before.dueAfter = after;
    else bucket.first = after;
    if (after) after.dueBefore = before;
    else bucket.last = before;
    item.dueBucket = null;
    item.dueBefore = null;
    item.dueAfter = null;
    this.#size--;
    if (--bucket.size === 0) this.#buckets.delete(bucket.number);
  }

  /** Returns at most `limit` items that are due at `now`, oldest first. Removes nothing. */
  due(now: number, limit: number): T[] {
    const end = Math.floor(now / GRAIN_MS);
    while (this.#swept < end && !this.#buckets.has(this.#swept)) this.#swept++;
    const found: T[] = [];
    for (let number = this.#swept; number <= end && found.length < limit; number++) {
      const items = this.#itemsOf(number).filter(({ dueAt }) => dueAt <= now);
      found.push(...items.sort((a, b) => a.due - b.due).slice(0, limit - found.length));
    }
    return found;
  }

  /** Counts the items that are due at `now`. */
  count(now: number): number {
    const end = Math.floor(now / GRAIN_MS);
    if (end < this.#swept) return 0;
    let count = 0;
    for (let number = this.#swept; number < end; number++) count += this.#buckets.get(number)?.size ?? 0;
    for (const { dueAt } of this.#itemsOf(end)) if (dueAt <= now) count++;
    return count;
  }

  /** Returns at most `limit` items that are due soonest, ordered by bucket, and within a bucket by insertion. */
  soonest(limit: number): T[] {
    const found: T[] = [];
    const all = Math.min(limit, this.#size);
    for (let number = this.#swept; found.length < all; number++)
      found.push(...this.#itemsOf(number).slice(0, all - found.length));
    return found;
  }

  #bucketOf(number: number): Bucket {
    const known = this.#buckets.get(number);
    if (known) return known;
    const made: Bucket = { number, first: null, last: null, size: 0 };
    this.#buckets.set(number, made);
    return made;
  }

  #itemsOf(number: number): T[] {
    const items: T[] = [];
    // The cast is safe, because only items of type T are ever added.
    for (let item = this.#buckets.get(number)?.first ?? null; item; item = item.dueAfter) items.push(item as T);
    return items;
  }
}
