/** Width of a bucket in milliseconds; within a bucket `due` has to sort. */
const GRAIN_MS = 250;

/**
 * Items by the time at which they are due, in buckets. Adding, moving and removing each cost a map operation, however
 * many items there are and however far ahead they are due. An item that is removed early leaves nothing behind.
 */
export class DueIndex<T> {
  readonly #buckets = new Map<number, Map<T, number>>();
  readonly #times = new Map<T, number>();
  #swept: number;

  constructor(now: number) {
    this.#swept = Math.floor(now / GRAIN_MS);
  }

  set(item: T, at: number): void {
    this.delete(item);
    const bucket = Math.max(this.#swept, Math.floor(at / GRAIN_MS));
    const items = this.#buckets.get(bucket) ?? new Map<T, number>();
    items.set(item, at);
    this.#buckets.set(bucket, items);
    this.#times.set(item, bucket);
  }

  delete(item: T): void {
    const bucket = this.#times.get(item);
    if (bucket === undefined) return;
    this.#times.delete(item);
    const items = this.#buckets.get(bucket);
    items?.delete(item);
    if (items?.size === 0) this.#buckets.delete(bucket);
  }

  /** Items that are due at `now`, oldest first, at most `limit`. Removes nothing. */
  due(now: number, limit: number): T[] {
    const end = Math.floor(now / GRAIN_MS);
    while (this.#swept < end && !this.#buckets.has(this.#swept)) this.#swept++;
    const found: T[] = [];
    for (let bucket = this.#swept; bucket <= end && found.length < limit; bucket++) {
      const items = [...(this.#buckets.get(bucket) ?? [])].filter(([, at]) => at <= now).sort(([, a], [, b]) => a - b);
      for (const [item] of items.slice(0, limit - found.length)) found.push(item);
    }
    return found;
  }

  /** How many items are due at `now`. */
  count(now: number): number {
    const end = Math.floor(now / GRAIN_MS);
    let count = 0;
    for (let bucket = this.#swept; bucket <= end; bucket++) {
      const items = this.#buckets.get(bucket);
      if (!items) continue;
      if (bucket < end) count += items.size;
      else for (const at of items.values()) if (at <= now) count++;
    }
    return count;
  }

  /** The items that are due soonest, at most `limit`: ordered by bucket, and within a bucket by insertion. */
  soonest(limit: number): T[] {
    const found: T[] = [];
    const all = Math.min(limit, this.size);
    for (let bucket = this.#swept; found.length < all; bucket++) {
      for (const item of this.#buckets.get(bucket)?.keys() ?? []) {
        if (found.length === all) break;
        found.push(item);
      }
    }
    return found;
  }

  get size(): number {
    return this.#times.size;
  }
}
