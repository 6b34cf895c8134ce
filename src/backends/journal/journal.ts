/**
 * Writes a data directory. The journal writes the records of acts, all those of a turn of the event loop together, and
 * lets nothing leave the process before what it depends on is written. A snapshot is the whole state, and replaces the
 * journals before it.
 */
import { rmSync, renameSync } from 'node:fs';
import type { Cancel, Clock, Log, EventLoop } from '../../core/ports.ts';
import { Reserve, openBatchFile, type BatchFile, type DataDirectory, type OpenFile } from './files.ts';
import { ActWriter, NEW_COMMAND, RESULT, addRow, differenceOf, json, packTrace, quote } from './records.ts';
import { isTerminal } from '../../core/commands/command.ts';
import { clientStream } from '../../core/history/message.ts';
import type { MemoryTables } from '../memory/backend.ts';
import type { AgeQueue, Row, Stream } from '../memory/history-row.ts';
import type { Entry } from '../memory/ledger.ts';

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

// Writes the state of the memory backend into a snapshot, in slices between other work. Each entity is written as it
// is then, which may be later than the beginning of the snapshot: the facts of the journal that follows it change
// nothing that a snapshot includes already.

/** How long a slice may take, in milliseconds. Writing a batch follows the slice. */
const SLICE_MS = 1;
/** The length of a batch, in characters. */
const BATCH_CHARS = 256 * 1024;
/** How many entities are written before the time is read again. */
const STEP = 16;

export type SnapshotParts = {
  readonly tables: MemoryTables;
  /** The sign-in tickets that were used, and until when each is remembered. */
  readonly tickets: Iterable<readonly [string, number]>;
  readonly path: string;
  /** The text of the first record. */
  readonly head: string;
  readonly openFile: OpenFile;
  readonly loop: EventLoop;
  readonly now: () => number;
  readonly monotonic: () => number;
  /** Resolves once everything that was decided so far is in the journal on the disk. */
  readonly recorded: () => Promise<void>;
};

/** What a snapshot took. Times are milliseconds. */
export type SnapshotReport = { readonly bytes: number; readonly slices: number; readonly longestMs: number };

/**
 * Begins a snapshot in this turn of the event loop, and resolves when it is on the disk under its name. The journal must
 * have been rotated in the same turn. `stopped`: once true, the snapshot is given up; then resolves with null.
 */
export async function writeSnapshot(parts: SnapshotParts, stopped: () => boolean): Promise<SnapshotReport | null> {
  const { path, head, openFile, loop, monotonic, recorded } = parts;
  const records = new ActWriter(() => {});
  // The walk begins now, so that what is added from now on is in the journal only.
  const steps = walk(parts, records);
  rmSync(`${path}.new`, { force: true });
  const file = openFile(`${path}.new`);
  let [slices, longestMs] = [0, 0];
  try {
    file.append(head);
    for (let done = false; !done;) {
      await new Promise<void>((next) => loop.afterOthers(next));
      if (stopped()) return null;
      const began = monotonic();
      while (!done && monotonic() - began < SLICE_MS && records.length < BATCH_CHARS) done = steps.next().done === true;
      if (records.length >= BATCH_CHARS || done) file.append(records.take());
      slices++;
      longestMs = Math.max(longestMs, monotonic() - began);
    }
    await synced(file);
    // The snapshot has consequences of records of its time, and would be wrong without them after a power loss.
    await recorded();
  } catch (error) {
    rmSync(`${path}.new`, { force: true });
    throw error;
  } finally {
    file.close();
  }
  renameSync(`${path}.new`, path);
  return { bytes: file.size, slices, longestMs };
}

function synced(file: BatchFile): Promise<void> {
  return new Promise((done, failed) => file.sync((error) => (error ? failed(error) : done())));
}

function walk(parts: SnapshotParts, records: ActWriter): Generator<void> {
  const { tables, now, tickets } = parts;
  const { ledger, history, dedup } = tables;
  const { messages, links } = history.tables;
  records.begin(now());
  writeFloors(tables, records, history.lastAt);
  for (const [hash, until] of tickets) records.add('ticket', hash, until);
  // What is added later is in the journal. A mark of the journal after a newer one would outlive its time.
  for (const order of [ledger, messages.byAge, links.byAge, dedup]) order.rewind();
  const written: Written = { ledger, began: now(), running: new Set() };
  return (function* () {
    yield* commands(parts, records, written);
    yield* rows(messages.byAge, written, records);
    yield* rows(links.byAge, written, records);
    yield* others(parts, records);
    records.begin(now());
    // Again: streams that ended before their rows were written are in no record, but their numbers must not return.
    writeFloors(tables, records, 0);
    records.add('complete');
  })();
}

/** Writes the numbers below which nothing new is numbered, and the time before which no new row is retained. */
function writeFloors({ history, connections }: MemoryTables, records: ActWriter, lastAt: number): void {
  const { messages, links } = history.tables;
  records.add('floors', messages.seqFloor, links.seqFloor, connections.lastEpoch, lastAt);
}

/**
 * `began`: the time at which the snapshot began; `running`: the commands that had not ended when they were written. They
 * are few: a set of all commands would stop the event loop for milliseconds when it grows.
 */
type Written = { readonly ledger: MemoryTables['ledger']; readonly began: number; readonly running: Set<Entry> };

