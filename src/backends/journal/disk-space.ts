/**
 * Manages the space on the disk of a data directory: keeps a reserve file, frees it when the disk is full so that
 * running commands can still end, and watches the free space.
 */
import type { Cancel, Clock, Log } from '../../core/ports.ts';
import type { Disk } from './disk.ts';
import type { DataDirectory } from './files.ts';
import type { RecordRoom } from './room.ts';

/** The size of the reserve in bytes. It is enough for the ends of all commands that may run at once. */
const RESERVE_BYTES = 8 * 1024 * 1024;
/**
 * The free space, besides the reserve, below which the disk counts as full. It leaves room for records that were
 * already decided.
 */
const MARGIN_BYTES = 8 * 1024 * 1024;

type ReserveOptions = Pick<DataDirectory, 'disk' | 'root' | 'reserve'>;

/** A file that reserves disk space. When the disk is full it is removed, so that running commands can still end. */
export class Reserve {
  readonly #disk: Disk;
  readonly #root: string;
  readonly #path: string;
  /** The number of times that the reserve was given up. */
  #givenUp = 0;

  constructor({ disk, root, reserve }: ReserveOptions) {
    this.#disk = disk;
    this.#root = root;
    this.#path = reserve;
  }

  /** Whether the free space, besides the reserve, is too small for anything new. */
  get short(): boolean {
    return this.#free() < MARGIN_BYTES;
  }

  /** Whether the free space is so small that the records of ends may need all of it. */
  get crowded(): boolean {
    return this.#free() < MARGIN_BYTES / 2;
  }

  /**
   * Writes the reserve, unless it exists. Throws the error of the system. Throws ENOSPC if the remaining free space
   * would be short, or if the reserve is given up while it is being written. Only one call may be in progress.
   */
  async make(): Promise<void> {
    const isThere = this.#disk.sizeOf(this.#path) === RESERVE_BYTES;
    if (this.#free() < MARGIN_BYTES + (isThere ? 0 : RESERVE_BYTES)) throw noSpace('the reserve');
    if (isThere) return;
    const unfinished = `${this.#path}.new`;
    const givenUp = this.#givenUp;
    try {
      const isMine = (): boolean => this.#givenUp === givenUp;
      const isWritten = await this.#disk.fill(unfinished, RESERVE_BYTES, isMine);
      if (!isWritten || !isMine()) throw noSpace('the reserve');
      // The check and the rename happen in the same turn, so that `giveUp` always finds the file under one of the two
      // names.
      this.#disk.rename(unfinished, this.#path);
    } catch (error) {
      this.#disk.remove(unfinished);
      throw error;
    }
  }

  /**
   * Frees the space of the reserve, even if the reserve is still being written. Returns false if there was no reserve.
   */
  giveUp(): boolean {
    this.#givenUp++;
    // Each file is truncated before it is removed, because a removed file keeps its space while it is open.
    const found = [this.#path, `${this.#path}.new`].filter((path) => this.#disk.sizeOf(path) > 0);
    for (const path of found) {
      this.#disk.empty(path);
      this.#disk.remove(path);
    }
    return found.length > 0;
  }

  #free(): number {
    return this.#disk.freeBytes(this.#root);
  }
}

/** Returns the error that the system reports when a disk is full. */
export function noSpace(what: string): Error {
  return Object.assign(new Error(`there is no room for ${what}`), { code: 'ENOSPC' });
}

export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

/** The delay between two attempts on a full disk, in milliseconds. */
const RETRY_MS = 1_000;

/** The free space is checked each time that this many bytes have been written. */
const CHECKED_BYTES = 256 * 1024;

type DiskSpaceOptions = {
  readonly directory: ReserveOptions;
  /** Its field `full` is set while the disk is full. */
  readonly room: Pick<RecordRoom, 'full'>;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  /** Called on each attempt to use a full disk again. */
  readonly onRetry: () => void;
};

/** Keeps the reserve, detects that the disk is full, and retries until the disk has room. */
export class DiskSpace {
  readonly #options: DiskSpaceOptions;
  readonly #reserve: Reserve;
  /** The number of bytes written since the free space was last checked. */
  #unchecked = 0;
  #stopRetry: Cancel | null = null;
  /** The attempt to write the reserve that is in progress; null if none is. */
  #refilling: Promise<void> | null = null;
  #stopped = false;

  constructor(options: DiskSpaceOptions) {
    this.#options = options;
    this.#reserve = new Reserve(options.directory);
  }

  /** Whether the disk is full and the records of ends may need all the space that is left. */
  get crowded(): boolean {
    return this.#options.room.full && this.#reserve.crowded;
  }

  /** Counts written bytes, and checks the free space from time to time. */
  written(bytes: number): void {
    this.#unchecked += bytes;
    if (this.#unchecked < CHECKED_BYTES) return;
    this.#unchecked = 0;
    if (this.#reserve.short) this.#beginFull();
  }

  /**
   * Gives up the reserve, because there is no room for records that must be written. Returns false if there was no
   * reserve.
   */
  giveUpReserve(error: unknown): boolean {
    this.#beginFull(error);
    return this.#reserve.giveUp();
  }

  /** Schedules the next attempt, unless one is scheduled already. */
  retryLater(): void {
    this.#stopRetry ??= this.#options.clock.after(RETRY_MS, () => {
      this.#stopRetry = null;
      this.#options.onRetry();
      this.refill();
    });
  }

  /**
   * Writes the reserve, unless it exists. Once it exists, the disk no longer counts as full. Only one attempt runs at a
   * time.
   */
  refill(): void {
    this.#refilling ??= this.#tryRefill().finally(() => (this.#refilling = null));
  }

  /**
   * Cancels a scheduled attempt, gives up a reserve that is being written, and resolves when no attempt is in progress.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#refilling) this.#reserve.giveUp();
    await this.#refilling;
    this.#stopRetry?.();
    this.#stopRetry = null;
  }

  #beginFull(error?: unknown): void {
    const { room, log } = this.#options;
    if (room.full) return;
    room.full = true;
    log.error(
      { ...(error !== undefined && { err: error }) },
      'the disk of the data directory is full: nothing new is admitted',
    );
    this.retryLater();
  }

  async #tryRefill(): Promise<void> {
    const { log, room } = this.#options;
    try {
      await this.#reserve.make();
      if (room.full) log.info({}, 'the disk of the data directory has room again');
      room.full = false;
    } catch (error) {
      if (this.#stopped) return;
      if (isFull(error)) this.#beginFull(error);
      else if (!room.full) log.warn({ err: error }, 'the reserve of the data directory cannot be written');
      if (room.full) this.retryLater();
    }
  }
}
