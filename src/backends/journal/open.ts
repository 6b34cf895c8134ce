/**
 * The backend of direct mode with a data directory: the memory backend, whose acts are recorded in a journal and put
 * back at the start. Opens the directory, writes snapshots, and closes it.
 */
import { existsSync, rmSync } from 'node:fs';
import type { AuditStore } from '../../core/audit/audit-rows.ts';
import type { Away, Backend, Durability } from '../../core/backend.ts';
import { CallboardError, fail } from '../../core/errors.ts';
import { LINK_STREAM, NO_PAYLOAD, type NewMessage } from '../../core/history/message.ts';
import { keyOf } from '../../core/ids.ts';
import type { Clock, EventLoop } from '../../core/ports.ts';
import { createMemoryState, type MemoryBackend, type MemoryOptions, type MemoryTables } from '../memory/backend.ts';
import {
  DataDirectory,
  bootId,
  cutFile,
  lockDirectory,
  mayBeCut,
  networkFileSystem,
  openBatchFile,
  readBatches,
  sizeOf,
  type BadEnd,
  type DataLock,
  type FileEnd,
  type OpenFile,
} from './files.ts';
import { Journal, writeSnapshot, type DataSync } from './journal.ts';
import { RecordingTransaction, createWatcher, recordedPorts, refuseGrowth } from './recording.ts';
import { ActWriter } from './records.ts';
import { Replay, type Header } from './replay.ts';

/** The form of the files. A relay refuses a directory of another form. */
const FORMAT = 2;
/** A snapshot is written when the journal is longer than the last snapshot, and than this number of bytes. */
const JOURNAL_BYTES = 64 * 1024 * 1024;
/** How often the length of the journal is compared, in milliseconds. */
const CHECK_MS = 1_000;
/** How long a snapshot that failed is not tried again, in milliseconds. */
const RETRY_MS = 60_000;

export type DataOptions = {
  readonly root: string;
  readonly sync: DataSync;
  /** The version of the relay, for the files. */
  readonly version: string;
  readonly loop: EventLoop;
  readonly memory: Omit<MemoryOptions, 'watcher' | 'makeTransaction' | 'markSecret' | 'audit'> & {
    /** Opens the audit, once the directory is there and locked; absent: the audit is kept in memory. */
    readonly openAudit?: (directory: DataDirectory) => AuditStore;
  };
  /** Called if records can neither be written nor given up. The process must end. */
  readonly onFailure: (error: Error) => void;
  readonly openFile?: OpenFile;
  readonly atTurnEnd?: (run: () => void) => void;
  /** The id of this boot of the system; absent: the system is asked. */
  readonly boot?: string | null;
  /** The length of the journal from which on a snapshot is written; absent: JOURNAL_BYTES. */
  readonly journalBytes?: number;
};

/** A backend with a data directory. `snapshot` writes a snapshot now. */
export type DurableBackend = Backend & { durability(): Durability; snapshot(): Promise<void> };

/** A directory that is open, with the keys that last with it. */
export type OpenData = {
  readonly backend: DurableBackend;
  /** Signs cursors. */
  readonly cursorKey: Uint8Array;
  readonly directory: DataDirectory;
};

/** Whether `node:sqlite`, which takes the lock, is stable in this version of Node (24.15 or later). */
function hasSqlite(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 15);
}

/**
 * Opens a data directory, and puts back what it keeps. Throws `store_unavailable` if it is in use, damaged, or of
 * another form; then it stays as it is.
 */
export async function openData(options: DataOptions): Promise<OpenData> {
  const { root } = options;
  if (!hasSqlite(process.versions.node))
    return refuse(`A data directory needs Node.js 24.15 or later.`, `this is ${process.versions.node}`);
  const { directory, lock } = await locked(root);
  if (!lock) return refuse(`The data directory ${root} is in use by another process.`, 'it has the lock');
  try {
    return open(options, directory, lock);
  } catch (error) {
    lock.release();
    if (error instanceof CallboardError) throw error;
    return refuse(`The data directory ${root} cannot be used.`, error instanceof Error ? error.message : 'unknown');
  }
}

async function locked(root: string): Promise<{ directory: DataDirectory; lock: DataLock | null }> {
  try {
    return { directory: new DataDirectory(root), lock: await lockDirectory(root) };
  } catch (error) {
    return refuse(`The data directory ${root} cannot be used.`, error instanceof Error ? error.message : 'unknown');
  }
}

