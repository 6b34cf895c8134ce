/** An index of items by the time at which they are due. It has no timers of its own. */
import { packTime, unpackTime } from './list-times.ts';

/** Width of a bucket in milliseconds; within a bucket `due` has to sort. */
const GRAIN_MS = 250;

type Bucket = { readonly number: number; first: DueItem | null; last: DueItem | null; size: number };

/** An item of one DueIndex. It holds its own place there, so adding and removing it allocate nothing. */
export class DueItem {
  /** The members below belong to the index. `due`: when the item is due, as `packTime` packs it. */
  due = 0;
  dueBucket: Bucket | null = null;
  dueBefore: DueItem | null = null;
  dueAfter: DueItem | null = null;

  get dueAt(): number {
    return unpackTime(this.due);
  }
}

/**
 * Items by the time at which they are due, in buckets. Adding, moving and removing each take constant time, however
 * many items there are and however far ahead they are due. An item that is removed early leaves nothing behind. An item
 * belongs to at most one index.
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

  /** Items that are due at `now`, oldest first, at most `limit`. Removes nothing. */
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

  /** How many items are due at `now`. */
  count(now: number): number {
    const end = Math.floor(now / GRAIN_MS);
    if (end < this.#swept) return 0;
    let count = 0;
    for (let number = this.#swept; number < end; number++) count += this.#buckets.get(number)?.size ?? 0;
    for (const { dueAt } of this.#itemsOf(end)) if (dueAt <= now) count++;
    return count;
  }

  /** The items that are due soonest, at most `limit`: ordered by bucket, and within a bucket by insertion. */
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
    // Only items of type T are ever added.
    for (let item = this.#buckets.get(number)?.first ?? null; item; item = item.dueAfter) items.push(item as T);
    return items;
  }
}
