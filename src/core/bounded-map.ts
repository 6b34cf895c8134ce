/** A map with a bounded number of entries and, if wanted, a bounded age of each: the cache of the relay. */
import { ChurnMap } from './collections.ts';
import type { Clock } from './ports.ts';

export type BoundedMapOptions = {
  /** The most entries, at least 1. Beyond it the oldest is evicted. */
  readonly most: number;
  /** What makes an entry young again: only that it is set (the default), or also that it is read. */
  readonly order?: 'set' | 'used';
  /** For how many milliseconds an entry lives after it was set; absent: until it is evicted or deleted. */
  readonly ttl?: { readonly ms: number; readonly clock: Pick<Clock, 'monotonic'> };
};

/** An entry, linked to its neighbours in the order of age, so that reading one changes no table. */
type Entry<K, V> = { readonly key: K; value: V; setAt: number; older: Entry<K, V> | null; younger: Entry<K, V> | null };

/**
 * A map that evicts its oldest entry when it has more than `most`. An entry with a TTL is never returned `ttl.ms` or
 * more milliseconds after it was set: that time has elapsed, whatever the wall clock shows. Every method takes constant
 * time (`clear` the time of one). Entries that outlived their TTL are dropped when they are read, or evicted in order.
 */
export class BoundedMap<K, V> {
  readonly #options: BoundedMapOptions;
  #entries = new ChurnMap<K, Entry<K, V>>();
  #oldest: Entry<K, V> | null = null;
  #youngest: Entry<K, V> | null = null;

  constructor(options: BoundedMapOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { ttl, order } = this.#options;
    if (ttl && ttl.clock.monotonic() - entry.setAt >= ttl.ms) {
      this.#remove(entry);
      return undefined;
    }
    if (order === 'used' && entry !== this.#youngest) {
      this.#unlink(entry);
      this.#append(entry);
    }
    return entry.value;
  }

  /** Sets the value of a key, which becomes the youngest. The TTL begins again. */
  set(key: K, value: V): void {
    const { most, ttl } = this.#options;
    const setAt = ttl ? ttl.clock.monotonic() : 0;
    const known = this.#entries.get(key);
    if (known) {
      known.value = value;
      known.setAt = setAt;
      this.#unlink(known);
      this.#append(known);
      return;
    }
    const entry: Entry<K, V> = { key, value, setAt, older: null, younger: null };
    this.#entries.set(key, entry);
    this.#append(entry);
    if (this.#entries.size > most && this.#oldest) this.#remove(this.#oldest);
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry) this.#remove(entry);
    return entry !== undefined;
  }

  clear(): void {
    this.#entries = new ChurnMap();
    this.#oldest = null;
    this.#youngest = null;
  }

  #remove(entry: Entry<K, V>): void {
    this.#entries.delete(entry.key);
    this.#unlink(entry);
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#youngest;
    if (this.#youngest) this.#youngest.younger = entry;
    else this.#oldest = entry;
    this.#youngest = entry;
  }

  #unlink(entry: Entry<K, V>): void {
    const { older, younger } = entry;
    if (older) older.younger = younger;
    else this.#oldest = younger;
    if (younger) younger.older = older;
    else this.#youngest = older;
    entry.older = null;
    entry.younger = null;
  }
}
