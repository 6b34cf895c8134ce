/** A mark in numbers: 128 bits of a digest of its key, 128 bits of a digest of what was asked for, and what is known of its end. */
export type PackedMark = {
  readonly key: Uint32Array;
  readonly digest: Uint32Array;
  /** At most 32 bits. */
  readonly end: number;
  /** At most 8 bits. */
  readonly code: number;
};

/** Words of an entry: key, digest, end. */
const WORDS = 9;
const END = 8;
const SHARDS = 256;
/** By how much a shard's entries grow, and from how many on. An index is at most this full. */
const GROWTH = 1.25;
const SMALLEST = 4;
const FULLEST = 0.75;

/**
 * Marks that are only ever added, packed: 37 bytes each in an array that grows by a quarter, and 2 (beyond 65,535 in a shard 4) bytes for each
 * place in an open-addressing index at most three quarters full. In shards by the key, so that growing never takes long. Keys must be
 * uniformly distributed: what is asked for must not be able to choose them.
 */
export class MarkTable {
  readonly #shards: (Shard | undefined)[] = Array.from({ length: SHARDS }, () => undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Bytes of its arrays. */
  get bytes(): number {
    return this.#shards.reduce((sum, shard) => sum + (shard?.bytes ?? 0), 0);
  }

  /** The key must not be in it. */
  add(mark: PackedMark): void {
    const at = shardOf(mark.key);
    const shard = (this.#shards[at] ??= new Shard());
    shard.add(mark);
    this.#size++;
  }

  find(key: Uint32Array): PackedMark | null {
    return this.#shards[shardOf(key)]?.find(key) ?? null;
  }
}

class Shard {
  #entries = new Uint32Array(SMALLEST * WORDS);
  #codes = new Uint8Array(SMALLEST);
  /** Of an entry its place and one; 0: nothing. */
  #index: Uint16Array | Uint32Array = indexFor(SMALLEST);
  #size = 0;

  get bytes(): number {
    return this.#entries.byteLength + this.#codes.byteLength + this.#index.byteLength;
  }

  add({ key, digest, end, code }: PackedMark): void {
    const at = this.#size++;
    if (at === this.#codes.length) this.#grow();
    this.#entries.set(key, at * WORDS);
    this.#entries.set(digest, at * WORDS + key.length);
    this.#entries[at * WORDS + END] = end;
    this.#codes[at] = code;
    if (this.#size > this.#index.length * FULLEST) this.#reindex();
    else this.#place(at);
  }

  find(key: Uint32Array): PackedMark | null {
    const mask = this.#index.length - 1;
    for (let slot = (key[0] ?? 0) & mask; ; slot = (slot + 1) & mask) {
      const at = (this.#index[slot] ?? 0) - 1;
      if (at < 0) return null;
      if (this.#has(at, key)) return this.#read(at);
    }
  }

  #has(at: number, key: Uint32Array): boolean {
    const from = at * WORDS;
    const entries = this.#entries;
    for (let word = 0; word < key.length; word++) if (entries[from + word] !== key[word]) return false;
    return true;
  }

  #read(at: number): PackedMark {
    const from = at * WORDS;
    const [key, digest] = [this.#entries.slice(from, from + 4), this.#entries.slice(from + 4, from + END)];
    return { key, digest, end: this.#entries[from + END] ?? 0, code: this.#codes[at] ?? 0 };
  }

  #place(at: number): void {
    const mask = this.#index.length - 1;
    let slot = (this.#entries[at * WORDS] ?? 0) & mask;
    while (this.#index[slot] !== 0) slot = (slot + 1) & mask;
    this.#index[slot] = at + 1;
  }

  #grow(): void {
    const room = Math.ceil(this.#codes.length * GROWTH);
    const entries = new Uint32Array(room * WORDS);
    entries.set(this.#entries);
    this.#entries = entries;
    const codes = new Uint8Array(room);
    codes.set(this.#codes);
    this.#codes = codes;
  }

  #reindex(): void {
    this.#index = indexFor(this.#index.length);
    for (let at = 0; at < this.#size; at++) this.#place(at);
  }
}

function indexFor(entries: number): Uint16Array | Uint32Array {
  const places = 2 * entries;
  return places * FULLEST < 65_535 ? new Uint16Array(places) : new Uint32Array(places);
}

function shardOf(key: Uint32Array): number {
  return (key[3] ?? 0) % SHARDS;
}
