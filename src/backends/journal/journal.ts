/**
 * Writes the journals of a data directory: appends the records of all acts of a turn of the event loop as one batch,
 * syncs them to the disk as DATA_SYNC says, and holds back everything that leaves the process until its records are
 * written or synced. Begins and commits the files of snapshots, each of which replaces the journals before it.
 */
import type { Cancel, Clock, EventLoop, Log } from '../../core/ports.ts';
import { batchFilesOn, type BatchFile, type BatchName, type OpenFile } from './batches.ts';
import type { Synced } from './disk.ts';
import { DiskSpace, isFull, noSpace } from './disk-space.ts';
import type { DataDirectory } from './files.ts';
import { Gate, type Holder } from './gate.ts';
import type { FactLog, SnapshotPieces } from './log.ts';
import { headOf, type ActWriter, type Header } from './records.ts';
import type { RecordRoom } from './room.ts';

/**
 * When records are synced to the disk. A number: at most that many milliseconds after they were written, and nothing
 * waits for the sync. `always`: before anything that depends on them leaves the process. `off`: whenever the system
 * does it.
 */
export type DataSync = number | 'always' | 'off';

type JournalOptions = {
  readonly directory: DataDirectory;
  readonly header: Header;
  /** The records to write. Their `onFirst` must call `wake`. */
  readonly records: Pick<ActWriter, 'take' | 'beginFile'>;
  /** Counts the written bytes, and stores whether the disk is full. */
  readonly room: Pick<RecordRoom, 'full' | 'written'>;
  readonly sync: DataSync;
  readonly clock: Pick<Clock, 'after' | 'now'>;
  readonly log: Log;
  readonly openFile?: OpenFile;
  readonly loop: Pick<EventLoop, 'atTurnEnd'>;
  /** Called once if records can neither be written nor given up. The caller must end the process. */
  readonly onFailure: (error: Error) => void;
};

/**
 * `open`: records are written. `closing`: the remaining records are written, and a full disk is a failure. `closed`:
 * all records are written. `failed`: nothing can be written, and nothing leaves the process.
 */
type Phase = 'open' | 'closing' | 'closed' | 'failed';

export class Journal implements FactLog {
  readonly #options: JournalOptions;
  readonly #openFile: OpenFile;
  readonly #space: DiskSpace;
  readonly #syncs: Syncs;
  /**
   * Holds back what leaves the process until its records are written; if DATA_SYNC is `always`, until they are on the
   * disk.
   */
  readonly #gate = new Gate();
  /** Holds back what must wait until its records are on the disk, whatever DATA_SYNC says. */
  readonly #disk = new Gate();
  #file: BatchFile;
  #number: number;
  #phase: Phase = 'open';
  /** Whether there are decided acts that are not written yet. */
  #pending = false;
  /** The number of the last batch that was written. */
  #written = 0;
  /** Records for which not even the reserve has room. Everything that depends on them waits. */
  #unwritten = '';

  /** Opens the journal with this number. `after`: the batch that its first batch follows. */
  constructor(number: number, after: BatchName, options: JournalOptions) {
    this.#options = options;
    this.#openFile = options.openFile ?? batchFilesOn(options.directory.disk);
    this.#space = new DiskSpace({ ...options, onRetry: () => this.#unwritten !== '' && this.flush() });
    this.#syncs = new Syncs({
      ...options,
      current: () => ({ file: this.#file, number: this.#written }),
      onSynced: (upTo) => this.#reachDisk(upTo),
      onFailure: (error) => {
        options.directory.noteFailedSync();
        this.#fail(error);
      },
    });
    this.#number = number;
    this.#file = this.#openFile(options.directory.journal(number), after);
    this.#appendOrGiveUpReserve(headOf(options.header, options.clock.now()));
    options.records.beginFile();
    options.directory.sync();
    this.#space.refill();
  }

  get full(): boolean {
    return this.#options.room.full;
  }

  get crowded(): boolean {
    return this.#space.crowded;
  }

  /**
   * Calls `run` once everything decided so far is recorded; at once if it already is. Runs calls in order. `holder`:
   * see `Gate.pass`.
   */
  onRecord(run: () => void, holder?: Holder): void {
    this.#gate.pass(this.#written + (this.#pending ? 1 : 0), run, holder);
  }

  /** Schedules `flush` for the end of this turn of the event loop. Call it when the first record of a turn is made. */
  wake(): void {
    this.#pending = true;
    this.#options.loop.atTurnEnd(() => this.flush());
  }

