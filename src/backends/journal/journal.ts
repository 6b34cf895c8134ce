/**
 * Writes the records of acts, all those of a turn of the event loop together, and lets nothing leave the process before
 * what it depends on is written.
 */
import { rmSync } from 'node:fs';
import type { Cancel, Clock, Log } from '../../core/ports.ts';
import { Reserve, openBatchFile, type BatchFile, type DataDirectory, type OpenFile } from './files.ts';
import type { ActWriter } from './records.ts';

/**
 * When records are synced to the disk. A number: at most that many milliseconds after they were written, while nothing
 * waits for it. `always`: before anything that depends on them leaves the process. `off`: when the system does it.
 */
export type DataSync = number | 'always' | 'off';

export type JournalOptions = {
  readonly directory: DataDirectory;
  /** The records to write. Their `onFirst` calls `wake`. */
  readonly records: Pick<ActWriter, 'take' | 'beginFile'>;
  readonly sync: DataSync;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  readonly openFile?: OpenFile;
  /** Calls `run` at the end of the turn of the event loop. */
  readonly atTurnEnd?: (run: () => void) => void;
  /** Called once, if records can neither be written nor given up. The process must end. */
  readonly onFailure: (error: Error) => void;
};

/** How often a full disk is tried again, in milliseconds. */
const RETRY_MS = 1_000;

type Synced = Pick<BatchFile, 'sync' | 'syncNow' | 'close'>;

/** What waits until the records up to a number are on the disk. */
type Waiting = { readonly after: number; readonly run: () => void };

export class Journal {
  readonly #options: JournalOptions;
  readonly #openFile: OpenFile;
  readonly #atTurnEnd: (run: () => void) => void;
  readonly #reserve: Reserve;
  #file: BatchFile;
  #number: number;
  /** Files before the current one, and the names of files, that are not synced yet. */
  #unsynced: Synced[] = [];
  #waiting: Waiting[] = [];
  /** The numbers of the batches that were written, and that are on the disk. */
  #written = 0;
  #synced = 0;
  #syncing = false;
  #stopSync: Cancel | null = null;
  #full = false;
  #stopRetry: Cancel | null = null;
  /** The attempt to write the reserve that is in progress. */
  #refilling: Promise<void> | null = null;
  #closing = false;
  /** What waits for the disk, whatever DATA_SYNC is. */
  #awaitingDisk: Waiting[] = [];
  /** Called when no sync is in progress any more. */
  #onIdle: (() => void) | null = null;
  /** Whether records can be written. A journal that has failed lets nothing leave the process; a closed one, all. */
  #state: 'open' | 'closed' | 'failed' = 'open';
  #pending = false;

  /** Opens the journal of this number. `head`: the text of its first record. */
  constructor(number: number, head: string, options: JournalOptions) {
    this.#options = options;
    this.#openFile = options.openFile ?? openBatchFile;
    this.#atTurnEnd = options.atTurnEnd ?? setImmediate;
    this.#reserve = new Reserve(options.directory);
    this.#number = number;
    this.#file = this.#openFile(options.directory.journal(number));
    this.#appendOrGiveUpReserve(head);
    options.records.beginFile();
    options.directory.sync();
    this.#refill();
  }

  get number(): number {
    return this.#number;
  }

  /** The bytes of the current file. */
  get size(): number {
    return this.#file.size;
  }

  /** Whether the disk is full: only what must be recorded still may be. */
  get full(): boolean {
    return this.#full;
  }

