/** An index of items by the time at which they are due. It has no timers: callers ask it which items are due. */
import { unpackTime, packTime } from './packed-time.ts';

/** The width of a bucket, in milliseconds. The method `due` sorts the items within a bucket. */
const GRAIN_MS = 250;

type Bucket = { readonly number: number; first: DueItem | null; last: DueItem | null; size: number };

/**
 * An item of one DueIndex. The item itself holds its links to its neighbours, so adding and removing it allocate
 * nothing.
 */
export class DueItem {
  /**
   * The time at which the item is due, as `packTime` packs it. Only the index may write this field and the fields
   * below.
   */
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

  /**
   * Returns at most `limit` items, those that are due soonest. They are ordered by bucket; within a bucket, by
   * insertion.
   */
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