function open(options: DataOptions, directory: DataDirectory, lock: DataLock): OpenData {
  const { memory, sync, version, onFailure, boot = bootId() } = options;
  const { log } = memory;
  const network = networkFileSystem(directory.root);
  if (network)
    log.warn({ network }, 'the data directory is on a network file system, whose locks and syncs may not hold');
  const keys = directory.keys();
  const clock = new HeldClock(memory.clock);
  // The writer exists before the journal, because memory is created before its number is known.
  const recorder = new Recorder();
  const watcher = createWatcher(recorder.records, clock);
  const { openAudit, ...given } = memory;
  const { backend: plain, tables } = createMemoryState({
    ...given,
    audit: openAudit?.(directory),
    clock,
    watcher,
    markSecret: Buffer.from(keys('marks')).toString('base64url'),
    makeTransaction: (acts) => new RecordingTransaction(acts, recorder.records),
  });
  watcher.replaying = true;
  const replay = new Replay({ tables, onTime: (at) => clock.hold(at) });
  const { journals, next, from, tornBytes } = recover(directory, replay, { ...memory, boot });
  clock.release();
  // What memory told while it was filled is recorded already.
  recorder.records.take();
  watcher.replaying = false;
  const header: Header = { format: FORMAT, version, boot, sync };
  syncFiles(journals, options.openFile);
  const journal = new Journal(next, headOf(header, memory.clock.now()), {
    ...{ directory, sync, log, onFailure, records: recorder.records },
    clock: memory.clock,
    ...(options.openFile && { openFile: options.openFile }),
    ...(options.atTurnEnd && { atTurnEnd: options.atTurnEnd }),
  });
  recorder.onFirst = () => journal.wake();
  const away = awayOf(replay, { boot, tornBytes, gaveUp: existsSync(directory.loss) });
  const ports = recordedPorts(plain, {
    ...{ tables, clock, records: recorder.records, tickets: replay.tickets },
    checkRoom: () => (journal.full ? refuseGrowth() : undefined),
  });
  resume({ replay, tables, ports, plain, away, now: memory.clock.now() });
  journal.syncNow();
  rmSync(directory.loss, { force: true });
  // Files before the newest snapshot are there if the relay was killed while it removed them.
  void directory.removeBefore(from).catch((error: unknown) => log.warn({ err: error }, 'old files are still there'));
  if (away?.lost) log.warn({ since: away.since }, 'records are missing: commands that had not ended end as unknown');
  const snapshots = new Snapshots({
    options,
    directory,
    journal,
    tables,
    header,
    clock,
    tickets: replay.tickets,
    from,
  });
  const backend: DurableBackend = {
    ...ports,
    onRecord: (run) => journal.onRecord(run),
    ready: () => (journal.full ? refuseGrowth() : undefined),
    durability: () => ({
      kind: 'directory',
      sync: typeof sync === 'number' ? `${sync} ms` : sync,
      ...{ bytes: directory.size(), full: journal.full, snapshotAt: snapshots.lastAt, away },
    }),
    snapshot: () => snapshots.write(),
    async close() {
      await snapshots.close();
      recorder.records.begin(clock.now());
      recorder.records.add('closed');
      await journal.close();
      await plain.close();
      lock.release();
    },
  };
  return { backend, directory, cursorKey: keys('cursors') };
}

/** The writer of records, before and after the journal exists. */
class Recorder {
  onFirst: () => void = () => {};
  readonly records = new ActWriter(() => this.onFirst());
}

/** A clock that shows the time of recorded acts while they are put back. */
class HeldClock implements Clock {
  readonly #clock: Clock;
  #held: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  hold(at: number): void {
    this.#held = at;
  }

  release(): void {
    this.#held = null;
  }

  now(): number {
    return this.#held ?? this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(ms: number, run: () => void) {
    return this.#clock.after(ms, run);
  }

  every(ms: number, run: () => void) {
    return this.#clock.every(ms, run);
  }
}

/** Returns the text of the first record of a file. */
function headOf(header: Header, at: number): string {
  const records = new ActWriter(() => {});
  records.begin(at);
  records.add('begin', header);
  return records.take();
}

function refuse(message: string, reason: string): never {
  return fail('store_unavailable', message, { cause: new Error(reason) });
}

// Reads a directory.

type Recovered = {
  /** The journals that were read, as paths. */
  readonly journals: readonly string[];
  /** The number of the next journal. */
  readonly next: number;
  /** The number of the snapshot that was read, or of the first journal. */
  readonly from: number;
  /** The bytes of an unfinished batch that were cut off. */
  readonly tornBytes: number;
};