  /** Writes the records made since the last call. */
  flush(): void {
    if (this.#phase === 'closed' || this.#phase === 'failed') return;
    const text = this.#unwritten + this.#options.records.take();
    if (text !== '' && !this.#append(text)) return;
    this.#pending = false;
    this.#written++;
    if (text !== '') this.#syncs.plan();
    else if (this.#disk.recorded === this.#written - 1) this.#disk.open(this.#written);
    this.#release();
  }

  /** Writes the records made since the last call, and returns when they are on the disk. Blocks the event loop. */
  syncNow(): void {
    this.flush();
    this.#options.directory.syncing(() => this.#file.syncNow());
    this.#reachDisk(this.#written);
  }

  /**
   * Resolves once everything decided so far is on the disk, whatever DATA_SYNC says. Never resolves if the journal
   * fails, because a failure ends the process.
   */
  synced(): Promise<void> {
    this.flush();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#disk.pass(this.#written, resolve);
    this.#syncs.start();
    return promise;
  }

  /** Begins the next journal, and the snapshot that will replace the journals before it. */
  beginSnapshot(): SnapshotPieces {
    const { directory, header, clock } = this.#options;
    const at = clock.now();
    const after = this.#rotate(headOf(header, at));
    const number = this.#number;
    const { disk } = directory;
    const path = directory.snapshot(number);
    disk.remove(`${path}.new`);
    const file = this.#openFile(`${path}.new`);
    let isOpen = true;
    const close = (): void => {
      if (isOpen) file.close();
      isOpen = false;
    };
    const discard = (): void => {
      close();
      disk.remove(`${path}.new`);
    };
    try {
      // The head of the snapshot names the batch that the next journal follows, so that a start can check that the two
      // belong together.
      file.append(headOf(header, at, after));
    } catch (error) {
      discard();
      throw error;
    }
    return {
      get size() {
        return file.size;
      },
      append: (text) => file.append(text),
      commit: async () => {
        await done((then) => file.sync(then));
        await this.synced();
        close();
        disk.rename(`${path}.new`, path);
        const names = directory.names();
        await done((then) => names.sync(then));
        names.close();
        await directory.removeBefore(number);
      },
      discard,
    };
  }

  /** Writes and syncs the remaining records, and closes the files. */
  async close(): Promise<void> {
    if (this.#phase === 'open') this.#phase = 'closing';
    this.flush();
    await this.#space.stop();
    await this.#syncs.end();
    if (this.#isFailed()) return;
    this.#options.directory.syncing(() => {
      this.#syncs.closeAll();
      this.#file.syncNow();
    });
    this.#file.close();
    this.#phase = 'closed';
    this.#disk.close();
    this.#gate.close();
  }

  #isFailed(): boolean {
    return this.#phase === 'failed';
  }

  /** Closes the current file and begins the next one. Returns the batch that the new file follows. */
  #rotate(head: string): BatchName {
    const { directory, records } = this.#options;
    this.flush();
    if (this.#unwritten !== '') throw noSpace('the journal');
    const path = directory.journal(this.#number + 1);
    const after = this.#file.last;
    const next = this.#openFile(path, after);
    try {
      next.append(head);
    } catch (error) {
      next.close();
      // The current journal stays in use, so the new file must not exist: a start would read it as the next journal.
      directory.disk.remove(path);
      throw error;
    }
    this.#syncs.add(this.#file, directory.names());
    this.#file = next;
    this.#number++;
    records.beginFile();
    this.#syncs.start();
    return after;
  }

  /** Appends records as a batch. Returns false if they must wait for room, or if the journal has failed. */
  #append(text: string): boolean {
    try {
      this.#appendOrGiveUpReserve(text);
      this.#unwritten = '';
      return true;
    } catch (error) {
      if (isFull(error) && this.#phase === 'open') this.#wait(text);
      else this.#fail(error as Error);
      return false;
    }
  }

  /** Appends a batch. If the disk is full, gives up the reserve and appends again. Throws if there is still no room. */
  #appendOrGiveUpReserve(text: string): void {
    const before = this.#file.size;
    try {
      this.#file.append(text);
    } catch (error) {
      if (!isFull(error) || !this.#space.giveUpReserve(error)) throw error;
      this.#file.append(text);
    }
    this.#options.room.written(this.#file.size - before);
    this.#space.written(this.#file.size - before);
  }

  /** Stores records until there is room for them. Until then nothing leaves the process, but the process goes on. */
  #wait(text: string): void {
    if (this.#unwritten === '') this.#options.log.error({}, 'not even ends can be recorded: all answers wait for room');
    this.#unwritten = text;
    this.#space.retryLater();
  }

  #fail(error: Error): void {
    this.#phase = 'failed';
    this.#gate.fail();
    this.#disk.fail();
    this.#syncs.fail();
    this.#options.onFailure(error);
  }

  #reachDisk(upTo: number): void {
    this.#disk.open(upTo);
    this.#release();
  }

  /** Lets everything pass whose records are written (or synced, if DATA_SYNC is `always`). */
  #release(): void {
    this.#gate.open(this.#options.sync === 'always' ? this.#disk.recorded : this.#written);
  }
}

