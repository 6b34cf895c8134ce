/**
 * Remembers the digest and the outcome of ended commands whose records are gone, so that repeated requests are
 * recognised. Keeps these marks in a compact table.
 */
import { hash } from 'node:crypto';
import { NO_DIGEST, type CommandMark, type ExecutionEvidence, type Outcome } from '../../core/commands/command.ts';
import { ByClient } from '../../core/collections.ts';
import { CODES, type Code } from '../../core/errors.ts';
import { isRelayId, type ClientKey, type CommandKey } from '../../core/ids.ts';

/**
 * The number of generations that a window is divided into. A mark lives for the window, and its memory is freed at most
 * one generation later.
 */
const GENERATIONS = 12;
/** The most clients whose hash is cached. */
const SALTS = 10_000;

/** The marks of commands that ended within one twelfth of the window, and the number of marks of each owner. */
type Generation<O> = {
  readonly number: number;
  readonly table: MarkTable;
  readonly owners: Map<O, number>;
  /**
   * The number of marks of each owner that were added since the last call of `read`; null if no reader of that call is
   * in use.
   */
  unread: Map<O, number> | null;
};

type MarksOptions<O> = {
  /** How long a mark lives, in milliseconds; at most a day. */
  readonly windowMs: number;
  /** The secret that ids are hashed with. A mark that was hashed with another secret is never found. */
  readonly secret: string;
  /** Called when a generation is dropped, with an owner and the number of that owner's marks in the generation. */
  readonly onDropped: (owner: O, count: number) => void;
};

/** The marks of one shard of a generation's table, as a snapshot stores them. */
export type MarkShard = { readonly generation: number; readonly marks: ShardContent };
/** How many marks of a generation an owner has. */
type MarkOwner<O> = { readonly generation: number; readonly owner: O; readonly count: number };
/** Readers of all marks that existed at one time. Read all of `shards`, then all of `owners`. */
type MarkReaders<O> = { readonly shards: Generator<MarkShard>; readonly owners: Generator<MarkOwner<O>> };

/**
 * The marks of ended commands. Each mark is kept until its window is over, and takes at most 60 bytes. Whole
 * generations are dropped, so no search for expired marks is needed. Ids that callers chose are hashed with a secret,
 * so that no requester can choose ids that collide.
 */
export class CommandMarks<O> {
  readonly #options: MarksOptions<O>;
  readonly #secret: string;
  readonly #length: number;
  #salts = new ByClient<Uint32Array>();
  /** The generations, oldest first; at most GENERATIONS + 1. */
  #generations: Generation<O>[] = [];

  constructor(options: MarksOptions<O>) {
    this.#options = options;
    this.#secret = options.secret;
    this.#length = Math.ceil(options.windowMs / GENERATIONS);
  }

  /** The number of marks, including expired ones whose generation is not dropped yet. */
  get size(): number {
    return this.#generations.reduce((sum, { table }) => sum + table.size, 0);
  }

  /** The size of the packed marks, in bytes. */
  get bytes(): number {
    return this.#generations.reduce((sum, { table }) => sum + table.bytes, 0);
  }

  /** Adds a mark. The key must not have a live mark. `digest`: the digest of the invocation. */
  add(key: CommandKey, digest: string, { mark, owner }: { readonly mark: CommandMark; readonly owner: O }): void {
    const generation = this.#generationOf(mark.endedAt);
    const end = pack(mark, mark.endedAt - generation.number * this.#length);
    const code = mark.errorCode === null ? 0 : CODE_NAMES.indexOf(mark.errorCode) + 1;
    const made = digest === NO_DIGEST && isRelayId(key.commandId);
    generation.table.add({
      key: made ? this.#keyOfMade(key) : this.#hash(key),
      digest: digestWords(digest),
      end,
      code,
    });
    countMarks(generation.owners, owner, 1);
    if (generation.unread) countMarks(generation.unread, owner, 1);
  }

  /** Makes `onDropped` run for this owner when the window that began at `endedAt` is over. Adds no mark. */
  watch(owner: O, endedAt: number): void {
    countMarks(this.#generationOf(endedAt).owners, owner, 0);
  }

  /**
   * Returns readers of the marks that exist now. While they are in use, marks may be added and generations dropped; the
   * readers neither return nor count marks that are added. A call makes the readers of an earlier call invalid.
   */
  read(): MarkReaders<O> {
    const generations = this.#generations.map((generation) => {
      const unread = (generation.unread = new Map<O, number>());
      return { generation, unread, shards: generation.table.shards() };
    });
    return {
      shards: (function* () {
        for (const { generation, shards } of generations)
          for (const marks of shards) yield { generation: generation.number, marks };
      })(),
      owners: (function* () {
        for (const { generation, unread } of generations) {
          for (const [owner, count] of generation.owners)
            yield { generation: generation.number, owner, count: count - (unread.get(owner) ?? 0) };
          generation.unread = null;
        }
      })(),
    };
  }

