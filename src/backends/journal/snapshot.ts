/**
 * Writes snapshots of the memory backend, in slices between other work, whenever the log has grown long since the last
 * one.
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
/** How long after a failed snapshot no new one is begun, in milliseconds. */
const RETRY_MS = 60_000;

type SnapshotsOptions = {
  readonly log: FactLog;
  readonly room: RecordRoom;
  readonly tables: MemoryTables;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly logger: Log;
  /** The used sign-in tickets, with the time until which each is remembered, in epoch milliseconds. */
  readonly tickets: ReadonlyMap<string, number>;
  /** The process that holds the links of each node, by node id. Absent if there is only one process. */
  readonly nodes?: ReadonlyMap<string, string>;
};

/** The size and the duration of a snapshot. Times are in milliseconds. */
type SnapshotReport = { readonly bytes: number; readonly slices: number; readonly longestMs: number };

/** Writes a snapshot whenever one is due. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #stopChecks: () => void;
  #running: Promise<void> | null = null;
  #closing = false;
  #notBefore = -Infinity;
  /** Whether the log was full at the last check. */
  #wasFull = false;
  lastAt: number | null = null;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#stopChecks = options.clock.every(CHECK_MS, () => this.#check());
    // Waits for the next turn, because a snapshot must begin between two batches and this callback runs while one is
    // written.
    options.room.onDue = () => options.loop.afterOthers(() => this.#check());
  }

  /** Writes a snapshot now. If one is being written, waits for it instead. */
  write(): Promise<void> {
    return (this.#running ??= this.#write().finally(() => (this.#running = null)));
  }

  /** Writes a last snapshot, and stops. */
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
    // The last snapshot may have failed for lack of room, and until the next one admissions may be refused for it.
    if (this.#wasFull && !log.full) this.#notBefore = -Infinity;
    this.#wasFull = log.full;
    if (this.#running || this.#closing || log.crowded || clock.monotonic() < this.#notBefore) return;
    if (log.full) {
      // The disk is full, but a snapshot may take less room than the files that it replaces.
      this.#notBefore = clock.monotonic() + RETRY_MS;
      return void this.write();
    }
    // A payload that was left out of the journal for lack of room exists only in memory until the next snapshot.
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
   * that data added later is in the log only. Resolves with null if the snapshot is given up.
   */
  async #writeInto(pieces: SnapshotPieces): Promise<SnapshotReport | null> {
    const { log, room, clock, loop } = this.#options;
    const records = new ActWriter();
    const steps = walk({ ...this.#options, now: () => clock.now() }, records);
    let [slices, longestMs] = [0, 0];
    try {
      for (let done = false; !done;) {
        await new Promise<void>((next) => loop.afterOthers(next));
        // The snapshot must not use up the room that the records of ends need.
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

// Writes the state of the memory backend into a snapshot, in slices between other work. An entity is written as it is
// at the time of its slice, which may be later than the start of the snapshot. This is harmless: the facts of the log
// after the start do not change an entity that includes them already.

/**
 * How long a slice may take, in milliseconds, without the write of its batch. LATE_SLICE_MS applies while the snapshot
 * is late.
 */
const SLICE_MS = 1;
const LATE_SLICE_MS = 8;
/** The length of a batch, in characters. */
const BATCH_CHARS = 256 * 1024;
/** The number of entities that are written between two reads of the clock. */
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
  // Data added after `rewind` is in the log only. For a dedup mark this matters: a replay that restored a mark out of
  // order would keep it for too long.
  for (const order of [ledger, messages.byAge, links.byAge, dedup]) order.rewind();
  const written: WrittenCommands = { ledger, began: now(), running: new Set() };
  return (function* () {
    yield* commands(options, records, written);
    yield* rows(messages.byAge, written, records);
    yield* rows(links.byAge, written, records);
    yield* others(options, records);
    records.begin(now(), NO_USER);
    // The floors are written a second time: the row numbers of a stream that ended before it was written are in no
    // record, but must not be used again.
    writeFloors(tables, records, 0);
    records.add('complete');
  })();
}

/** Writes the least numbers that new rows and links may get, and the time before which no new row is retained. */
function writeFloors({ history, connections }: MemoryTables, records: ActWriter, lastAt: number): void {
  const { messages, links } = history.tables;
  records.add('floors', messages.seqFloor, links.seqFloor, connections.lastEpoch, lastAt);
}

/**
 * `began`: the time at which the snapshot began. `running`: the commands that had not ended when they were written.
 * They are few; a set of all commands would block the event loop for milliseconds whenever it grows.
 */
type WrittenCommands = {
  readonly ledger: MemoryTables['ledger'];
  readonly began: number;
  readonly running: Set<Entry>;
};

function* commands({ now }: WalkOptions, records: ActWriter, { ledger, running }: WrittenCommands): Generator<void> {
  let count = 0;
  for (let entry = ledger.next(); entry; entry = ledger.next()) {
    if (!writeEntry(entry, records, now())) running.add(entry);
    if (++count % STEP === 0) yield;
  }
  yield;
}

/** Writes a command, and returns whether it has ended. */
function writeEntry(entry: Entry, records: ActWriter, at: number): boolean {
  const { command, marked, markedBy, params, result, queuedOn, progress } = entry;
  records.join(at);
  records.about(entry, true);
  addAttempt(records, markedBy);
  // The params of a dispatched command are restored only if its dispatch attempt may be repeated.
  const waiting = command.dispatchedAt === null || markedBy !== null ? params : null;
  const texts = `${records.payload(waiting)},${records.payload(result)}`;
  const more = `${quote(queuedOn)},${progress ? `[${progress.rows},${progress.at}]` : 'null'}`;
  records.addText(`"entry",${differenceOf(NEW_COMMAND, command, at)},${marked ? 1 : 0},${texts},${more}`);
  return isTerminal(command);
}

function* rows(queue: AgeQueue, written: WrittenCommands, records: ActWriter): Generator<void> {
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

function writeRow(row: Row, { ledger, began, running }: WrittenCommands, records: ActWriter): void {
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
    // The row may refer to the result in the entry that the snapshot has for this command. That entry contains the
    // result only if the command had ended when the entry was written, and if the command is not a later one with the
    // same id.
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
  // Marks are written after the commands: a record that is reduced to a mark from now on is in the snapshot, or its
  // reduction is in the log, so a start creates the mark again.
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
