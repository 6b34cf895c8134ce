/**
 * The room on the disk of a data directory: a reserve that is given up when the disk is full, so that what runs can
 * still be ended, and the watch over what is left.
 */
import type { Cancel, Clock, Log } from '../../core/ports.ts';
import type { Disk } from './disk.ts';
import type { DataDirectory } from './files.ts';
import type { RecordRoom } from './room.ts';

/** The size of the reserve: enough for the ends of all commands that run. */
const RESERVE_BYTES = 8 * 1024 * 1024;
/** The room beside the reserve that is left for what was decided when it is noticed that the disk is full, in bytes. */
const MARGIN_BYTES = 8 * 1024 * 1024;

type ReserveOptions = Pick<DataDirectory, 'disk' | 'root' | 'reserve'>;

/** Disk space that is given up when the disk is full, so that what runs can still be ended. */
export class Reserve {
  readonly #disk: Disk;
  readonly #root: string;
  readonly #path: string;
  /** How often the reserve was given up. */
  #givenUp = 0;

  constructor({ disk, root, reserve }: ReserveOptions) {
    this.#disk = disk;
    this.#root = root;
    this.#path = reserve;
  }

  /** Whether there is so little room beside the reserve that nothing may be added. */
  get short(): boolean {
    return this.#free() < MARGIN_BYTES;
  }

  /** Whether there is so little room that ends may need all of it. */
  get crowded(): boolean {
    return this.#free() < MARGIN_BYTES / 2;
  }

  /**
   * Writes the reserve, unless it is there. Throws the error of the system; ENOSPC too if the room beside it is short,
   * or if the reserve is given up before it is written. Only one call may be in progress.
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
      // In the same turn as the check, so that `giveUp` finds the reserve under one of its names.
      this.#disk.rename(unfinished, this.#path);
    } catch (error) {
      this.#disk.remove(unfinished);
      throw error;
    }
  }

  /** Frees the space of the reserve, also of one that is being written. Returns false if there was none. */
  giveUp(): boolean {
    this.#givenUp++;
    // Truncated before they are removed, because an open file keeps its space.
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

/** Returns the error that the system gives when a disk is full. */
export function noSpace(what: string): Error {
  return Object.assign(new Error(`there is no room for ${what}`), { code: 'ENOSPC' });
}

export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

/** How often a full disk is tried again, in milliseconds. */
const RETRY_MS = 1_000;

/** After how many bytes the free room of the disk is looked at. */
const CHECKED_BYTES = 256 * 1024;

type DiskSpaceOptions = {
  readonly directory: ReserveOptions;
  /** Learns whether the disk is full. */
  readonly room: Pick<RecordRoom, 'full'>;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  /** Called before a full disk is tried again. */
  readonly onRetry: () => void;
};

/** Keeps the reserve, notices that the disk is full, and tries again until it has room. */
export class DiskSpace {
  readonly #options: DiskSpaceOptions;
  readonly #reserve: Reserve;
  /** The bytes since the free room of the disk was looked at. */
  #unchecked = 0;
  #stopRetry: Cancel | null = null;
  /** The attempt to write the reserve that is in progress. */
  #refilling: Promise<void> | null = null;
  #stopped = false;

  constructor(options: DiskSpaceOptions) {
    this.#options = options;
    this.#reserve = new Reserve(options.directory);
  }

  /** Whether ends may need what is left of a full disk. */
  get crowded(): boolean {
    return this.#options.room.full && this.#reserve.crowded;
  }

  /** Counts bytes that were written, and looks from time to time at what is left. */
  written(bytes: number): void {
    this.#unchecked += bytes;
    if (this.#unchecked < CHECKED_BYTES) return;
    this.#unchecked = 0;
    if (this.#reserve.short) this.#beginFull();
  }

  /** Gives the reserve up, because the disk has no room for what must be written. Returns false if there was none. */
  giveUpReserve(error: unknown): boolean {
    this.#beginFull(error);
    return this.#reserve.giveUp();
  }

  /** Tries again in a second, unless that is planned already. */
  retryLater(): void {
    this.#stopRetry ??= this.#options.clock.after(RETRY_MS, () => {
      this.#stopRetry = null;
      this.#options.onRetry();
      this.refill();
    });
  }

  /** Writes the reserve, if it is not there. Admits again once it is. One attempt at a time. */
  refill(): void {
    this.#refilling ??= this.#tryRefill().finally(() => (this.#refilling = null));
  }

  /** Ends a refill that is in progress, and takes a planned attempt back. */
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
