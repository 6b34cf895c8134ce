/** Batches of records with checksums: appended to a file, and read again. It does not know what a record means. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Disk, DiskFile, Synced } from './disk.ts';

/**
 * The head of each batch: four characters, the length of the body, how much of the file was on the disk when the batch
 * was written, the number of the batch, the checksum of the batch before it, and its own checksum over all of that.
 */
const HEAD = 24;
/** Where the checksum is. */
const SUM_AT = HEAD - 4;
const MAGIC = Buffer.from('cbj2');
/** How much of a file is read at once, in bytes. */
const WINDOW = 4 * 1024 * 1024;

/** A batch as the next one names it, also in the next file: its number and its checksum. */
export type BatchName = { readonly number: number; readonly sum: number };
/** What the first batch of all follows. */
export const NO_BATCH: BatchName = { number: 0, sum: 0 };

/** A file that batches are appended to. Each method throws the error of the system, such as ENOSPC. */
export interface BatchFile extends Synced {
  readonly path: string;
  /** The bytes of whole batches. */
  readonly size: number;
  /** The last batch of the file, or the one that its first batch will follow. */
  readonly last: BatchName;
  /** Appends a batch. If it cannot be written whole, the file keeps nothing of it. */
  append(text: string): void;
}

/**
 * Creates a file, or opens one to append to it. `after`: the batch that the next one follows; absent: there is none.
 * Tests have files that fail when they say so.
 */
export type OpenFile = (path: string, after?: BatchName) => BatchFile;

/** Makes files on a disk. */
export const batchFilesOn =
  (disk: Pick<Disk, 'open'>): OpenFile =>
  (path, after = NO_BATCH) => {
    const file = disk.open(path, 'append');
    let size = file.size();
    let synced = 0;
    let last = after;
    return {
      path,
      get size() {
        return size;
      },
      get last() {
        return last;
      },
      append(text) {
        const { batch, name } = batchOf(text, { synced, last });
        try {
          for (let at = 0; at < batch.length;) at += file.write(batch, at);
        } catch (error) {
          file.truncate(size);
          throw error;
        }
        size += batch.length;
        last = name;
      },
      sync(done) {
        const upTo = size;
        file.sync((error) => {
          if (!error) synced = upTo;
          done(error);
        });
      },
      syncNow() {
        file.syncNow();
        synced = size;
      },
      close: () => file.close(),
    };
  };

/** The buffer of small batches, which is used again for each. */
const scratch = Buffer.allocUnsafeSlow(1024 * 1024);
/** How many bytes a character takes at most in UTF-8. */
const MOST_BYTES = 3;

type Before = { readonly synced: number; readonly last: BatchName };

function batchOf(text: string, { synced, last }: Before): { readonly batch: Buffer; readonly name: BatchName } {
  const isSmall = HEAD + text.length * MOST_BYTES <= scratch.length;
  const buffer = isSmall ? scratch : Buffer.allocUnsafe(HEAD + Buffer.byteLength(text));
  const batch = buffer.subarray(0, HEAD + buffer.write(text, HEAD));
  const number = last.number + 1;
  MAGIC.copy(batch);
  batch.writeUInt32LE(batch.length - HEAD, 4);
  batch.writeUInt32LE(synced, 8);
  batch.writeUInt32LE(number, 12);
  batch.writeUInt32LE(last.sum, 16);
  const sum = checksum(batch.subarray(0, SUM_AT), batch.subarray(HEAD));
  batch.writeUInt32LE(sum, SUM_AT);
  return { batch, name: { number, sum } };
}

/** The other members of the head are part of the checksum, so that a head with another value never fits. */
function checksum(head: Buffer, body: Buffer): number {
  return crc32(body, crc32(head));
}

/** A part of a file that is no batch, or not the next one, and what follows it. */
export type BadEnd = {
  /**
   * `torn`: a part of a batch, as after a crash in the middle of a write. `unsynced`: whole batches follow, but none
   * says that the part had been on the disk; a loss of power can leave this. `damaged`: a later batch says so.
   * `misplaced`: a whole batch that does not follow the one before it: a batch was removed, doubled or moved.
   */
  readonly kind: 'torn' | 'unsynced' | 'damaged' | 'misplaced';
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
};

/** How the batches of a file end. `whole`: with the file. */
export type FileEnd = { readonly kind: 'whole' } | BadEnd;

/** Follows the batches over several files: each must name the one before it. */
export class BatchChain {
  #last: BatchName | null;

  /** `last`: what the first batch must follow; null: it may follow any batch, because what was before was given up. */
  constructor(last: BatchName | null) {
    this.#last = last;
  }

  /** The batch that the next one must follow. */
  get last(): BatchName {
    return this.#last ?? NO_BATCH;
  }

  /** Returns whether this batch follows the one before, and goes on to it if so. */
  take({ name, before }: Batch): boolean {
    const last = this.#last;
    if (last && (name.number !== last.number + 1 || before !== last.sum)) return false;
    this.#last = name;
    return true;
  }
}

/**
 * Calls `onBatch` with the body of each batch up to the first bytes that are none, or up to one that does not follow the
 * one before in the chain. Returns how the file ends.
 */
