/** A map that keeps its keys in order, for the stores in memory. */
import { ChurnMap } from '../../core/collections.ts';

/**
 * Where a range of keys begins: after the key `after`, or at the key `from`. If both are given, at the later of the
 * two.
 */
type RangeStart = { readonly after?: string | null; readonly from?: string | null };

/**
 * A map that keeps its keys in the order of UTF-16 code units. `get` and `size` cost one look-up. `set` of a new key
 * and `delete` cost a binary search and a shift of at most SORTED_CHUNK keys. The cost of reading a range depends on
 * the size of the range, not on the size of the map. While `values` is being read, values may be replaced, but no key
 * may be added or removed.
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
 * The most keys of a chunk. It is large enough to keep the list of chunks short, and small enough that a shift of keys
 * touches few cache lines.
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

  /** Removes a key. Keys are mostly removed in the order in which they were added, so the first key is tried first. */
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
 * true for every index up to some point, and false for every later one.
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
