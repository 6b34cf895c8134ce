/**
 * The disk of a data directory as a port: all that a journal asks of the file system, with the implementation for the
 * real system. Simulations implement a disk that loses power, is slow, is full, or fails.
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

/** An object whose changes can be made to survive a power loss. */
export interface Synced {
  /**
   * Calls `done` once all earlier changes are on the disk. If it gets an error, the changes may or may not be there.
   */
  sync(done: (error: Error | null) => void): void;
  /**
   * Returns once all earlier changes are on the disk. Throws the error of the system; then the changes may or may not
   * be there.
   */
  syncNow(): void;
  close(): void;
}

/**
 * An open file. Written data that was not synced survives the end of the process, but a power loss may remove all or
 * part of it.
 */
export interface DiskFile extends Synced {
  /** The length in bytes. */
  size(): number;
  /**
   * Appends the bytes from index `from` on to the file. Returns how many bytes were written, which may be fewer. Throws
   * the error of the system, such as ENOSPC; then no byte was written.
   */
  write(bytes: Uint8Array, from: number): number;
  /**
   * Reads at most `length` bytes, from offset `from` of the file to offset `to` of the buffer. Returns how many bytes
   * were read; 0 at the end of the file.
   */
  read(into: Uint8Array, to: number, length: number, from: number): number;
  /** Cuts the file to this length. */
  truncate(size: number): void;
}

/**
 * How a file is opened. `read`: for reading; the file must exist. `change`: for truncating; the file must exist.
 * `append`: for appending; created if it does not exist. `replace`: for writing; emptied if it exists.
 */
export type OpenMode = 'read' | 'change' | 'append' | 'replace';

/** The lock of a directory. It is held until `release` is called or the process ends for any reason. */
export type DataLock = { release(): void };

/**
 * The files of one process. Paths are paths of the system. Each method throws the error of the system. New files and
 * folders are accessible to the current user only. After a power loss, created, renamed or removed names may be as they
 * were before, unless their folder was synced.
 */
export interface Disk {
  /**
   * The id of the current boot of the system. It changes with each power loss. Null if the system has no such id or
   * does not reveal it.
   */
  boot(): string | null;
  /** Creates a folder and its parents, unless they exist. */
  makeFolder(path: string): void;
  /** The names in a folder, in any order. */
  names(folder: string): readonly string[];
  exists(path: string): boolean;
  /** The size of a file in bytes; 0 if it does not exist. */
  sizeOf(path: string): number;
  open(path: string, mode: OpenMode): DiskFile;
  /** Opens a folder, so that changes of the names in it can be synced. */
  openFolder(path: string): Synced;
  /**
   * Renames a file, and replaces an existing file of the new name. The replacement is atomic: one of the two files
   * exists under the new name at all times.
   */
  rename(from: string, to: string): void;
  /** Removes a file, if it exists. */
  remove(path: string): void;
  /** Removes a file, if it exists, without blocking the event loop. */
  removeLater(path: string): Promise<void>;
  /** Empties a file, which frees its space even while the file is open. */
  empty(path: string): void;
  /**
   * Writes a file of `bytes` zeros and syncs it, without blocking the event loop. Stops once `goesOn` returns false.
   * Resolves with whether the whole file was written.
   */
  fill(path: string, bytes: number, goesOn: () => boolean): Promise<boolean>;
  /** The free space of the disk that contains a folder, in bytes. */
  freeBytes(folder: string): number;
  /**
   * The name of the network file system that contains a folder; null if it is a local one, or the system does not tell.
   */
  networkFileSystem(folder: string): string | null;
  /** Creates a lock file and locks it. Returns null if another process holds the lock. */
  lock(path: string): Promise<DataLock | null>;
}

/** The mode of the files of a data directory. */
const OWNER_ONLY = 0o600;
const FLAGS: Readonly<Record<OpenMode, string>> = { read: 'r', change: 'r+', append: 'a', replace: 'w' };
/** How many zeros are written at once, in bytes. */
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

/** Syncs content and metadata of a file (fsync rather than fdatasync). */
function syncedWhole(file: number): Synced {
  return { sync: (done) => fsync(file, done), syncNow: () => fsyncSync(file), close: () => closeSync(file) };
}

function openFolder(path: string): Synced {
  // Windows cannot open a folder, so there is nothing to sync. Its file systems record a new name before the call that
  // creates it returns.
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

/** Loads `node:sqlite` and locks the file with it, because such a lock ends with its process. */
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

/** The types of network file systems, by the number that the system reports (statfs(2)). */
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
