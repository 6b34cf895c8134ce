/** The files of a data directory: their names, the lock and the key. */
import { hkdfSync } from 'node:crypto';
import {
  closeSync,
  fsync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import type { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import type { Crypto } from '../../core/ports.ts';
import { OWNER_ONLY, type BatchFile } from './batches.ts';

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
  keys(random: Pick<Crypto, 'randomToken'>): (purpose: string) => Uint8Array {
    const path = join(this.root, 'key');
    const key = readIfThere(path) ?? this.#makeKey(path, random);
    return (purpose) => new Uint8Array(hkdfSync('sha256', key, '', `callboard ${purpose}`, 32));
  }

  #makeKey(path: string, random: Pick<Crypto, 'randomToken'>): Buffer {
    const key = Buffer.from(random.randomToken(), 'base64url');
    writeWhole(path, key);
    this.sync();
    return key;
  }
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