  /** Calls `run` once everything that was decided so far is recorded, at once if it is. Keeps the order of calls. */
  onRecord(run: () => void): void {
    if (this.#state === 'failed') return;
    if (this.#state === 'closed') return run();
    const settled = this.#options.sync !== 'always' || this.#synced === this.#written;
    if (!this.#pending && this.#waiting.length === 0 && settled) run();
    else this.#waiting.push({ after: this.#written + (this.#pending ? 1 : 0), run });
  }

  /** Tells that there are records to write at the end of this turn of the event loop. */
  wake(): void {
    this.#pending = true;
    this.#atTurnEnd(() => this.flush());
  }

  /** Writes what was decided since the last call. */
  flush(): void {
    if (this.#state !== 'open') return;
    const text = this.#options.records.take();
    this.#pending = false;
    if (text !== '' && !this.#append(text)) return;
    this.#written++;
    if (text !== '') this.#planSync();
    else if (this.#synced === this.#written - 1) this.#synced = this.#written;
    this.#release();
  }

  /** Writes what was decided since the last call, and returns when it is on the disk. Stops the event loop. */
  syncNow(): void {
    this.flush();
    this.#file.syncNow();
    this.#synced = this.#written;
    this.#release();
  }

  /**
   * Resolves once everything that was decided so far is on the disk, whatever DATA_SYNC is. Does not resolve if the
   * journal fails, which ends the process.
   */
  synced(): Promise<void> {
    this.flush();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaitingDisk.push({ after: this.#written, run: resolve });
    this.#startSync();
    return promise;
  }

  /** Closes the current file and begins the next one. `head`: the text of its first record. Returns its number. */
  rotate(head: string): number {
    this.flush();
    const path = this.#options.directory.journal(this.#number + 1);
    const next = this.#openFile(path);
    try {
      next.append(head);
    } catch (error) {
      next.close();
      // The current journal goes on, and no other may follow it.
      rmSync(path, { force: true });
      throw error;
    }
    this.#unsynced.push(this.#file, this.#options.directory.names());
    this.#file = next;
    this.#number++;
    this.#options.records.beginFile();
    this.#startSync();
    return this.#number;
  }

  /** Writes and syncs what is left, and closes the files. */
  async close(): Promise<void> {
    this.#closing = true;
    this.flush();
    this.#stopSync?.();
    await this.#stopRefilling();
    if (this.#syncing) await new Promise<void>((idle) => (this.#onIdle = idle));
    if (this.#state === 'failed') return;
    for (const file of [...this.#unsynced, this.#file]) {
      file.syncNow();
      file.close();
    }
    this.#synced = this.#written;
    this.#release();
    this.#state = 'closed';
  }

  /** Returns false if the journal has failed. */
  #append(text: string): boolean {
    try {
      this.#appendOrGiveUpReserve(text);
      return true;
    } catch (error) {
      return this.#fail(error as Error);
    }
  }

  /** Appends a batch; if the disk is full, into the room of the reserve. Throws if there is no room at all. */
  #appendOrGiveUpReserve(text: string): void {
    try {
      this.#file.append(text);
    } catch (error) {
      if (!isFull(error) || !this.#reserve.giveUp()) throw error;
      this.#beginFull(error);
      this.#file.append(text);
    }
  }

  #beginFull(error: unknown): void {
    if (this.#full) return;
    this.#full = true;
    this.#options.log.error({ err: error }, 'the disk of the data directory is full: nothing new is admitted');
    this.#refillLater();
  }

  #refillLater(): void {
    this.#stopRetry ??= this.#options.clock.after(RETRY_MS, () => {
      this.#stopRetry = null;
      this.#refill();
    });
  }

  /** Writes the reserve, if it is not there. Admits again once it is. One attempt at a time. */
  #refill(): void {
    this.#refilling ??= this.#tryRefill().finally(() => (this.#refilling = null));
  }

  async #tryRefill(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#reserve.make();
      if (this.#full) log.info({}, 'the disk of the data directory has room again');
      this.#full = false;
    } catch (error) {
      if (this.#closing || this.#state !== 'open') return;
      if (isFull(error)) this.#beginFull(error);
      else if (!this.#full) log.warn({ err: error }, 'the reserve of the data directory cannot be written');
      if (this.#full) this.#refillLater();
    }
  }

  async #stopRefilling(): Promise<void> {
    if (this.#refilling) this.#reserve.giveUp();
    await this.#refilling;
    this.#stopRetry?.();
    this.#stopRetry = null;
  }

  #fail(error: Error): false {
    this.#state = 'failed';
    this.#waiting = [];
    this.#onIdle?.();
    this.#options.onFailure(error);
    return false;
  }

  #planSync(): void {
    const { sync, clock } = this.#options;
    if (sync === 'off' || this.#stopSync) return;
    if (sync === 'always') this.#startSync();
    else
      this.#stopSync = clock.after(sync, () => {
        this.#stopSync = null;
        this.#startSync();
      });
  }

  #startSync(): void {
    if (this.#syncing || this.#state !== 'open') return;
    this.#syncing = true;
    const older = this.#unsynced;
    this.#unsynced = [];
    const upTo = this.#written;
    syncAll([...older, this.#file], (error) => {
      this.#syncing = false;
      if (this.#state === 'failed') return;
      if (error) return void this.#fail(error);
      for (const file of older) file.close();
      this.#synced = upTo;
      runReached(this.#awaitingDisk, upTo);
      if (this.#unsynced.length > 0 || this.#awaitingDisk.length > 0) this.#startSync();
      else if (this.#synced < this.#written) this.#planSync();
      this.#release();
      if (!this.#syncing) this.#onIdle?.();
    });
  }

  /** Runs what waits for records that are there now. */
  #release(): void {
    const reached = this.#options.sync === 'always' ? this.#synced : this.#written;
    runReached(this.#waiting, reached);
  }
}

/** Removes what waits for this number or a lower one, and runs it. */
function runReached(waiting: Waiting[], reached: number): void {
  let count = 0;
  while ((waiting[count]?.after ?? Infinity) <= reached) count++;
  for (const { run } of waiting.splice(0, count)) run();
}

/** Syncs one file after the other, and calls `done` with the first error. */
function syncAll(files: readonly Pick<Synced, 'sync'>[], done: (error: Error | null) => void): void {
  const [first, ...rest] = files;
  if (!first) return done(null);
  first.sync((error) => (error ? done(error) : syncAll(rest, done)));
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}
