/**
 * The files of a data directory: batches of records with checksums, appended to a file and read again. Also their names,
 * the lock, the key, and the reserve of disk space. It does not know what a record means.
 */
import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  statfsSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/**
 * The head of each batch: four characters, the length of the body, how much of the file was on the disk when the batch
 * was written, and a checksum.
 */
const HEAD = 16;
const MAGIC = Buffer.from('cbj1');
/** How much of a file is read at once, in bytes. */
const WINDOW = 4 * 1024 * 1024;
const OWNER_ONLY = 0o600;

/** A file that batches are appended to. Each method throws the error of the system, such as ENOSPC. */
export interface BatchFile {
  readonly path: string;
  /** The bytes of whole batches. */
  readonly size: number;
  /** Appends a batch. If it cannot be written whole, the file keeps nothing of it. */
  append(text: string): void;
  /** Calls `done` once all that was appended before is on the disk. */
  sync(done: (error: Error | null) => void): void;
  syncNow(): void;
  close(): void;
}

/** Makes files; tests make ones that fail, or that forget what was not synced. */
export type OpenFile = (path: string) => BatchFile;

/** Creates a file, or opens one to append to it. */
export const openBatchFile: OpenFile = (path) => {
  const file = openSync(path, 'a', OWNER_ONLY);
  let { size } = fstatSync(file);
  let synced = 0;
  return {
    path,
    get size() {
      return size;
    },
    append(text) {
      const batch = batchOf(text, synced);
      try {
        for (let at = 0; at < batch.length;) at += writeSync(file, batch, at);
      } catch (error) {
        ftruncateSync(file, size);
        throw error;
      }
      size += batch.length;
    },
    sync(done) {
      const upTo = size;
      fdatasync(file, (error) => {
        if (!error) synced = upTo;
        done(error);
      });
    },
    syncNow() {
      fdatasyncSync(file);
      synced = size;
    },
    close: () => closeSync(file),
  };
};

/** The buffer of small batches, which is used again for each. */
const scratch = Buffer.allocUnsafeSlow(1024 * 1024);
/** How many bytes a character takes at most in UTF-8. */
const MOST_BYTES = 3;

function batchOf(text: string, synced: number): Buffer {
  const isSmall = HEAD + text.length * MOST_BYTES <= scratch.length;
  const batch = isSmall ? scratch : Buffer.allocUnsafe(HEAD + Buffer.byteLength(text));
  const length = batch.write(text, HEAD);
  MAGIC.copy(batch);
  batch.writeUInt32LE(length, 4);
  batch.writeUInt32LE(synced, 8);
  batch.writeUInt32LE(checksum(batch.subarray(HEAD, HEAD + length), synced), 12);
  return batch.subarray(0, HEAD + length);
}

/** The other members of the head are part of the checksum, so that a head with another value never fits. */
function checksum(body: Buffer, synced: number): number {
  return crc32(body, (body.length ^ synced) >>> 0);
}

/** A part of a file that is no batch, and what follows it. */
export type BadEnd = {
  /**
   * `torn`: a part of a batch, as after a crash in the middle of a write. `unsynced`: whole batches follow, but none
   * says that the part had been on the disk; a loss of power can leave this. `damaged`: a later batch says so.
   */
  readonly kind: 'torn' | 'unsynced' | 'damaged';
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
};

/** How the batches of a file end. `whole`: with the file. */
export type FileEnd = { readonly kind: 'whole' } | BadEnd;

/**
 * Calls `onBatch` with the body of each batch up to the first bytes that are none, and with how much of the file was on
 * the disk when the batch was written. Returns how the file ends.
 */
export function readBatches(path: string, onBatch: (body: Buffer, synced: number) => void): FileEnd {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    let window: Buffer = Buffer.alloc(0);
    let from = 0;
    const read = (offset: number, length: number): Buffer | null => {
      if (offset + length > size) return null;
      if (offset < from || offset + length > from + window.length) {
        window = readAt(file, offset, Math.min(size - offset, Math.max(WINDOW, length)));
        from = offset;
      }
      return window.subarray(offset - from, offset - from + length);
    };
    let offset = 0;
    for (;;) {
      if (offset === size) return { kind: 'whole' };
      const batch = batchAt(read, offset);
      if (!batch) return badEnd(readAt(file, offset, size - offset), offset);
      onBatch(batch.body, batch.synced);
      offset += HEAD + batch.body.length;
    }
  } finally {
    closeSync(file);
  }
}

type Batch = { readonly body: Buffer; readonly synced: number };

function batchAt(read: (offset: number, length: number) => Buffer | null, offset: number): Batch | null {
  const head = read(offset, HEAD);
  if (!head?.subarray(0, MAGIC.length).equals(MAGIC)) return null;
  const [length, synced, sum] = [head.readUInt32LE(4), head.readUInt32LE(8), head.readUInt32LE(12)];
  const body = read(offset + HEAD, length);
  return body && checksum(body, synced) === sum ? { body, synced } : null;
}