export function readBatches({ disk, path }: OnDisk, chain: BatchChain, onBatch: (body: Buffer) => void): FileEnd {
  const file = disk.open(path, 'read');
  try {
    const size = file.size();
    const read = windowOf(file, size);
    if (hasOtherForm(read(0, MAGIC.length))) throw new Error(`${path} has the form of another version`);
    let offset = 0;
    for (;;) {
      if (offset === size) return { kind: 'whole' };
      const batch = batchAt(read, offset);
      if (!batch) return badEnd(readAt(file, offset, size - offset), offset);
      if (!chain.take(batch)) return { kind: 'misplaced', ...foundAt(readAt(file, offset, size - offset), offset) };
      onBatch(batch.body);
      offset += HEAD + batch.body.length;
    }
  } finally {
    file.close();
  }
}

/** A file that is read. */
type OnDisk = { readonly disk: Pick<Disk, 'open'>; readonly path: string };

/** Whether a file begins as one that an earlier or later version of the relay writes. Such a file must not be cut. */
function hasOtherForm(start: Buffer | null): boolean {
  return start !== null && !start.equals(MAGIC) && /^cbj\d/.test(start.toString('latin1'));
}

/** Returns a part of a file; null if the file is shorter. */
type Read = (offset: number, length: number) => Buffer | null;

function windowOf(file: DiskFile, size: number): Read {
  let window: Buffer = Buffer.alloc(0);
  let from = 0;
  return (offset, length) => {
    if (offset + length > size) return null;
    if (offset < from || offset + length > from + window.length) {
      window = readAt(file, offset, Math.min(size - offset, Math.max(WINDOW, length)));
      from = offset;
    }
    return window.subarray(offset - from, offset - from + length);
  };
}

type Batch = {
  readonly body: Buffer;
  readonly synced: number;
  readonly name: BatchName;
  /** The checksum of the batch before. */
  readonly before: number;
};

function batchAt(read: Read, offset: number): Batch | null {
  const head = read(offset, HEAD);
  if (!head?.subarray(0, MAGIC.length).equals(MAGIC)) return null;
  const fields = Buffer.from(head);
  const body = read(offset + HEAD, fields.readUInt32LE(4));
  const sum = fields.readUInt32LE(SUM_AT);
  if (!body || checksum(fields.subarray(0, SUM_AT), body) !== sum) return null;
  const name = { number: fields.readUInt32LE(12), sum };
  return { body, synced: fields.readUInt32LE(8), name, before: fields.readUInt32LE(16) };
}

function foundAt(rest: Buffer, offset: number): Omit<BadEnd, 'kind'> {
  return { offset, bytes: rest.length, sha256: createHash('sha256').update(rest).digest('hex') };
}

function badEnd(rest: Buffer, offset: number): BadEnd {
  const read = (at: number, length: number): Buffer | null =>
    at + length > rest.length ? null : rest.subarray(at, at + length);
  const found = foundAt(rest, offset);
  let kind: BadEnd['kind'] = 'torn';
  for (let at = rest.indexOf(MAGIC, 1); at >= 0; at = rest.indexOf(MAGIC, at + 1)) {
    const later = batchAt(read, at);
    if (later && later.synced > offset) return { kind: 'damaged', ...found };
    if (later) kind = 'unsynced';
  }
  return { kind, ...found };
}

/**
 * Returns whether a crash can have left this end of a journal, which a start then cuts off with all later journals. The
 * end of a process leaves at most a part of the last batch. After a loss of power anything may be missing that was not
 * synced, also the whole end of the journal before: then the first batch of this one is misplaced.
 */
export function mayBeCut({ kind, offset }: BadEnd, { disk, files, lostPower }: CutOptions): boolean {
  const isLast = files.length === 1;
  const wasSynced = (path: string): boolean => hasSyncedBatch({ disk, path });
  switch (kind) {
    case 'damaged':
      return false;
    case 'misplaced':
      return offset === 0 && lostPower && !files.some(wasSynced);
    case 'torn':
    case 'unsynced':
      return (kind === 'torn' && isLast) || (lostPower && !files.slice(1).some(wasSynced));
  }
}

type CutOptions = {
  readonly disk: Pick<Disk, 'open'>;
  /** The journal, and those after it. */
  readonly files: readonly string[];
  readonly lostPower: boolean;
};

/** Whether a batch of the file says that the file, and therefore each file before it, had been on the disk. */
function hasSyncedBatch({ disk, path }: OnDisk): boolean {
  const file = disk.open(path, 'read');
  try {
    const read = windowOf(file, file.size());
    let offset = 0;
    for (let batch = batchAt(read, offset); batch; batch = batchAt(read, offset)) {
      if (batch.synced > 0) return true;
      offset += HEAD + batch.body.length;
    }
    return false;
  } finally {
    file.close();
  }
}

function readAt(file: DiskFile, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const more = file.read(bytes, done, length - done, offset + done);
    if (more === 0) break;
    done += more;
  }
  return bytes.subarray(0, done);
}

/** Cuts a file at an offset, so that it ends with a whole batch. */
export function cutFile({ disk, path }: OnDisk, offset: number): void {
  const file = disk.open(path, 'change');
  file.truncate(offset);
  file.syncNow();
  file.close();
}
