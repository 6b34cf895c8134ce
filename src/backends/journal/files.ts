/** The files of a data directory: their names and numbers, the secret key, and markers of lost or unsynced data. */
import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import type { Crypto } from '../../core/ports.ts';
import { systemDisk, type DataLock, type Disk, type Synced } from './disk.ts';

/**
 * The numbers of the journals and snapshots of a directory. A snapshot has the number of the journal that follows it.
 */
export type Numbered = { readonly journals: readonly number[]; readonly snapshots: readonly number[] };

/** The files that a start reads, as paths. */
type ToRead = {
  /** The newest snapshot; null if there is none. */
  readonly snapshot: string | null;
  /** The journals that follow it, in order. */
  readonly journals: readonly string[];
  /** The first journal that is missing although the snapshot or a later journal exists; null if none is missing. */
  readonly missing: string | null;
  /** The number of the snapshot, or of the first journal. */
  readonly from: number;
};

/** The paths of a data directory. */
export class DataDirectory {
  readonly root: string;
  readonly disk: Disk;

  /** Creates the directory if it does not exist. Throws the error of the system. */
  constructor(root: string, disk = systemDisk) {
    this.root = root;
    this.disk = disk;
    disk.makeFolder(root);
  }

  /** Takes the lock of the directory. Returns null if another process holds it. */
  lock(): Promise<DataLock | null> {
    return this.disk.lock(join(this.root, 'lock'));
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

  /** The default file of the audit. */
  get audit(): string {
    return join(this.root, 'audit.jsonl');
  }

  /** The default folder of large payloads. */
  get spill(): string {
    return join(this.root, 'spill');
  }

  numbered(): Numbered {
    const names = this.disk.names(this.root);
    const numbers = (kind: string): number[] =>
      names
        .map((name) => new RegExp(`^${kind}-(\\d{8})$`).exec(name)?.[1])
        .filter((digits) => digits !== undefined)
        .map(Number)
        .sort((a, b) => a - b);
    return { journals: numbers('journal'), snapshots: numbers('snapshot') };
  }

  /**
   * A marker file. It exists if records were given up: after damage, and in a backup, which lacks all later records.
   */
  get loss(): string {
    return join(this.root, 'loss');
  }

  /**
   * A marker file. It exists if a sync failed: then data that was not synced may be missing even if the system was not
   * restarted, because the system may have dropped it.
   */
  get unsynced(): string {
    return join(this.root, 'unsynced');
  }

  /** Runs syncs. If one fails, creates the marker `unsynced` for the next start, and throws the error of the system. */
  syncing(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.noteFailedSync();
      throw error;
    }
  }

  /** Creates the marker `unsynced`, if the disk still allows that. */
  noteFailedSync(): void {
    try {
      this.disk.open(this.unsynced, 'append').close();
      this.sync();
    } catch {
      // The failed sync itself is logged and ends the process.
    }
  }

  /**
   * Whether data that was not synced may be missing. `before`: the boot of the system under which the files were last
   * written. `now`: the current boot.
   */
  mayMissUnsynced(before: string | null | undefined, now: string | null): boolean {
    return now === null || before !== now || this.disk.exists(this.unsynced);
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
    };
  }

  /**
   * Removes the snapshots and journals with lower numbers, without blocking the event loop: removing a large file takes
   * long.
   */
  async removeBefore(number: number): Promise<void> {
    const { journals, snapshots } = this.numbered();
    for (const old of journals) if (old < number) await this.disk.removeLater(this.journal(old));
    for (const old of snapshots) if (old < number) await this.disk.removeLater(this.snapshot(old));
  }

  /** Removes the unfinished files of an interrupted snapshot. */
  removeUnfinished(): void {
    for (const name of this.disk.names(this.root)) if (name.endsWith('.new')) this.disk.remove(join(this.root, name));
  }

  /** The bytes of all journals and snapshots. */
  size(): number {
    const { journals, snapshots } = this.numbered();
    const paths = [...journals.map((n) => this.journal(n)), ...snapshots.map((n) => this.snapshot(n))];
    // `sizeOf` returns 0 for a file that a snapshot has removed since it was listed.
    return paths.reduce((sum, path) => sum + this.disk.sizeOf(path), 0);
  }

  /** Makes the names of new files survive a power loss. */
  sync(): void {
    const names = this.names();
    names.syncNow();
    names.close();
  }

  /** The folder, opened so that the names of its files can be synced. */
  names(): Synced {
    return this.disk.openFolder(this.root);
  }

  /**
   * Returns a function that derives a secret for a purpose. Secrets stay the same for the lifetime of the directory.
   */
  keys(random: Pick<Crypto, 'randomToken'>): (purpose: string) => Uint8Array {
    const path = join(this.root, 'key');
    const key = this.#readIfThere(path) ?? this.#makeKey(path, random);
    return (purpose) => new Uint8Array(hkdfSync('sha256', key, '', `callboard ${purpose}`, 32));
  }

  #makeKey(path: string, random: Pick<Crypto, 'randomToken'>): Buffer {
    const key = Buffer.from(random.randomToken(), 'base64url');
    this.#writeWhole(path, key);
    this.sync();
    return key;
  }

  #readIfThere(path: string): Buffer | null {
    if (!this.disk.exists(path)) return null;
    const file = this.disk.open(path, 'read');
    const content = Buffer.alloc(file.size());
    for (let at = 0; at < content.length;) {
      const more = file.read(content, at, content.length - at, at);
      if (more === 0) break;
      at += more;
    }
    file.close();
    return content;
  }

  /**
   * Writes a file under a temporary name and renames it, so that it either exists with its whole content or not at all.
   */
  #writeWhole(path: string, content: Buffer): void {
    const made = this.disk.open(`${path}.new`, 'replace');
    for (let at = 0; at < content.length;) at += made.write(content, at);
    made.syncNow();
    made.close();
    this.disk.rename(`${path}.new`, path);
  }
}