function badEnd(rest: Buffer, offset: number): BadEnd {
  const read = (at: number, length: number): Buffer | null =>
    at + length > rest.length ? null : rest.subarray(at, at + length);
  const found = { offset, bytes: rest.length, sha256: createHash('sha256').update(rest).digest('hex') };
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
 * synced.
 */
export function mayBeCut({ kind }: BadEnd, later: readonly string[], lostPower: boolean): boolean {
  if (kind === 'damaged') return false;
  if (kind === 'torn' && later.length === 0) return true;
  return lostPower && !later.some(wasSynced);
}

/** Whether a batch of the file says that the file, and therefore each file before it, had been on the disk. */
function wasSynced(path: string): boolean {
  let found = false;
  readBatches(path, (_body, synced) => (found ||= synced > 0));
  return found;
}

function readAt(file: number, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const more = readSync(file, bytes, done, length - done, offset + done);
    if (more === 0) break;
    done += more;
  }
  return bytes.subarray(0, done);
}

/** Cuts a file at an offset, so that it ends with a whole batch. */
export function cutFile(path: string, offset: number): void {
  const file = openSync(path, 'r+');
  ftruncateSync(file, offset);
  fsyncSync(file);
  closeSync(file);
}

// The directory: the names of its files, the lock, the key and the reserve.

/** The numbered files of a directory. A snapshot has the number of the journal that follows it. */
export type Numbered = { readonly journals: readonly number[]; readonly snapshots: readonly number[] };

/** The files that a start reads, as paths. */
export type ToRead = {
  /** The newest snapshot; null if there is none. */
  readonly snapshot: string | null;
  /** The journals that follow it, in order. */
  readonly journals: readonly string[];
  /** The first of these journals that is not there, although the snapshot or a later journal is; null if none is. */
  readonly missing: string | null;
  /** The number of the snapshot, or of the first journal. */
  readonly from: number;
  /** The number of the next journal. */
  readonly next: number;
};

/** The paths of a data directory. */
export class DataDirectory {
  readonly root: string;

  /** Creates the directory if it does not exist. Throws the error of the system. */
  constructor(root: string) {
    this.root = root;
    mkdirSync(root, { recursive: true, mode: 0o700 });
  }

  journal(number: number): string {
    return join(this.root, `journal-${String(number).padStart(8, '0')}`);
  }

  snapshot(number: number): string {
    return join(this.root, `snapshot-${String(number).padStart(8, '0')}`);
  }

  get reserve(): string {
    return join(this.root, 'reserve');
  }

  /** The file of the audit, unless the relay has another one. */
  get audit(): string {
    return join(this.root, 'audit.jsonl');
  }

  /** The folder of large payloads, unless the relay has another one. */
  get spill(): string {
    return join(this.root, 'spill');
  }

  numbered(): Numbered {
    const names = readdirSync(this.root);
    const numbers = (kind: string): number[] =>
      names
        .map((name) => new RegExp(`^${kind}-(\\d{8})$`).exec(name)?.[1])
        .filter((digits) => digits !== undefined)
        .map(Number)
        .sort((a, b) => a - b);
    return { journals: numbers('journal'), snapshots: numbers('snapshot') };
  }

  /** A file that is there if records were given up: after damage, and in a backup, which lacks what followed it. */
  get loss(): string {
    return join(this.root, 'loss');
  }

  toRead(): ToRead {
    const { journals, snapshots } = this.numbered();
    const newest = snapshots.at(-1);
    const from = newest ?? journals[0] ?? 1;
    const following = journals.filter((number) => number >= from);
    const present = following.findIndex((number, index) => number !== from + index);
    const isMissing = present >= 0 || (newest !== undefined && following.length === 0);
    return {
      snapshot: newest === undefined ? null : this.snapshot(newest),
      journals: following.map((number) => this.journal(number)),
      missing: isMissing ? this.journal(from + Math.max(present, 0)) : null,
      from,
      next: (following.at(-1) ?? from - 1) + 1,
    };
  }

  /** Removes the snapshots and journals before this number. Not in this turn: removing a large file takes long. */
  async removeBefore(number: number): Promise<void> {
    const { journals, snapshots } = this.numbered();
    for (const old of journals) if (old < number) await rm(this.journal(old), { force: true });
    for (const old of snapshots) if (old < number) await rm(this.snapshot(old), { force: true });
  }

  /** Removes what an interrupted snapshot left. */
  removeUnfinished(): void {
    for (const name of readdirSync(this.root))
      if (name.endsWith('.new')) rmSync(join(this.root, name), { force: true });
  }

  /** The bytes of all journals and snapshots. */
  size(): number {
    const { journals, snapshots } = this.numbered();
    const paths = [...journals.map((n) => this.journal(n)), ...snapshots.map((n) => this.snapshot(n))];
    // A snapshot may remove files at any time.
    return paths.reduce((sum, path) => sum + sizeOf(path), 0);
  }

  /** Makes the names of new files outlive a power loss. */
  sync(): void {
    const names = this.names();
    names.syncNow();
    names.close();
  }

