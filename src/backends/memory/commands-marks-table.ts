/** A compact table of marks, the short remainders of ended commands' records. It does not know when a mark expires. */

/**
 * A mark as numbers: 128 bits of a digest of the command's key, 128 bits of a digest of the invocation, and how the
 * command ended.
 */
export type PackedMark = {
  readonly key: Uint32Array;
  readonly digest: Uint32Array;
  /** When and how the command ended, in at most 32 bits. */
  readonly end: number;
  /** The number of the error code, in at most 8 bits. */
  readonly code: number;
};

/** The marks of one shard: `WORDS` words and one code for each. */
export type ShardContent = { readonly words: Uint32Array; readonly codes: Uint8Array };

/** The length of an entry in 32-bit words: key, digest and end. */
const WORDS = 9;
const END = 8;
/** The number of parts of the table. Each part is small, so that growing one never takes long. */
const SHARDS = 256;
/** The factor by which the room for entries grows. */
const GROWTH = 1.25;
/** The number of entries for which there is room at first. */
const SMALLEST = 4;
/** The greatest part of an index's slots that may be in use. */
const FULLEST = 0.75;

/**
 * A table to which marks are only added. Each mark takes 37 bytes in arrays that grow by a quarter at a time. An index
 * with open addressing finds the marks; at most three quarters of its slots are in use. A slot takes 2 bytes, or 4
 * bytes in a shard with more than 49,152 marks. The table is divided into shards by key, so that growing never takes
 * long. Keys must be uniformly distributed, and requesters must not be able to choose them.
 */
export class MarkTable {
  readonly #shards: (Shard | undefined)[] = Array.from({ length: SHARDS }, () => undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The total size of the table's arrays, in bytes. */
  get bytes(): number {
    return this.#shards.reduce((sum, shard) => sum + (shard?.bytes ?? 0), 0);
  }

  /** Adds a mark. Its key must not be in the table. */
  add(mark: PackedMark): void {
    const at = shardOf(mark.key);
    const shard = (this.#shards[at] ??= new Shard());
    shard.add(mark);
    this.#size++;
  }

  /** Copies the marks, one shard at a time. */
  *shards(): Generator<ShardContent> {
    for (const shard of this.#shards) if (shard) yield shard.content;
  }

  /** Adds the marks of a shard that are not in the table. */
  restore({ words, codes }: ShardContent): void {
    for (const [at, code] of codes.entries()) {
      const from = at * WORDS;
      const key = words.slice(from, from + 4);
      if (this.find(key)) continue;
      this.add({ key, digest: words.slice(from + 4, from + END), end: words[from + END] ?? 0, code });
    }
  }

  find(key: Uint32Array): PackedMark | null {
    return this.#shards[shardOf(key)]?.find(key) ?? null;
  }
}

class Shard {
  #entries = new Uint32Array(SMALLEST * WORDS);
  #codes = new Uint8Array(SMALLEST);
  /** The index: each slot holds the number of an entry plus one, or 0 if the slot is free. */
  #index: Uint16Array | Uint32Array = indexFor(SMALLEST);
  #size = 0;

  get bytes(): number {
    return this.#entries.byteLength + this.#codes.byteLength + this.#index.byteLength;
  }

  get content(): ShardContent {
    return { words: this.#entries.slice(0, this.#size * WORDS), codes: this.#codes.slice(0, this.#size) };
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
