/**
 * Writes snapshots: the state of the memory backend, in slices between other work, whenever the log has become long since
 * the one before.
 */
import { isTerminal } from '../../core/commands/command.ts';
import { clientStream } from '../../core/history/message.ts';
import type { Clock, EventLoop, Log } from '../../core/ports.ts';
import type { MemoryTables } from '../memory/backend.ts';
import type { AgeQueue, Row, Stream } from '../memory/history-row.ts';
import type { Entry } from '../memory/ledger.ts';
import type { FactLog, SnapshotPieces } from './log.ts';
import {
  ActWriter,
  NEW_COMMAND,
  NO_USER,
  RESULT,
  addAttempt,
  addRow,
  differenceOf,
  json,
  packTrace,
  quote,
} from './records.ts';
import type { RecordRoom } from './room.ts';

/** How often the writer checks whether a snapshot is due, in milliseconds. */
const CHECK_MS = 1_000;
/** How long a snapshot that failed is not tried again, in milliseconds. */
const RETRY_MS = 60_000;

type SnapshotsOptions = {
  readonly log: FactLog;
  readonly room: RecordRoom;
  readonly tables: MemoryTables;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly logger: Log;
  /** The sign-in tickets that were used, and until when each is remembered. */
  readonly tickets: ReadonlyMap<string, number>;
  /** The processes whose links the connections are, by the ids of their nodes; absent: there is one process. */
  readonly nodes?: ReadonlyMap<string, string>;
};

/** What a snapshot took. Times are milliseconds. */
type SnapshotReport = { readonly bytes: number; readonly slices: number; readonly longestMs: number };