  /** The names of the files, which are synced as a file is. */
  names(): Pick<BatchFile, 'sync' | 'syncNow' | 'close'> {
    // Windows cannot open a folder; its file systems record names before the call returns.
    if (process.platform === 'win32') return { sync: (done) => done(null), syncNow() {}, close() {} };
    const folder = openSync(this.root, 'r');
    return {
      sync: (done) => fsync(folder, done),
      syncNow: () => fsyncSync(folder),
      close: () => closeSync(folder),
    };
  }

  /** Returns secrets that last with the directory, one for each purpose. */
  keys(): (purpose: string) => Uint8Array {
    const path = join(this.root, 'key');
    const key = readIfThere(path) ?? this.#makeKey(path);
    return (purpose) => new Uint8Array(hkdfSync('sha256', key, '', `callboard ${purpose}`, 32));
  }

  #makeKey(path: string): Buffer {
    const key = randomBytes(32);
    writeWhole(path, key);
    this.sync();
    return key;
  }
}

/** The size of the reserve: enough for the ends of all commands that run. */
const RESERVE_BYTES = 8 * 1024 * 1024;
/** How much of the reserve is written at once, in bytes. */
const PIECE_BYTES = 256 * 1024;

/** Disk space that is given up when the disk is full, so that what runs can still be ended. */
export class Reserve {
  readonly #root: string;
  readonly #path: string;
  /** How often the reserve was given up. */
  #givenUp = 0;

  constructor({ root, reserve }: Pick<DataDirectory, 'root' | 'reserve'>) {
    this.#root = root;
    this.#path = reserve;
  }

  /**
   * Writes the reserve, unless it is there. Throws the error of the system; ENOSPC too if the reserve is given up
   * before it is written. Only one call may be in progress.
   */
  async make(): Promise<void> {
    if (sizeOf(this.#path) === RESERVE_BYTES) return;
    const { bavail, bsize } = statfsSync(this.#root);
    if (bavail * bsize < RESERVE_BYTES) throw noSpace();
    const unfinished = `${this.#path}.new`;
    const givenUp = this.#givenUp;
    try {
      await this.#write(unfinished);
      if (this.#givenUp !== givenUp) throw noSpace();
      // In the same turn as the check, so that `giveUp` finds the reserve under one of its names.
      renameSync(unfinished, this.#path);
    } catch (error) {
      rmSync(unfinished, { force: true });
      throw error;
    }
  }

  /** Frees the space of the reserve, also of one that is being written. Returns false if there was none. */
  giveUp(): boolean {
    this.#givenUp++;
    // Truncated before they are removed, because an open file keeps its space.
    const found = [this.#path, `${this.#path}.new`].filter((path) => sizeOf(path) > 0);
    for (const path of found) {
      truncateSync(path);
      rmSync(path, { force: true });
    }
    return found.length > 0;
  }

  async #write(path: string): Promise<void> {
    const givenUp = this.#givenUp;
    const file = await open(path, 'w', OWNER_ONLY);
    try {
      const piece = Buffer.alloc(PIECE_BYTES);
      for (let at = 0; at < RESERVE_BYTES;) {
        at += (await file.write(piece, 0, Math.min(piece.length, RESERVE_BYTES - at), at)).bytesWritten;
        if (this.#givenUp !== givenUp) throw noSpace();
      }
      await file.datasync();
    } finally {
      await file.close();
    }
  }
}

function noSpace(): Error {
  return Object.assign(new Error('there is no room for the reserve'), { code: 'ENOSPC' });
}

/** Returns the size of a file in bytes; 0 if it does not exist. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

export function readIfThere(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** Writes a file under another name first, so that it is there whole or not at all. */
export function writeWhole(path: string, content: Buffer): void {
  const made = openSync(`${path}.new`, 'w', OWNER_ONLY);
  for (let at = 0; at < content.length;) at += writeSync(made, content, at);
  fsyncSync(made);
  closeSync(made);
  renameSync(`${path}.new`, path);
}

/** Holds the lock of a directory until `release`, or until the process ends in whatever way. */
export type DataLock = { release(): void };

/** Takes the lock; null if another process has it. Loads `node:sqlite`, whose locks end with their process. */
export async function lockDirectory(root: string): Promise<DataLock | null> {
  const sqlite = await import('node:sqlite');
  const path = join(root, 'lock');
  writeFileSync(path, '', { flag: 'a', mode: OWNER_ONLY });
  const database: DatabaseSync = new sqlite.DatabaseSync(path);
  try {
    database.exec('PRAGMA journal_mode=MEMORY; PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return null;
    throw error;
  }
  return { release: () => database.close() };
}

const SQLITE_BUSY = 5;

/** The kinds of file systems that are in a network, by the number that the system gives them (statfs(2)). */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x00c36400, 'Ceph'],
  [0x01021997, '9P'],
]);

/** Returns the name of the network file system that a directory is on; null: none, or the system does not tell. */
export function networkFileSystem(root: string): string | null {
  if (process.platform !== 'linux') return null;
  return NETWORK_FILE_SYSTEMS.get(statfsSync(root).type >>> 0) ?? null;
}

/** Returns the id of this boot of the system; null where the system has none, or hides it. */
export function bootId(): string | null {
  if (process.platform !== 'linux') return null;
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return null;
  }
}
