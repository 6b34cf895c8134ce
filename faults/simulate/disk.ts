/**
 * A simulated disk for a data directory. A kill of a process leaves what was written. A loss of power leaves what was
 * synced, and of everything else what the seed decides: nothing, a part, or a part with a hole. The disk can be slow,
 * full, or fail.
 */
import type { DataLock, Disk, DiskFile, OpenMode, Synced } from '../../src/backends/journal/disk.ts';
import { between } from '../lib/random.ts';
import type { SimulatedProcess } from './process.ts';
import type { Simulation } from './virtual.ts';

/** How long a sync, or the removal of a file, takes on a disk that is not slow, in milliseconds. */
const SYNC_MS = 4;
/** How much of a file of zeros is written before other work goes on, in bytes. */
const PIECE_BYTES = 2 * 1024 * 1024;
/** How long a piece takes, in milliseconds. */
const PIECE_MS = 40;
/** The part of the writes that write less than they were given, as the system may. */
const SHORT_WRITES = 0.01;

type DiskOptions = { readonly bytes: number };

/** What a file has. Behind `content` there are zeros up to `size`. */
type Content = { readonly content: Buffer; readonly size: number };

/** A file, whatever its name is. */
class Inode {
  content: Buffer;
  size: number;
  /** What a loss of power leaves in any case, unless the file was cut below it since. */
  durable: Content;
  /** The least size that the file had since then. */
  #floor: number;
  /** The writes since then: when, and up to where. */
  #writes: { readonly at: number; readonly end: number }[] = [];
  /** How many syncs have begun, and the number of the last one of those that have ended. */
  #syncs = 0;
  #synced = 0;

  constructor({ content, size }: Content = { content: Buffer.alloc(0), size: 0 }) {
    [this.content, this.size] = [content, size];
    this.durable = { content, size };
    this.#floor = size;
  }

  append(bytes: Uint8Array, at: number): void {
    const end = this.size + bytes.length;
    if (end > this.content.length) {
      const grown = Buffer.alloc(Math.max(end, 2 * this.content.length));
      this.content.copy(grown, 0, 0, this.size);
      this.content = grown;
    }
    this.content.set(bytes, this.size);
    this.#grow(end, at);
  }

  /** Appends zeros. */
  extend(bytes: number, at: number): void {
    this.#grow(this.size + bytes, at);
  }

  truncate(size: number, at: number): void {
    // What the disk has is not overwritten by what follows.
    this.content = Buffer.from(this.content.subarray(0, size));
    this.#writes = this.#writes.map((write) => ({ at: write.at, end: Math.min(write.end, size) }));
    this.size = size;
    this.#floor = Math.min(this.#floor, size);
    this.#writes.push({ at, end: size });
  }

