/**
 * Appends batches of records with checksums to a file, and reads and checks them. The content of a batch is opaque
 * here.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Disk, DiskFile, Synced } from './disk.ts';

/**
 * The length of a batch head in bytes. The head consists of: four characters; the length of the body; the number of
 * bytes of the file that were on the disk when the batch was written; the number of the batch; the checksum of the
 * previous batch; and the checksum over all of these and the body.
 */
const HEAD = 24;
/** The offset of the checksum in a head. */
const SUM_AT = HEAD - 4;
const MAGIC = Buffer.from('cbj2');
/** How many bytes of a file are read at once. */
const WINDOW = 4 * 1024 * 1024;

/** Identifies a batch by its number and its checksum. The next batch refers to it by these, even in the next file. */
export type BatchName = { readonly number: number; readonly sum: number };
/** Takes the place of the previous batch for the first batch of a directory. */
export const NO_BATCH: BatchName = { number: 0, sum: 0 };

/** A file that batches are appended to. Each method throws the error of the system, such as ENOSPC. */
export interface BatchFile extends Synced {
  readonly path: string;
  /** The number of bytes, of whole batches only. */
  readonly size: number;
  /** The last batch of the file. If the file is empty, the batch that its first batch will follow. */
  readonly last: BatchName;
  /** Appends a batch. If the batch cannot be written completely, the file keeps no part of it. */
  append(text: string): void;
}

/**
 * Creates a file, or opens an existing one for appending. `after`: the batch that the next batch follows; absent for
 * the first batch of a directory. Tests pass a function whose files fail on request.
 */
export type OpenFile = (path: string, after?: BatchName) => BatchFile;

/** Creates batch files on a disk. */
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

/** A buffer that all small batches share, one after another. */
const scratch = Buffer.allocUnsafeSlow(1024 * 1024);
/** The most bytes that one UTF-16 code unit takes in UTF-8. */
const MOST_BYTES = 3;

type BatchContext = { readonly synced: number; readonly last: BatchName };

function batchOf(text: string, { synced, last }: BatchContext): { readonly batch: Buffer; readonly name: BatchName } {
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

/** The head is part of the checksum, so that a changed head is detected. */
function checksum(head: Buffer, body: Buffer): number {
  return crc32(body, crc32(head));
}

/** The first part of a file that is not the next valid batch, up to the end of the file. */
export type BadEnd = {
  /**
   * `torn`: a part of a batch, as a crash in the middle of a write leaves it. `unsynced`: whole batches follow, but
   * none of them says that this part had been on the disk; a power loss can leave this. `damaged`: a later batch says
   * that this part had been on the disk. `misplaced`: a whole batch that does not follow the previous one, because a
   * batch was removed, repeated or moved.
   */
  readonly kind: 'torn' | 'unsynced' | 'damaged' | 'misplaced';
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
};

/** How the batches of a file end. `whole`: the last batch ends where the file ends. */
export type FileEnd = { readonly kind: 'whole' } | BadEnd;

/** Checks, over several files, that each batch refers to the one before it. */
export class BatchChain {
  #last: BatchName | null;

  /**
   * `last`: the batch that the first batch must follow; null if it may follow any batch, because earlier batches were
   * given up.
   */
  constructor(last: BatchName | null) {
    this.#last = last;
  }

  /** The batch that the next batch must follow. */
  get last(): BatchName {
    return this.#last ?? NO_BATCH;
  }

  /** Whether this batch follows the previous one. If so, it becomes the previous one. */
  take({ name, before }: Batch): boolean {
    const last = this.#last;
    if (last && (name.number !== last.number + 1 || before !== last.sum)) return false;
    this.#last = name;
    return true;
  }
}

/**
 * Calls `onBatch` with the body of each batch. Stops at the first bytes that are not a valid batch, and at a batch that
 * does not follow the previous one in the chain. Returns how the file ends.
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

/** The path of a file, and the disk to read it from. */
type OnDisk = { readonly disk: Pick<Disk, 'open'>; readonly path: string };

/** Whether a file begins like a file of another version of the relay. Such a file must not be cut. */
function hasOtherForm(start: Buffer | null): boolean {
  return start !== null && !start.equals(MAGIC) && /^cbj\d/.test(start.toString('latin1'));
}

/** Reads a range of a file; returns null if the file ends before the end of the range. */
type ReadRange = (offset: number, length: number) => Buffer | null;

function windowOf(file: DiskFile, size: number): ReadRange {
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
  /** The checksum of the previous batch. */
  readonly before: number;
};

function batchAt(read: ReadRange, offset: number): Batch | null {
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
 * Whether a crash can have caused this end of a journal. If so, a start cuts it off and removes all later journals. The
 * end of a process leaves at most a part of the last batch. After a power loss, anything that was not synced may be
 * missing, even the whole end of the previous journal; then the first batch of this journal is misplaced.
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
  /** The journal with this end, and all later journals. */
  readonly files: readonly string[];
  readonly lostPower: boolean;
};

/**
 * Whether some batch of the file shows that a part of the file, and therefore every earlier file, had been on the disk.
 */
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

/** Cuts a file at an offset, at which a whole batch must end, and syncs it. */
export function cutFile({ disk, path }: OnDisk, offset: number): void {
  const file = disk.open(path, 'change');
  file.truncate(offset);
  file.syncNow();
  file.close();
}