  /**
   * Adds marks that a reader of `shards` returned and that were hashed with the same secret. An existing mark is not
   * replaced.
   */
  restore({ generation, marks }: MarkShard): void {
    this.#generationOf(generation * this.#length).table.restore(marks);
  }

  restoreOwner({ generation, owner, count }: MarkOwner<O>): void {
    countMarks(this.#generationOf(generation * this.#length).owners, owner, count);
  }

  /**
   * Returns the live mark of a key, `conflict` if its digest differs from the given one, or null if there is no mark.
   */
  find(key: CommandKey, digest: string | null, now: number): CommandMark | 'conflict' | null {
    if (this.#generations.length === 0) return null;
    const chosen = this.#hash(key);
    const made = isRelayId(key.commandId) ? this.#keyOfMade(key) : null;
    for (let at = this.#generations.length - 1; at >= 0; at--) {
      const generation = this.#generations[at];
      const found = generation?.table.find(chosen) ?? (made && generation?.table.find(made));
      if (!generation || !found) continue;
      const mark = unpack(found.end, found.code, generation.number * this.#length);
      if (mark.endedAt + this.#options.windowMs <= now) continue;
      return digest === null || equal(found.digest, digestWords(digest)) ? mark : 'conflict';
    }
    return null;
  }

  /** Drops the generations whose marks have all expired. */
  expire(now: number): void {
    for (let [oldest] = this.#generations; oldest && this.#isOver(oldest, now); [oldest] = this.#generations) {
      this.#generations.shift();
      for (const [owner, count] of oldest.owners) this.#options.onDropped(owner, count);
    }
  }

  #isOver({ number }: Generation<O>, now: number): boolean {
    return (number + 1) * this.#length + this.#options.windowMs <= now;
  }

  #generationOf(endedAt: number): Generation<O> {
    const number = Math.floor(endedAt / this.#length);
    const newest = this.#generations.at(-1);
    if (newest?.number === number) return newest;
    const known = this.#generations.find((generation) => generation.number === number);
    if (known) return known;
    const made: Generation<O> = { number, table: new MarkTable(), owners: new Map(), unread: null };
    this.#generations = [...this.#generations, made].sort((a, b) => a.number - b.number);
    return made;
  }

  /**
   * Returns the key of an id that the relay made: the bits of the id, mixed with a hash of its client. The id is not
   * hashed, because most of its bits are random and no requester chooses them.
   */
  #keyOfMade({ userId, clientId, commandId }: CommandKey): Uint32Array {
    const words = wordsOfUuid(commandId);
    const salt = this.#saltOf({ userId, clientId });
    return words.map((word, i) => word ^ (salt[i] ?? 0));
  }

  #saltOf(client: ClientKey): Uint32Array {
    const known = this.#salts.get(client);
    if (known) return known;
    if (this.#salts.size >= SALTS) this.#salts = new ByClient();
    const salt = wordsOf(`${this.#secret}\0${client.userId}\0${client.clientId}`);
    this.#salts.set(client, salt);
    return salt;
  }

  #hash({ userId, clientId, commandId }: CommandKey): Uint32Array {
    return wordsOf(`${this.#secret}\0${userId}\0${clientId}\0${commandId}`);
  }
}

function countMarks<O>(owners: Map<O, number>, owner: O, by: number): void {
  owners.set(owner, (owners.get(owner) ?? 0) + by);
}

/**
 * Returns the 32-bit words that represent a digest in a mark. NO_DIGEST, the digest of every command whose id the relay
 * made, is all zeros.
 */
function digestWords(digest: string): Uint32Array {
  return digest === NO_DIGEST ? NO_WORDS : wordsOf(digest);
}

const NO_WORDS = new Uint32Array(4);

/**
 * Returns the 128 bits of a UUID, with the first and the third word exchanged. A table finds the slot of a key by its
 * first and its last word, so these must be random. In a UUID of version 7 the first word is a time.
 */
function wordsOfUuid(text: string): Uint32Array {
  const words = new Uint32Array(4);
  let digits = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === DASH) continue;
    const word = digits++ >> 3;
    words[word] = ((words[word] ?? 0) << 4) | (unit > NINE ? unit - LOWER_A + 10 : unit - ZERO);
  }
  const [time = 0, , random = 0] = words;
  words[0] = random;
  words[2] = time;
  return words;
}

