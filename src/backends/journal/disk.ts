/**
 * The disk of a data directory: all that a journal asks of the system, as a port, and the system's own. A simulation has
 * another one, which loses power, is slow, full, or broken.
 */
import {
  closeSync,
  existsSync,
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

/** What can be made to outlive a power loss. */
export interface Synced {
  /** Calls `done` once all that was done before is on the disk; with an error, it may be there or not. */
  sync(done: (error: Error | null) => void): void;
  /** Returns once all that was done before is on the disk. Throws the error of the system; then it may be there or not. */
  syncNow(): void;
  close(): void;
}

/** An open file. What was written and not synced outlives the process, and may be lost, in part too, with the power. */
export interface DiskFile extends Synced {
  /** The length in bytes. */
  size(): number;
  /**
   * Writes the bytes from this one on at the end of the file, and returns how many were written: perhaps not all. Throws
   * the error of the system, such as ENOSPC; then nothing was written.
   */
  write(bytes: Uint8Array, from: number): number;
  /** Reads at most this many bytes from a place of the file to one of the buffer. Returns how many; 0 at the end. */
  read(into: Uint8Array, to: number, length: number, from: number): number;
  /** Cuts the file to this length. */
  truncate(size: number): void;
}

/**
 * How a file is opened. `read`, `change` (to cut it): it must exist. `append`: it is created if it is absent. `replace`:
 * it is empty then.
 */
export type OpenMode = 'read' | 'change' | 'append' | 'replace';

/** Holds the lock of a directory until `release`, or until the process ends in whatever way. */
export type DataLock = { release(): void };

/**
 * The files of one process. Paths are those of the system. Each method throws the error of the system. Files and folders
 * are made for their user only. Names that were created, changed or removed may be as before after a power loss, until
 * their folder is synced.
 */
export interface Disk {
  /** The id of this boot of the system, another one after each power loss; null where the system has none, or hides it. */
  boot(): string | null;
  /** Creates a folder and those above it, unless they are there. */
  makeFolder(path: string): void;
  /** The names in a folder, in any order. */
  names(folder: string): readonly string[];
  exists(path: string): boolean;
  /** The size of a file in bytes; 0 if it does not exist. */
  sizeOf(path: string): number;
  open(path: string, mode: OpenMode): DiskFile;
  /** Opens a folder, to sync the names in it. */
  openFolder(path: string): Synced;
  /** Gives a file another name, and replaces the file that has it, at once: no moment is without one of them. */
  rename(from: string, to: string): void;
  /** Removes a file, if it exists. */
  remove(path: string): void;
  /** Removes a file, if it exists, without holding up the event loop. */
  removeLater(path: string): Promise<void>;
  /** Empties a file, which frees its space also while it is open. */
  empty(path: string): void;
  /**
   * Writes a file of this many zeros, and syncs it, without holding up the event loop. Stops when `goesOn` says no, and
   * resolves with whether all was written.
   */
  fill(path: string, bytes: number, goesOn: () => boolean): Promise<boolean>;
  /** The bytes that may still be written below a folder. */
  freeBytes(folder: string): number;
  /** The name of the network file system that a folder is on; null: none, or the system does not tell. */
  networkFileSystem(folder: string): string | null;
  /** Takes the lock that a file stands for, which is created; null if another process has it. */
  lock(path: string): Promise<DataLock | null>;
}

/** The mode of the files of a data directory. */
const OWNER_ONLY = 0o600;
const FLAGS: Readonly<Record<OpenMode, string>> = { read: 'r', change: 'r+', append: 'a', replace: 'w' };
/** How much of a file of zeros is written at once, in bytes. */
const PIECE_BYTES = 256 * 1024;

export const systemDisk: Disk = {
  boot,
  makeFolder: (path) => void mkdirSync(path, { recursive: true, mode: 0o700 }),
  names: (folder) => readdirSync(folder),
  exists: existsSync,
  sizeOf: (path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0,
  open: openFile,
  openFolder,
  rename: renameSync,
  remove: (path) => rmSync(path, { force: true }),
  removeLater: (path) => rm(path, { force: true }),
  empty: (path) => truncateSync(path),
  fill,
  freeBytes(folder) {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  },
  networkFileSystem,
  lock,
};

function openFile(path: string, mode: OpenMode): DiskFile {
  const file = openSync(path, FLAGS[mode], OWNER_ONLY);
  const synced: Synced =
    mode === 'append'
      ? { sync: (done) => fdatasync(file, done), syncNow: () => fdatasyncSync(file), close: () => closeSync(file) }
      : syncedWhole(file);
  return {
    ...synced,
    size: () => fstatSync(file).size,
    write: (bytes, from) => writeSync(file, bytes, from),
    read: (into, to, length, from) => readSync(file, into, to, length, from),
    truncate: (size) => ftruncateSync(file, size),
  };
}

/** Syncs also what belongs to a file beside its content. */
function syncedWhole(file: number): Synced {
  return { sync: (done) => fsync(file, done), syncNow: () => fsyncSync(file), close: () => closeSync(file) };
}

function openFolder(path: string): Synced {
  // Windows cannot open a folder. Its file systems record a new name before the call that creates it returns.
  if (process.platform === 'win32') return { sync: (done) => done(null), syncNow() {}, close() {} };
  return syncedWhole(openSync(path, 'r'));
}

async function fill(path: string, bytes: number, goesOn: () => boolean): Promise<boolean> {
  const file = await open(path, 'w', OWNER_ONLY);
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let at = 0; at < bytes;) {
      at += (await file.write(piece, 0, Math.min(piece.length, bytes - at), at)).bytesWritten;
      if (!goesOn()) return false;
    }
    await file.datasync();
    return true;
  } finally {
    await file.close();
  }
}

/** Loads `node:sqlite`, whose locks end with their process. */
async function lock(path: string): Promise<DataLock | null> {
  const sqlite = await import('node:sqlite');
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

function networkFileSystem(folder: string): string | null {
  if (process.platform !== 'linux') return null;
  return NETWORK_FILE_SYSTEMS.get(statfsSync(folder).type >>> 0) ?? null;
}

function boot(): string | null {
  if (process.platform !== 'linux') return null;
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return null;
  }
}