/** Writes a snapshot whenever one is due. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #stopChecks: () => void;
  #running: Promise<void> | null = null;
  #closing = false;
  #notBefore = -Infinity;
  lastAt: number | null = null;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#stopChecks = options.clock.every(CHECK_MS, () => this.#check());
    // Not in the turn that writes: a snapshot begins between two batches.
    options.room.onDue = () => options.loop.afterOthers(() => this.#check());
  }

  /** Writes a snapshot now, or waits for the one that is being written. */
  write(): Promise<void> {
    return (this.#running ??= this.#write().finally(() => (this.#running = null)));
  }

  /** Writes a last snapshot. */
  async close(): Promise<void> {
    this.#stopChecks();
    if (!this.#running) return this.write().finally(() => (this.#closing = true));
    this.#closing = true;
    await this.#running;
  }

  /** Gives up the snapshot that is being written, and writes no more. */
  stop(): void {
    this.#stopChecks();
    this.#closing = true;
  }

  #check(): void {
    const { log, room, clock } = this.#options;
    if (this.#running || this.#closing || log.crowded || clock.monotonic() < this.#notBefore) return;
    if (log.full) {
      // It may take less room than what it replaces.
      this.#notBefore = clock.monotonic() + RETRY_MS;
      return void this.write();
    }
    // What was left out while there was no room is in memory alone.
    if (room.due || room.omitted) void this.write();
  }

  async #write(): Promise<void> {
    const { log, room, clock, logger } = this.#options;
    try {
      const pieces = log.beginSnapshot();
      room.beginSnapshot();
      const report = await this.#writeInto(pieces);
      if (!report) return;
      room.endSnapshot(report.bytes);
      this.lastAt = clock.now();
      logger.debug({ ...report }, 'a snapshot was written');
    } catch (error) {
      this.#notBefore = clock.monotonic() + RETRY_MS;
      logger.warn({ err: error }, 'a snapshot could not be written; the log goes on');
    }
  }

  /**
   * Writes the state into the pieces, in slices, and commits them. The walk begins in this turn of the event loop, so
   * that what is added from now on is in the log only. Resolves with null if the snapshot is given up.
   */
  async #writeInto(pieces: SnapshotPieces): Promise<SnapshotReport | null> {
    const { log, room, clock, loop } = this.#options;
    const records = new ActWriter();
    const steps = walk({ ...this.#options, now: () => clock.now() }, records);
    let [slices, longestMs] = [0, 0];
    try {
      for (let done = false; !done;) {
        await new Promise<void>((next) => loop.afterOthers(next));
        // What a snapshot takes is not there for the records of ends.
        if (this.#closing || log.crowded) {
          pieces.discard();
          return null;
        }
        const began = clock.monotonic();
        const most = room.late ? LATE_SLICE_MS : SLICE_MS;
        while (!done && clock.monotonic() - began < most && records.length < BATCH_CHARS)
          done = steps.next().done === true;
        const appended = records.length >= BATCH_CHARS || done ? pieces.append(records.take()) : undefined;
        slices++;
        longestMs = Math.max(longestMs, clock.monotonic() - began);
        await appended;
      }
      await pieces.commit();
    } catch (error) {
      pieces.discard();
      throw error;
    }
    return { bytes: pieces.size, slices, longestMs };
  }
}

// Writes the state of the memory backend into a snapshot, in slices between other work. Each entity is written as it
// is then, which may be later than the beginning of the snapshot: the facts of the log that follow it change nothing
// that a snapshot includes already.

/** How long a slice may take, in milliseconds; and how long if the snapshot is late. Writing a batch follows the slice. */
const SLICE_MS = 1;
const LATE_SLICE_MS = 8;
/** The length of a batch, in characters. */
const BATCH_CHARS = 256 * 1024;
/** How many entities are written before the time is read again. */
const STEP = 16;

type WalkOptions = {
  readonly tables: MemoryTables;
  readonly tickets: Iterable<readonly [string, number]>;
  readonly nodes?: Iterable<readonly [string, string]>;
  readonly now: () => number;
};

function walk(options: WalkOptions, records: ActWriter): Generator<void> {
  const { tables, now, tickets, nodes = [] } = options;
  const { ledger, history, dedup } = tables;
  const { messages, links } = history.tables;
  records.begin(now(), NO_USER);
  writeFloors(tables, records, history.lastAt);
  for (const pauseId of tables.acts.pauses.ended()) records.add('pause_gone', pauseId);
  for (const pause of tables.acts.pauses.values()) records.add('pause', pause);
  for (const [hash, until] of tickets) records.add('ticket', hash, until);
  for (const [nodeId, process] of nodes) records.add('node', nodeId, process);
  // What is added later is in the log. A mark of the log after a newer one would outlive its time.
  for (const order of [ledger, messages.byAge, links.byAge, dedup]) order.rewind();
  const written: Written = { ledger, began: now(), running: new Set() };
  return (function* () {
    yield* commands(options, records, written);
    yield* rows(messages.byAge, written, records);
    yield* rows(links.byAge, written, records);
    yield* others(options, records);
    records.begin(now(), NO_USER);
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

function* commands({ now }: WalkOptions, records: ActWriter, { ledger, running }: Written): Generator<void> {
  let count = 0;
  for (let entry = ledger.next(); entry; entry = ledger.next()) {
    if (!writeEntry(entry, records, now())) running.add(entry);
    if (++count % STEP === 0) yield;
  }
  yield;
}

/** Returns whether the command has ended. */
function writeEntry(entry: Entry, records: ActWriter, at: number): boolean {
  const { command, marked, markedBy, params, result, queuedOn, progress } = entry;
  records.join(at);
  records.about(entry, true);
  addAttempt(records, markedBy);
  // The params of a dispatched command are not kept by a restart, unless its attempt may be repeated.
  const waiting = command.dispatchedAt === null || markedBy !== null ? params : null;
  const texts = `${records.payload(waiting)},${records.payload(result)}`;
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

function* others({ tables, now }: WalkOptions, records: ActWriter): Generator<void> {
  const { connections, sites, ledger, dedup, history, revocations, devices } = tables;
  yield* connectionsOf(connections, records, now);
  records.begin(now(), NO_USER);
  for (const row of revocations.all()) yield* one(records, 'revocation', row);
  for (const device of devices.all().toArray()) yield* one(records, 'device', device);
  for (const site of sites.allSites().toArray()) yield* one(records, 'site', site);
  for (const { session, hashes } of sites.allSessions().toArray()) yield* one(records, 'session', session, [...hashes]);
  // After the commands: a record that is dropped from now on is in the snapshot or in the log, so a start sets its
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
  records.begin(records.at, NO_USER);
  records.add(...fact);
  yield;
}

function* connectionsOf({ all }: MemoryTables['connections'], records: ActWriter, now: () => number): Generator<void> {
  let after: readonly [string, string] | null = null;
  for (let count = STEP; count === STEP;) {
    count = 0;
    for (const connection of all(after)) {
      records.begin(now(), NO_USER);
      records.addConnection(connection);
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