/** Puts back the newest snapshot and the journals that follow it. Removes what an interrupted snapshot left. */
function recover(
  directory: DataDirectory,
  replay: Replay,
  { clock, log, boot }: Pick<MemoryOptions, 'clock' | 'log'> & { readonly boot: string | null },
): Recovered {
  const onBytes = progressOf({ clock, log });
  const { snapshot, journals, missing, from, next } = directory.toRead();
  if (missing !== null) refuseDamage(missing, 'it is not there');
  if (snapshot !== null) {
    const end = readInto(snapshot, replay, onBytes);
    if (end.kind !== 'whole') refuseDamage(snapshot, badPart(end));
    if (!replay.complete) refuseDamage(snapshot, 'it has no end');
  }
  replay.endSnapshot();
  let tornBytes = 0;
  const read: string[] = [];
  for (const [index, path] of journals.entries()) {
    const end = readInto(path, replay, onBytes);
    read.push(path);
    if (end.kind === 'whole') continue;
    const later = journals.slice(index + 1);
    const lostPower = boot === null || replay.header?.boot !== boot;
    if (!mayBeCut(end, later, lostPower)) refuseDamage(path, badPart(end));
    for (const unsynced of later) rmSync(unsynced);
    cutFile(path, end.offset);
    const { kind, bytes, sha256 } = end;
    log.warn({ path, kind, bytes, sha256, later }, 'what was written last is not whole: it was cut off');
    tornBytes = bytes;
    break;
  }
  directory.removeUnfinished();
  return { journals: read, next, from, tornBytes };
}

/**
 * Syncs files that another process has written, because what is recorded from now on depends on them. A killed process
 * leaves writes that the disk does not have yet.
 */
function syncFiles(paths: readonly string[], openFile: OpenFile = openBatchFile): void {
  for (const path of paths) {
    const file = openFile(path);
    file.syncNow();
    file.close();
  }
}

function readInto(path: string, replay: Replay, onBytes: (bytes: number) => void): FileEnd {
  let first = true;
  return readBatches(path, (body) => {
    replay.batch(body);
    onBytes(body.length);
    if (first && replay.header?.format !== FORMAT)
      refuse(
        `${path} has the form ${replay.header?.format} of version ${replay.header?.version}.`,
        'this version cannot read it',
      );
    first = false;
  });
}

/** How long a start may take before the log says that it goes on, in milliseconds. */
const SILENT_MS = 1_000;

/** Returns a function that counts the bytes that were read, and tells the log of them once a second. */
function progressOf({ clock, log }: Pick<MemoryOptions, 'clock' | 'log'>): (bytes: number) => void {
  let toldAt = clock.monotonic();
  let bytes = 0;
  return (more) => {
    bytes += more;
    if (clock.monotonic() - toldAt < SILENT_MS) return;
    toldAt = clock.monotonic();
    log.info({ bytes }, 'reading the data directory');
  };
}

function badPart({ bytes, offset }: BadEnd): string {
  return `${bytes} bytes from byte ${offset} on`;
}

function refuseDamage(path: string, what: string): never {
  return refuse(
    `${path} is damaged. "callboard data check" shows more, "callboard data accept-loss" starts without what cannot be read.`,
    what,
  );
}

type Ended = {
  /** The id of this boot of the system. */
  readonly boot: string | null;
  readonly tornBytes: number;
  /** Whether records were given up; see `DataDirectory.loss`. */
  readonly gaveUp: boolean;
};

/** Returns how the relay was away; null if nothing was recorded before. */
function awayOf({ lastAt, clean, header }: Replay, { boot, tornBytes, gaveUp }: Ended): Away | null {
  if (header === null) return null;
  const sameBoot = boot !== null && header.boot === boot;
  const unsynced = !clean && !sameBoot && header.sync !== 'always';
  return { since: lastAt, clean, tornBytes, lost: unsynced || gaveUp };
}

type Resumed = {
  readonly replay: Replay;
  readonly tables: MemoryTables;
  readonly ports: Omit<Backend, 'ready' | 'close'>;
  readonly plain: MemoryBackend;
  readonly away: Away | null;
  /** The time of the start, in epoch milliseconds. */
  readonly now: number;
};

/**
 * Does what is done when a node is lost: its links are lost, and commands that were not dispatched wait for their
 * clients again. After a loss, nothing is known of the commands that had not ended. Link histories show the time
 * without the relay.
 */