  /** Returns what is to be called when a sync that begins now has ended. */
  beginSync(): () => void {
    const [content, size, began] = [this.content, this.size, [...this.#writes]];
    const number = ++this.#syncs;
    return () => {
      // A file that was cut meanwhile may have either form. If a sync that began later has ended, the disk has more than this one wrote.
      if (this.size < size || number < this.#synced) return;
      this.#synced = number;
      const done = new Set(began);
      this.#writes = this.#writes.filter((write) => !done.has(write));
      this.durable = { content, size };
      this.#floor = size;
    };
  }

  /** Since when something was written that a loss of power may take; null: nothing was. */
  get unsyncedSince(): number | null {
    return this.#writes[0]?.at ?? null;
  }

  /** Keeps what the disk has: what was synced, and a part of the rest. Returns whether anything is another than before. */
  lose(random: () => number): boolean {
    const before = this.content.subarray(0, this.size);
    this.#become(this.#kept(random));
    return !before.equals(this.content.subarray(0, this.size));
  }

  #kept(random: () => number): Content {
    const floor = Math.min(this.#floor, this.durable.size);
    if (floor < this.durable.size && random() < 0.5) return this.durable;
    const kept = random();
    const size = kept < 0.25 ? this.size : kept < 0.5 ? floor : between(random, floor, this.size);
    const content = Buffer.from(this.content.subarray(0, size));
    if (size > floor && random() < 0.3) {
      const from = between(random, floor, size);
      const to = between(random, from, size);
      content.fill(0, Math.min(from, content.length), Math.min(to, content.length));
    }
    return { content, size };
  }

  copy(): Inode {
    return new Inode({ content: Buffer.from(this.content), size: this.size });
  }

  #become({ content, size }: Content): void {
    [this.content, this.size, this.#floor, this.#writes] = [Buffer.from(content), size, size, []];
    this.durable = { content: this.content, size };
  }

  #grow(end: number, at: number): void {
    this.size = end;
    this.#writes.push({ at, end });
  }
}

type Names = Map<string, Inode>;
/** A change of names, which happens whole or not at all. `path`: the name that there is since; null: one is gone. */
type Change = { readonly at: number; readonly path: string | null; readonly apply: (names: Names) => void };

/** What fails. `sync`: each sync; afterwards what it was for may be there or not. `write`: each write. */
type DiskFault = 'sync' | 'write';

export class SimulatedDisk {
  /** The id of this boot. */
  boot = 1;
  /** How much longer a write or a sync may take, in milliseconds. */
  slowMs = 0;
  fault: DiskFault | null = null;
  /** Called when a sync fails. */
  onFailedSync: () => void = () => {};
  /** Called when a failed sync has lost something of what was written to a file since this time. */
  onLost: (path: string, since: number) => void = () => {};
  readonly #simulation: Simulation;
  readonly #bytes: number;
  #names: Names = new Map();
  /** The names that a loss of power leaves, and the changes that it may undo. */
  #durableNames: Names = new Map();
  #changes: Change[] = [];
  /** The bytes that others take. */
  #others = 0;
  /** The files of which syncs have failed, so that a part of what was not synced is dropped with the process. */
  readonly #failed = new Map<Inode, string>();
  #locks = new Map<string, SimulatedProcess | null>();
  /** What happens after so many operations. */
  #planned: { left: number; waits: boolean; readonly run: () => void } | null = null;

  constructor(simulation: Simulation, { bytes }: DiskOptions) {
    this.#simulation = simulation;
    this.#bytes = bytes;
  }

  get #random(): () => number {
    return this.#simulation.random;
  }

  get free(): number {
    const used = this.#names.values().reduce((sum, { size }) => sum + size, 0);
    return Math.max(0, this.#bytes - used - this.#others);
  }

  /** Others fill the disk, but for this many bytes. Infinity: they take nothing. */
  leave(bytes: number): void {
    this.#others = 0;
    this.#others = Math.max(0, this.free - bytes);
  }

  /**
   * Calls `run` before an operation, after so many of them, from now on or from the next creation of a file on. If it
   * ends the process, a write is done in part.
   */
  afterOperations(left: number, run: () => void, from: 'now' | 'creation' = 'now'): void {
    this.#planned = { left, waits: from === 'creation', run };
  }

  /** Everything that the disk does not have yet is lost, as far as the seed decides. No process may use it before. */
  losePower(): void {
    this.boot++;
    this.#planned = null;
    const kept = between(this.#random, 0, this.#changes.length);
    for (const { apply } of this.#changes.slice(0, kept)) apply(this.#durableNames);
    this.#changes = [];
    this.#failed.clear();
    this.#names = new Map(this.#durableNames);
    for (const inode of this.#names.values()) inode.lose(this.#random);
  }

  /** Since when something was done with files of these names that a loss of power may take; null: nothing was. */
  unsyncedSince(isMeant: (path: string) => boolean): number | null {
    const since = [...this.#names].map(([path, inode]) => (isMeant(path) ? inode.unsyncedSince : null));
    const change = this.#changes.find(({ path }) => path !== null && isMeant(path));
    const times = [...since, change?.at ?? null].filter((time) => time !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** What another process would find now, on a disk of its own. */
  copy(): SimulatedDisk {
    const copy = new SimulatedDisk(this.#simulation, { bytes: Infinity });
    for (const [path, inode] of this.#names) copy.#names.set(path, inode.copy());
    copy.boot = this.boot;
    return copy;
  }

  /** The disk as a process has it. Null: a process that waits for nothing. */
  of(process: SimulatedProcess | null): Disk {
    const { boot } = this;
    if (process) this.#dropFailed();
    return {
      boot: () => `boot-${boot}`,
      makeFolder() {},
      names: (folder) => [...this.#names.keys()].map((path) => path.slice(folder.length + 1)),
      exists: (path) => this.#names.has(path),
      sizeOf: (path) => this.#names.get(path)?.size ?? 0,
      open: (path, mode) => this.#open(process, path, mode),
      openFolder: () => this.#folder(process),
      rename: (from, to) => {
        this.#operate(process);
        const inode = this.#find(from);
        this.#change(to, (names) => {
          names.delete(from);
          names.set(to, inode);
        });
      },
      remove: (path) => {
        this.#operate(process);
        this.#remove(path);
      },
      removeLater: (path) => this.#later(process, SYNC_MS, () => this.#remove(path)),
      empty: (path) => {
        this.#operate(process);
        this.#find(path).truncate(0, this.#simulation.now);
      },
      fill: (path, bytes, goesOn) => this.#fill(process, { path, bytes, goesOn }),
      freeBytes: () => this.free,
      networkFileSystem: () => null,
      lock: async (path) => this.#lock(process, path),
    };
  }

  // Operations.

  /** Begins an operation of a process, unless the process is gone, or ends here. `before`: what it has done by then. */
  #operate(process: SimulatedProcess | null, before: () => void = () => {}): void {
    if (!process) return;
    if (this.#planned && !this.#planned.waits && this.#planned.left-- <= 0) {
      const { run } = this.#planned;
      this.#planned = null;
      run();
      if (process.isDead) before();
    }
    if (process.isDead) throw new Error('the process has ended');
  }

  #open(process: SimulatedProcess | null, path: string, mode: OpenMode): DiskFile {
    this.#operate(process);
    if (mode === 'replace' || (mode === 'append' && !this.#names.has(path))) {
      const made = new Inode();
      this.#change(path, (names) => names.set(path, made));
      if (this.#planned) this.#planned.waits = false;
    }
    const inode = this.#find(path);
    return {
      size: () => inode.size,
      write: (bytes, from) => this.#write(process, inode, bytes.subarray(from)),
      read: (into, to, length, from) => {
        const part = inode.content.subarray(from, Math.min(from + length, inode.size));
        const zeros = Math.max(0, Math.min(length, inode.size - from) - part.length);
        into.set(part, to);
        into.fill(0, to + part.length, to + part.length + zeros);
        return part.length + zeros;
      },
      truncate: (size) => {
        this.#operate(process);
        inode.truncate(size, this.#simulation.now);
      },
      ...this.#synced(
        process,
        () => inode.beginSync(),
        () => this.#failed.set(inode, path),
      ),
    };
  }

  /** A folder is synced as a file is: the changes of names before the sync are durable then. */
  #folder(process: SimulatedProcess | null): Synced {
    const begin = () => {
      const begun = new Set(this.#changes);
      return () => {
        for (const change of this.#changes) if (begun.has(change)) change.apply(this.#durableNames);
        this.#changes = this.#changes.filter((change) => !begun.has(change));
      };
    };
    return this.#synced(process, begin, () => {});
  }

  /** `begin`: begins a sync, and returns what ends it. `lose`: what was to be synced is lost. */
  #synced(process: SimulatedProcess | null, begin: () => () => void, lose: () => void): Synced {
    const end = (finish: () => void): Error | null => {
      if (this.fault !== 'sync') {
        finish();
        return null;
      }
      this.onFailedSync();
      const what = this.#random();
      if (what < 0.34) finish();
      else if (what < 0.67) lose();
      return failed();
    };
    return {
      sync: (done) => {
        this.#operate(process);
        const { boot } = this;
        const finish = begin();
        // The system ends a sync whose process is gone.
        this.#simulation.after(this.#time(SYNC_MS), 'a sync ends', () => {
          if (this.boot !== boot) return;
          const error = end(finish);
          process?.after(0, 'synced', () => done(error));
        });
      },
      syncNow: () => {
        this.#operate(process);
        process?.block(this.#time(SYNC_MS));
        const error = end(begin());
        if (error) throw error;
      },
      close() {},
    };
  }

  #write(process: SimulatedProcess | null, inode: Inode, bytes: Uint8Array): number {
    const { now } = this.#simulation;
    const part = (): number => between(this.#random, 0, Math.min(bytes.length, this.free));
    this.#operate(process, () => inode.append(bytes.subarray(0, part()), now));
    if (this.slowMs > 0) process?.block(this.#time(0));
    if (this.fault === 'write') throw failed();
    if (this.free === 0 && bytes.length > 0) throw full();
    const length = this.#random() < SHORT_WRITES ? Math.max(1, part()) : Math.min(bytes.length, this.free);
    inode.append(bytes.subarray(0, length), now);
    return Math.min(length, bytes.length);
  }

  async #fill(
    process: SimulatedProcess | null,
    { path, bytes, goesOn }: { readonly path: string; readonly bytes: number; readonly goesOn: () => boolean },
  ): Promise<boolean> {
    await this.#later(process, 0, () => {
      const made = new Inode();
      this.#change(path, (names) => names.set(path, made));
    });
    const inode = this.#find(path);
    while (inode.size < bytes) {
      await this.#later(process, PIECE_MS, () => {
        if (this.free === 0) throw full();
        inode.extend(Math.min(PIECE_BYTES, bytes - inode.size, this.free), this.#simulation.now);
      });
      if (!goesOn()) return false;
    }
    const { sync } = this.#synced(
      process,
      () => inode.beginSync(),
      () => {},
    );
    await new Promise<void>((resolve, reject) => sync((error) => (error ? reject(error) : resolve())));
    return true;
  }

  #lock(process: SimulatedProcess | null, path: string): DataLock | null {
    const holder = this.#locks.get(path);
    if (holder && !holder.isDead) return null;
    this.#locks.set(path, process);
    return { release: () => void (this.#locks.get(path) === process && this.#locks.delete(path)) };
  }

  /** Does something after a while. Never settles if the process has ended before. */
  #later(process: SimulatedProcess | null, ms: number, run: () => void): Promise<void> {
    this.#operate(process);
    return new Promise((resolve, reject) => {
      process?.after(this.#time(ms), 'disk', () => {
        try {
          run();
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #lose(path: string, inode: Inode): void {
    const since = inode.unsyncedSince;
    if (inode.lose(this.#random) && since !== null) this.onLost(path, since);
  }

  /** Drops what syncs that failed were for. The process for which they failed still saw it. */
  #dropFailed(): void {
    for (const [inode, path] of this.#failed) this.#lose(path, inode);
    this.#failed.clear();
  }

  #remove(path: string): void {
    if (this.#names.has(path)) this.#change(null, (names) => names.delete(path));
  }

  #change(path: string | null, apply: (names: Names) => void): void {
    apply(this.#names);
    this.#changes.push({ at: this.#simulation.now, path, apply });
  }

  #find(path: string): Inode {
    const inode = this.#names.get(path);
    if (!inode) throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
    return inode;
  }

  #time(ms: number): number {
    return between(this.#random, 0, ms) + between(this.#random, 0, this.slowMs);
  }
}

function full(): Error {
  return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
}

function failed(): Error {
  return Object.assign(new Error('input/output error'), { code: 'EIO' });
}