const DASH = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const LOWER_A = 0x61;

/** Returns the first 128 bits of the text's SHA-256. */
function wordsOf(text: string): Uint32Array {
  const bytes = hash('sha256', text, 'buffer');
  return Uint32Array.of(bytes.readUInt32LE(0), bytes.readUInt32LE(4), bytes.readUInt32LE(8), bytes.readUInt32LE(12));
}

const CODE_NAMES = Object.keys(CODES) as readonly Code[];
const OUTCOMES: readonly Outcome[] = ['completed', 'failed', 'cancelled', 'expired', 'outcome_unknown'];
const EXECUTIONS: readonly ExecutionEvidence[] = [
  'not_written',
  'refused_by_client',
  'may_have_run',
  'reported_by_client',
];
/** The number of bits for the time within a generation. The milliseconds of a twelfth of a day fit. */
const TIME_BITS = 24;

/**
 * Packs the end of a command into one number. From the lowest bit: the time (24 bits), the outcome (3), the execution
 * (2), and whether the result expired (1).
 */
function pack({ outcome, execution, resultExpired }: CommandMark, time: number): number {
  const words = OUTCOMES.indexOf(outcome) + EXECUTIONS.indexOf(execution) * 8 + (resultExpired ? 32 : 0);
  return words * 2 ** TIME_BITS + time;
}

function unpack(end: number, code: number, from: number): CommandMark {
  const words = end >>> TIME_BITS;
  return {
    outcome: OUTCOMES[words & 7] ?? 'outcome_unknown',
    execution: EXECUTIONS[(words >> 3) & 3] ?? 'may_have_run',
    errorCode: CODE_NAMES[code - 1] ?? null,
    endedAt: from + (end & (2 ** TIME_BITS - 1)),
    resultExpired: (words & 32) !== 0,
  };
}

function equal(a: Uint32Array, b: Uint32Array): boolean {
  return a.every((word, i) => word === b[i]);
}

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

/** The marks of one shard: for each mark, `WORDS` words and one error code. */
type ShardContent = { readonly words: Uint32Array; readonly codes: Uint8Array };

/** The length of an entry in 32-bit words: key, digest and end. */
const WORDS = 9;
const END = 8;
/** The number of parts of the table. Each part is small, so that growing one never takes long. */
const SHARDS = 256;
/** The factor by which the room for entries grows. */
const GROWTH = 1.25;
/** The number of entries that a new shard has room for. */
const SMALLEST = 4;
/** The greatest fraction of an index's slots that may be in use. */
const FULLEST = 0.75;

/**
 * A table to which marks are only added. Each mark takes 37 bytes in arrays; a full array grows by a quarter. An index
 * with open addressing finds the marks; at most three quarters of its slots are in use. A slot takes 2 bytes, or 4
 * bytes in a shard with more than 49,152 marks. The table is divided into shards by key, so that one array that grows
 * is short. Keys must be uniformly distributed, and requesters must not be able to choose them.
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

  /** Copies the marks that exist now, one shard at a time. Marks may be added between two shards. */
  shards(): IteratorObject<ShardContent> {
    const parts = this.#shards.flatMap((shard) => (shard ? [{ shard, size: shard.size }] : []));
    return parts.values().map(({ shard, size }) => shard.oldest(size));
  }

  /** Adds those marks of a shard that the table does not contain. */
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

  get size(): number {
    return this.#size;
  }

  /** Copies the first `count` marks that were added. */
  oldest(count: number): ShardContent {
    return { words: this.#entries.slice(0, count * WORDS), codes: this.#codes.slice(0, count) };
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