type SyncsOptions = Pick<JournalOptions, 'sync' | 'clock'> & {
  /** Returns the current file, and the number of the last batch in it. */
  readonly current: () => { readonly file: Synced; readonly number: number };
  /** Called when all batches up to a number are on the disk. */
  readonly onSynced: (upTo: number) => void;
  readonly onFailure: (error: Error) => void;
};

/**
 * `idle`: no sync is planned or running. `planned`: a sync will start later. `running`: a sync is in progress.
 * `failed`: there will be no more syncs.
 */
type SyncState =
  | { readonly kind: 'idle' | 'failed' }
  | { readonly kind: 'planned'; readonly stop: Cancel }
  | { readonly kind: 'running' };

/** Syncs the files of a journal, one sync at a time: at the intervals of DATA_SYNC, and whenever `start` is called. */
class Syncs {
  readonly #options: SyncsOptions;
  #state: SyncState = { kind: 'idle' };
  /** Earlier files, and folders with changed names, that are not synced yet. */
  #older: Synced[] = [];
  /** Whether another sync was requested while one is in progress. */
  #again = false;
  #syncedUpTo = 0;
  #onIdle: (() => void) | null = null;

  constructor(options: SyncsOptions) {
    this.#options = options;
  }

  /** Adds files that the next sync includes. They are closed after it. */
  add(...files: readonly Synced[]): void {
    this.#older.push(...files);
  }

  /** Plans a sync as DATA_SYNC says. Called after each batch that was written. */
  plan(): void {
    const { sync, clock } = this.#options;
    if (sync === 'off' || this.#state.kind !== 'idle') return;
    if (sync === 'always') return this.start();
    this.#state = { kind: 'planned', stop: clock.after(sync, () => this.start()) };
  }

  /** Syncs now, or once the sync that is in progress has ended. */
  start(): void {
    const { kind } = this.#state;
    if (kind === 'failed') return;
    if (kind === 'running') return void (this.#again = true);
    this.#cancel();
    this.#state = { kind: 'running' };
    this.#again = false;
    const older = this.#older;
    this.#older = [];
    const { file, number } = this.#options.current();
    syncAll([...older, file], (error) => {
      if (this.#state.kind === 'failed') return;
      if (error) return this.#options.onFailure(error);
      for (const one of older) one.close();
      this.#state = { kind: 'idle' };
      this.#syncedUpTo = number;
      this.#options.onSynced(number);
      this.#next();
    });
  }

  /** Cancels a planned sync. Resolves when no sync is in progress. */
  async end(): Promise<void> {
    if (this.#state.kind === 'running') await new Promise<void>((idle) => (this.#onIdle = idle));
    this.#cancel();
  }

  /** Syncs and closes the earlier files, and blocks until that is done. */
  closeAll(): void {
    for (const file of this.#older.splice(0)) {
      file.syncNow();
      file.close();
    }
  }

  fail(): void {
    this.#cancel();
    this.#state = { kind: 'failed' };
    this.#onIdle?.();
  }

  #next(): void {
    // `onSynced` may have started another sync already.
    if (this.#isRunning()) return;
    if (this.#again || this.#older.length > 0) return this.start();
    if (this.#syncedUpTo < this.#options.current().number) this.plan();
    if (!this.#isRunning()) this.#onIdle?.();
  }

  #isRunning(): boolean {
    return this.#state.kind === 'running';
  }

  #cancel(): void {
    if (this.#state.kind !== 'planned') return;
    this.#state.stop();
    this.#state = { kind: 'idle' };
  }
}

/** Syncs the files one after another. Calls `then` with the first error, or with null after the last file. */
function syncAll(files: readonly Pick<Synced, 'sync'>[], then: (error: Error | null) => void): void {
  const [first, ...rest] = files;
  if (!first) return then(null);
  first.sync((error) => (error ? then(error) : syncAll(rest, then)));
}

function done(run: (then: (error: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())));
}
