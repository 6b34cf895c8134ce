/** Where to begin: after a key (exclusive), from a key (inclusive), or both, and then at whichever is later. */
export type Start = { readonly after?: string | null; readonly from?: string | null };

/**
 * A map whose keys are kept in order of UTF-16 code units. `get` and `size` cost a look-up; `set` of a new key and `delete` cost a
 * binary search and the shift of at most CHUNK keys; going on from a key costs by what is read and not by what there is.
 * While `values` is being read, values may be replaced, but no key may come or go.
 */
export interface SortedMap<V> {
  readonly size: number;
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): boolean;
  /** In no order. */
  keys(): IteratorObject<string>;
  values(start?: Start): IteratorObject<V>;
}

/** Large enough that the list of chunks stays short, small enough that shifting one is a few cache lines. */
const CHUNK = 256;

type Item<V> = { readonly key: string; value: V };

export function createSortedMap<V>(): SortedMap<V> {
  const byKey = new Map<string, Item<V>>();
  /** None is empty; every key of one sorts before every key of the next. */
  const chunks: Item<V>[][] = [];

  const chunkOf = (key: string): number => lowerBound(chunks.length, (i) => (chunks[i]?.at(-1)?.key ?? '') < key);

  const insert = (item: Item<V>): void => {
    const at = Math.min(chunkOf(item.key), Math.max(0, chunks.length - 1));
    const chunk = chunks[at];
    if (!chunk) return void chunks.push([item]);
    chunk.splice(indexOf(chunk, item.key), 0, item);
    if (chunk.length > CHUNK) chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2));
  };
  const remove = (key: string): void => {
    const at = chunkOf(key);
    const chunk = chunks[at];
    if (!chunk) return;
    chunk.splice(indexOf(chunk, key), 1);
    if (chunk.length === 0) chunks.splice(at, 1);
  };

  return {
    get size() {
      return byKey.size;
    },
    get: (key) => byKey.get(key)?.value,
    set(key, value) {
      const known = byKey.get(key);
      if (known) return void (known.value = value);
      const item = { key, value };
      byKey.set(key, item);
      insert(item);
    },
    delete(key) {
      if (!byKey.delete(key)) return false;
      remove(key);
      return true;
    },
    keys: () => byKey.keys(),
    *values({ after = null, from = null } = {}) {
      const exclusive = after !== null && (from === null || after >= from);
      const start = (exclusive ? after : from) ?? '';
      const first = chunkOf(start);
      for (let c = first; c < chunks.length; c++) {
        const chunk = chunks[c] ?? [];
        for (let i = c === first ? indexOf(chunk, start) : 0; i < chunk.length; i++) {
          const item = chunk[i];
          if (item && !(exclusive && item.key === start)) yield item.value;
        }
      }
    },
  };
}

/** The first index of `length` for which `before` no longer holds; `before` must hold for a leading run only. */
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

function indexOf(chunk: readonly { readonly key: string }[], key: string): number {
  return lowerBound(chunk.length, (i) => (chunk[i]?.key ?? '') < key);
}