function* commands({ now }: SnapshotParts, records: ActWriter, { ledger, running }: Written): Generator<void> {
  let count = 0;
  for (let entry = ledger.next(); entry; entry = ledger.next()) {
    if (!writeEntry(entry, records, now())) running.add(entry);
    if (++count % STEP === 0) yield;
  }
  yield;
}

/** Returns whether the command has ended. */
function writeEntry(entry: Entry, records: ActWriter, at: number): boolean {
  const { command, marked, params, result, queuedOn, progress } = entry;
  records.join(at);
  records.about(entry, true);
  const texts = `${records.payload(params)},${records.payload(result)}`;
  const more = `${quote(queuedOn)},${progress ? `[${progress.rows},${progress.at}]` : 'null'}`;
  records.addText(`"entry",${differenceOf(NEW_COMMAND, command, at)},${marked ? 1 : 0},${texts},${more}`);
  return isTerminal(command);
}

function* rows(queue: AgeQueue, written: Written, records: ActWriter): Generator<void> {
  const streams = new Set<Stream>();
  let count = 0;
  for (let row = queue.nextRow(); row; row = queue.nextRow()) {
    writeRow(row, written, records);
    streams.add(row.stream);
    if (++count % STEP === 0) yield;
  }
  for (const [at, stream] of [...streams].entries()) {
    if (stream.evictedAt > -Infinity) writeGapOf(stream, records);
    if (at % STEP === 0) yield;
  }
}

function writeRow(row: Row, { ledger, began, running }: Written, records: ActWriter): void {
  const { payload, ...message } = row.content;
  const { id, userId, clientId, commandId, suffix, kind, instanceId, spill, error } = message;
  records.join(row.at);
  const ofCommand = commandId !== null && clientId !== null && suffix === clientStream(clientId);
  if (ofCommand && packTrace(message) === null) {
    const key = { userId, clientId, commandId };
    const entry = ledger.find(key);
    records.about(entry ?? key, entry !== undefined);
    const own = id === `${commandId}:${kind}` ? {} : { id };
    const isResult = kind === 'result' && payload !== null && entry?.result === payload;
    // A command may have ended after it was written, or have been admitted since, again under this id.
    const isWritten = isResult && !running.has(entry) && entry.command.admittedAt < began;
    const place = isWritten ? RESULT : records.payload(payload);
    const about = { kind, instanceId, ...own, kept: { payload, spill }, error, trace: null, seq: row.seq };
    return addRow(records, commandId, about, place);
  }
  records.add('retained', message, records.payload(payload), row.seq);
}

function writeGapOf({ user, suffix, evictedAt }: Stream, records: ActWriter): void {
  const table = suffix === 'links' ? 'links' : 'messages';
  records.join(records.at);
  records.add('gap', table, user.userId, suffix, evictedAt, null);
}

function* others({ tables, now }: SnapshotParts, records: ActWriter): Generator<void> {
  const { connections, sites, ledger, dedup, history } = tables;
  yield* connectionsOf(connections, records, now);
  records.begin(now());
  for (const site of sites.allSites().toArray()) yield* one(records, 'site', site);
  for (const { session, hashes } of sites.allSessions().toArray()) yield* one(records, 'session', session, [...hashes]);
  // After the commands: a record that is dropped from now on is in the snapshot or in the journal, so a start sets its
  // mark again.
  const { shards, owners } = ledger.ended.marks.read();
  for (const { generation, marks } of shards)
    yield* one(records, 'marks', generation, wordsAsText(marks.words), Buffer.from(marks.codes).toString('base64'));
  for (const { generation, owner, count } of owners) yield* one(records, 'mark_owner', generation, owner.userId, count);
  for (const { userId, shortUntil, unmarkedId } of ledger.ended.users.values())
    if (shortUntil > -Infinity) yield* one(records, 'short', userId, shortUntil, unmarkedId);
  let count = 0;
  for (const { userId, clientId, messageId, setAt } of dedup.marks()) {
    records.join(records.at);
    records.addText(`"seen",${quote(userId)},${quote(clientId)},${json(messageId)},${setAt}`);
    if (++count % STEP === 0) yield;
  }
  for (const table of ['messages', 'links'] as const)
    for (const { userId, droppedAt, wholeStreamAt } of history.tables[table].evictions.gaps())
      yield* one(records, 'gap', table, userId, null, droppedAt, wholeStreamAt === -Infinity ? null : wholeStreamAt);
}

function* one(records: ActWriter, ...fact: readonly unknown[]): Generator<void> {
  records.begin(records.at);
  records.add(...fact);
  yield;
}

function* connectionsOf({ all }: MemoryTables['connections'], records: ActWriter, now: () => number): Generator<void> {
  let after: readonly [string, string] | null = null;
  for (let count = STEP; count === STEP;) {
    count = 0;
    for (const connection of all(after)) {
      records.begin(now());
      records.add('connected', connection);
      after = [connection.userId, connection.clientId];
      if (++count === STEP) break;
    }
    yield;
  }
}

function wordsAsText(words: Uint32Array): string {
  const bytes = Buffer.alloc(words.byteLength);
  for (const [at, word] of words.entries()) bytes.writeUInt32LE(word, at * Uint32Array.BYTES_PER_ELEMENT);
  return bytes.toString('base64');
}
