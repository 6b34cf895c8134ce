/**
 * Reads the log of a partition back from Redis (the pieces of its last snapshot, then the stream of numbered batches),
 * and writes the pieces of snapshots.
 *
 * It reads in slices, so that a process can renew its lease while it takes a partition over.
 */
import { CallboardError } from '../../core/errors.ts';
import type { Clock, EventLoop } from '../../core/ports.ts';
import type { SnapshotPieces } from '../journal/log.ts';
import { headOf, type Header } from '../journal/records.ts';
import type { Replay } from '../journal/replay.ts';
import type { Client } from '../redis/client.ts';
import type { PartitionKeys } from './keys.ts';
import { addPiece, dropPieces } from './scripts.ts';

/** The version of the format of batches and pieces. A process takes over no log with another version. */
export const STREAM_FORMAT = 1;
/** The longest duration of a slice of a replay, in milliseconds. */
const SLICE_MS = 8;
/** The number of batches that are read at once. */
const READ = 256;
/** How long after its last piece an unfinished snapshot expires, in milliseconds. */
const UNFINISHED_MS = 600_000;
/** Stands for the name of a snapshot if there is none. */
export const NO_SNAPSHOT = '-';

/** Reads the name of the valid snapshot, and the number of the last batch that it replaces. */
export function readSnapshotAt(text: string | null): { readonly number: number; readonly name: string } {
  const [number = '0', name = NO_SNAPSHOT] = (text ?? '').split(' ').filter(Boolean);
  return { number: Number(number), name };
}

/** Thrown if a log cannot be replayed: batches are missing, a snapshot is incomplete, or the format is another one. */
export class BrokenLog extends CallboardError {
  constructor(what: string) {
    super('store_unavailable', `The log of a partition cannot be put back: ${what}.`);
  }
}

type ReaderOptions = {
  readonly client: Client;
  readonly keys: PartitionKeys;
  readonly replay: Replay;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly loop: EventLoop;
};

/**
 * Restores a state from a log: first from the valid snapshot, then from the batches after it. Further calls read new
 * batches.
 */
export class StreamReader {
  readonly #options: ReaderOptions;
  #snapshot: string | null = null;
  #number = 0;
  #sliceAt = 0;
  #snapshotBytes = 0;
  #batchBytes = 0;
  /** The last call of `catchUp`; the next call waits for it. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /**
   * The number of the last batch that was restored. After a snapshot, the number of the last batch that it replaces.
   */
  get number(): number {
    return this.#number;
  }

  /** The name of the snapshot that was restored. */
  get snapshot(): string {
    return this.#snapshot ?? NO_SNAPSHOT;
  }

  /** The length of the snapshot and of the batches after it, in bytes. */
  get bytes(): { readonly snapshot: number; readonly batches: number } {
    return { snapshot: this.#snapshotBytes, batches: this.#batchBytes };
  }

  /**
   * Restores everything that is in the log now. Throws BrokenLog if that fails, for example because a batch is missing;
   * the state must not be used then. Calls run one after another, so that no batch is restored twice.
   */
  catchUp(): Promise<void> {
    this.#last = this.#last.then(() => this.#catchUp());
    return this.#last;
  }

  /** Resolves when no call of `catchUp` is running. */
  async settled(): Promise<void> {
    await this.#last.catch(() => undefined);
  }

  async #catchUp(): Promise<void> {
    this.#sliceAt = this.#options.clock.monotonic();
    if (this.#snapshot === null) await this.#readSnapshot();
    while ((await this.#readBatches()) === READ);
  }

  async #readSnapshot(): Promise<void> {
    const { client, keys, replay } = this.#options;
    const { number, name } = readSnapshotAt(await client.get(keys.snapshotAt));
    if (name !== NO_SNAPSHOT) {
      const key = keys.snapshot(name);
      for (let at = 0; ; at++) {
        const piece = await client.lindexBuffer(key, at);
        if (!piece) break;
        this.#snapshotBytes += piece.length;
        await this.#put(piece);
      }
      if (!replay.complete) throw new BrokenLog(`the snapshot ${name} is not whole`);
    }
    replay.endSnapshot();
    this.#snapshot = name;
    this.#number = number;
  }

  async #readBatches(): Promise<number> {
    const { client, keys } = this.#options;
    const from = `${this.#number + 1}-0`;
    const entries = await client.xrangeBuffer(keys.log, from, '+', 'COUNT', READ);
    for (const [id, fields] of entries) {
      const number = Number.parseInt(String(id), 10);
      const batch = fields[1];
      if (number !== this.#number + 1 || !batch)
        throw new BrokenLog(`the batch ${this.#number + 1} is missing before ${number}`);
      await this.#put(batch);
      this.#batchBytes += batch.length;
      this.#number = number;
    }
    return entries.length;
  }

  async #put(body: Buffer): Promise<void> {
    const { replay, clock, loop } = this.#options;
    for (const _ of replay.steps(body)) {
      if (replay.header?.format !== STREAM_FORMAT)
        throw new BrokenLog(`its form is ${replay.header?.format}, and this version reads ${STREAM_FORMAT}`);
      if (clock.monotonic() - this.#sliceAt < SLICE_MS) continue;
      await new Promise<void>((next) => loop.afterOthers(next));
      this.#sliceAt = clock.monotonic();
    }
  }
}

type StreamPieces = {
  readonly client: Client;
  /** The key of the pieces. It is unique to this snapshot: not even a snapshot that was given up had it. */
  readonly key: string;
  readonly header: Header;
  /** The time of the snapshot, in epoch milliseconds. */
  readonly at: number;
};

/**
 * Begins to write the pieces of a snapshot. The pieces expire unless the snapshot is committed, so a process that is no
 * longer the owner can neither damage a snapshot nor leave an unfinished one behind.
 */
export function writePieces({ client, key, header, at }: StreamPieces): Omit<SnapshotPieces, 'commit'> {
  let size = 0;
  let head = headOf(header, at);
  return {
    get size() {
      return size;
    },
    async append(text) {
      size += head.length + text.length;
      const piece = head + text;
      head = '';
      await addPiece(client, key, piece, UNFINISHED_MS);
    },
    // If the connection is gone, the pieces expire by themselves. Another attempt uses another name.
    discard: () => void dropPieces(client, key).catch(() => undefined),
  };
}