function resume({ replay, tables, ports, plain, away, now }: Resumed): void {
  for (const [hash, until] of replay.tickets) if (until > now) void plain.tickets.take(hash, until - now);
  if (away) tables.dedup.resume(now);
  const { commands, connections, history } = ports;
  for (const { userId, clientId, epoch } of replay.finish(now))
    void connections.disconnect({ userId, clientId }, epoch, 'node_lost');
  if (away) for (const userId of replay.usersAtEnd) void history.retain(awayRow(userId, away));
  const queues = tables.ledger.clients().toArray();
  if (away?.lost) {
    const live = queues.flatMap(({ waiting, running }) => [...waiting, ...running].map(keyOf));
    for (const key of live) void commands.settle(key, { kind: 'give_up', code: 'store_lost', instanceId: null });
  }
  for (const { head, binding } of queues) {
    const { userId, clientId } = head;
    const bound = binding ?? { nodeId: '', instanceId: '', epoch: tables.connections.lastEpoch };
    // A snapshot keeps no bindings, so a client may have queued commands without one.
    const queue = tables.ledger.peekClient(head);
    if (queue) queue.binding = bound;
    void commands.rebind({ userId, clientId }, bound, 'down');
  }
}

/** Returns the row of a user's link history that says that the relay was away, and how it had ended. */
export function awayRow(userId: string, { since, clean, lost }: Away): NewMessage {
  const ended = clean ? 'The relay was stopped' : 'The relay ended unexpectedly';
  const unexpected = clean ? null : { code: 'node_lost', message: `${ended}.` };
  return {
    ...NO_PAYLOAD,
    id: `relay_away:${new Date(since).toISOString()}`,
    userId,
    suffix: LINK_STREAM,
    kind: 'relay_away',
    clientId: null,
    instanceId: null,
    commandId: null,
    traceId: null,
    parentSpanId: null,
    error: lost ? { code: 'store_lost', message: `${ended}, and records of its last time are missing.` } : unexpected,
  };
}

// Writes snapshots.

type SnapshotsParts = {
  readonly options: DataOptions;
  readonly directory: DataDirectory;
  readonly journal: Journal;
  readonly tables: MemoryTables;
  readonly header: Header;
  readonly clock: Clock;
  readonly tickets: ReadonlyMap<string, number>;
  /** The number of the newest snapshot, or of the first journal. */
  readonly from: number;
};

/** Writes a snapshot whenever the journal has become longer than the one before. */
class Snapshots {
  readonly #parts: SnapshotsParts;
  readonly #stopChecks: () => void;
  #running: Promise<void> | null = null;
  #closing = false;
  #notBefore = -Infinity;
  #from: number;
  lastAt: number | null = null;

  constructor(parts: SnapshotsParts) {
    this.#parts = parts;
    this.#from = parts.from;
    this.#stopChecks = parts.clock.every(CHECK_MS, () => this.#check());
  }

  /** Writes a snapshot now, or waits for the one that is being written. */
  write(): Promise<void> {
    return (this.#running ??= this.#write().finally(() => (this.#running = null)));
  }

  async close(): Promise<void> {
    this.#stopChecks();
    if (!this.#running) return this.write().finally(() => (this.#closing = true));
    this.#closing = true;
    await this.#running;
  }

  #check(): void {
    const { journal, directory, clock, options } = this.#parts;
    if (this.#running || journal.full || clock.monotonic() < this.#notBefore) return;
    const { journalBytes = JOURNAL_BYTES } = options;
    if (this.#journalBytes() <= Math.max(journalBytes, sizeOf(directory.snapshot(this.#from)))) return;
    void this.write();
  }

  #journalBytes(): number {
    const { journal, directory } = this.#parts;
    let bytes = journal.size;
    for (let number = this.#from; number < journal.number; number++) bytes += sizeOf(directory.journal(number));
    return bytes;
  }

  async #write(): Promise<void> {
    const { options, directory, journal, tables, header, clock, tickets } = this.#parts;
    const { openFile = openBatchFile, loop, memory } = options;
    try {
      const head = headOf(header, clock.now());
      const number = journal.rotate(head);
      const path = directory.snapshot(number);
      const times = { now: () => clock.now(), monotonic: () => clock.monotonic() };
      const report = await writeSnapshot(
        { tables, path, head, openFile, loop, tickets, ...times, recorded: () => journal.synced() },
        () => this.#closing,
      );
      if (!report) return;
      await syncNames(directory);
      await directory.removeBefore(number);
      this.#from = number;
      this.lastAt = clock.now();
      memory.log.debug({ ...report }, 'a snapshot was written');
    } catch (error) {
      this.#notBefore = clock.monotonic() + RETRY_MS;
      memory.log.warn({ err: error }, 'a snapshot could not be written; the journal goes on');
    }
  }
}

async function syncNames(directory: DataDirectory): Promise<void> {
  const names = directory.names();
  await new Promise<void>((done, failed) => names.sync((error) => (error ? failed(error) : done())));
  names.close();
}
