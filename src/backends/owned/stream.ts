/**
 * The log of a partition as Redis keeps it: a stream of numbered batches, and the pieces of a snapshot. Reads both in
 * slices, so that the lease of a process lives on while it takes a partition over, and writes the pieces.
 */
import { CallboardError } from '../../core/errors.ts';
import type { Clock, EventLoop } from '../../core/ports.ts';
import type { SnapshotPieces } from '../journal/log.ts';
import { headOf, type Header } from '../journal/records.ts';
import type { Replay } from '../journal/replay.ts';
import type { Client } from '../redis/client.ts';
import type { PartitionKeys } from './keys.ts';
import { addPiece, dropPieces } from './scripts.ts';

/** The form of batches and pieces. A process does not take over a log of another form. */
export const STREAM_FORMAT = 1;
/** How long a slice of a replay may take, in milliseconds. */
const SLICE_MS = 8;
/** How many batches are read at once. */
const READ = 256;
/** After how long the pieces of an unfinished snapshot are removed, in milliseconds. */
const UNFINISHED_MS = 600_000;
/** The name of no snapshot. */
export const NO_SNAPSHOT = '-';

/** Reads which snapshot counts: its name, and the number of the last batch that it replaces. */
export function readSnapshotAt(text: string | null): { readonly number: number; readonly name: string } {
  const [number = '0', name = NO_SNAPSHOT] = (text ?? '').split(' ').filter(Boolean);
  return { number: Number(number), name };
}

/** A log that cannot be put back: batches are missing, a snapshot is not whole, or it has another form. */
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

/** Puts a log back: first the snapshot that counts, then the batches that follow it, as often as there are more. */
export class StreamReader {
  readonly #options: ReaderOptions;
  #snapshot: string | null = null;
  #number = 0;
  #sliceAt = 0;
  #snapshotBytes = 0;
  #batchBytes = 0;
  /** The last call of `catchUp`. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** The number of the last batch that was put back, or that the snapshot replaces. */
  get number(): number {
    return this.#number;
  }

  /** The name of the snapshot that was put back. */
  get snapshot(): string {
    return this.#snapshot ?? NO_SNAPSHOT;
  }

  /** The length of the snapshot, and that of the batches after it, in bytes. */
  get bytes(): { readonly snapshot: number; readonly batches: number } {
    return { snapshot: this.#snapshotBytes, batches: this.#batchBytes };
  }

  /**
   * Puts back all that is there now. Throws BrokenLog if it cannot be put back, for example because a batch is missing;
   * then nothing that was put back may be used. One call follows the other, so that no batch is put back twice.
   */
  catchUp(): Promise<void> {
    this.#last = this.#last.then(() => this.#catchUp());
    return this.#last;
  }

  /** Resolves when nothing is being put back. */
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
  /** The key of the pieces. No other snapshot has it, not even one that was given up. */
  readonly key: string;
  readonly header: Header;
  /** The time of the snapshot, in epoch milliseconds. */
  readonly at: number;
};

/**
 * Begins to write the pieces of a snapshot. They expire unless the snapshot is committed, so a process that is no longer
 * the owner can neither spoil a snapshot nor leave one.
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
    // If the connection is gone, the pieces expire. Another attempt has another name.
    discard: () => void dropPieces(client, key).catch(() => undefined),
  };
}
