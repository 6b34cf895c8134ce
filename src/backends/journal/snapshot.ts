/**
 * Writes the state of the memory backend into a snapshot, in slices between other work. Each entity is written as it is
 * then, which may be later than the beginning of the snapshot: the facts of the journal that follows it change nothing
 * that a snapshot includes already.
 */
import { renameSync, rmSync } from 'node:fs';
import type { EventLoop } from '../../core/ports.ts';
import { isTerminal } from '../../core/commands/command.ts';
import { clientStream } from '../../core/history/message.ts';
import type { MemoryTables } from '../memory/backend.ts';
import type { AgeQueue, Row, Stream } from '../memory/history-row.ts';
import type { Entry } from '../memory/ledger.ts';
import type { BatchFile, OpenFile } from './files.ts';
import { ActWriter, NEW_COMMAND, RESULT, addRow, differenceOf, json, packTrace, quote } from './records.ts';

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
