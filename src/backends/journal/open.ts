/**
 * The backend of direct mode with a data directory: opens the directory, restores the memory backend from it, and
 * records and snapshots its state until it is closed.
 */
import type { AuditStore } from '../../core/audit/audit-store.ts';
import type { Away, Backend, Durability } from '../../core/backend.ts';
import { CallboardError, fail } from '../../core/errors.ts';
import { LINK_STREAM, NO_PAYLOAD, type NewMessage } from '../../core/history/message.ts';
import { FORGET_MS } from '../../core/limits.ts';
import type { Crypto, EventLoop } from '../../core/ports.ts';
import type { MemoryBackend, MemoryOptions, MemoryTables } from '../memory/backend.ts';
import {
  BatchChain,
  NO_BATCH,
  cutFile,
  mayBeCut,
  batchFilesOn,
  readBatches,
  type BadEnd,
  type BatchName,
  type FileEnd,
  type OpenFile,
} from './batches.ts';
import { systemDisk, type DataLock, type Disk } from './disk.ts';
import { DataDirectory } from './files.ts';
import { Journal, type DataSync } from './journal.ts';
import { NO_USER, type Header } from './records.ts';
import type { Replay } from './replay.ts';
import { RecordRoom } from './room.ts';
import { Snapshots } from './snapshot.ts';
import { giveUpAll, RecordedState } from './state.ts';

/** The version of the file format. A relay refuses a directory with another version. */
const FORMAT = 3;

export type DataOptions = {
  readonly root: string;
  readonly sync: DataSync;
  /** The version of the relay, which is written into the files. */
  readonly version: string;
  readonly loop: EventLoop;
  /** Generates the key of a new directory. */
  readonly random: Pick<Crypto, 'randomToken'>;
  readonly memory: Omit<MemoryOptions, 'watcher' | 'makeTransaction' | 'markSecret' | 'audit'> & {
    /** Opens the audit, after the directory was created and locked. If absent, the audit is kept in memory. */
    readonly openAudit?: (directory: DataDirectory) => AuditStore;
  };
  /** Called if records can neither be written nor given up. The caller must end the process. */
  readonly onFailure: (error: Error) => void;
  /** Default: the disk of the system. */
  readonly disk?: Disk;
  readonly openFile?: OpenFile;
  /** The cost of the journal at which a snapshot is due. Default: that of RecordRoom. */
  readonly journalCost?: number;
};

/** A backend with a data directory. `snapshot` writes a snapshot at once. */
export type DurableBackend = Backend & { durability(): Durability; snapshot(): Promise<void> };

/** An open directory, with a key that stays the same for the lifetime of the directory. */
export type OpenData = {
  readonly backend: DurableBackend;
  /** Signs cursors. */
  readonly cursorKey: Uint8Array;
  readonly directory: DataDirectory;
};

/** Whether `node:sqlite`, which provides the lock, is stable in this version of Node (24.15 or later). */
function hasSqlite(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 15);
}

/**
 * Opens a data directory, and restores the state that it contains. Throws `store_unavailable` if the directory is in
 * use, is damaged, or has another format; in these cases it stays unchanged.
 */
export async function openData(options: DataOptions): Promise<OpenData> {
  const { root, disk = systemDisk } = options;
  if (!hasSqlite(process.versions.node))
    return refuse(`A data directory needs Node.js 24.15 or later.`, `this is ${process.versions.node}`);
  const { directory, lock } = await locked(root, disk);
  if (!lock) return refuse(`The data directory ${root} is in use by another process.`, 'it has the lock');
  try {
    return open(options, directory, lock);
  } catch (error) {
    lock.release();
    if (error instanceof CallboardError) throw error;
    return refuse(`The data directory ${root} cannot be used.`, error instanceof Error ? error.message : 'unknown');
  }
}

async function locked(root: string, disk: Disk): Promise<{ directory: DataDirectory; lock: DataLock | null }> {
  try {
    const directory = new DataDirectory(root, disk);
    return { directory, lock: await directory.lock() };
  } catch (error) {
    return refuse(`The data directory ${root} cannot be used.`, error instanceof Error ? error.message : 'unknown');
  }
}

function open(options: DataOptions, directory: DataDirectory, lock: DataLock): OpenData {
  const { disk } = directory;
  const { memory, sync, version, onFailure, openFile = batchFilesOn(disk) } = options;
  const { log } = memory;
  const boot = disk.boot();
  const network = disk.networkFileSystem(directory.root);
  if (network)
    log.warn({ network }, 'the data directory is on a network file system, whose locks and syncs may not hold');
  const keys = directory.keys(options.random);
  const room = new RecordRoom(options.journalCost === undefined ? {} : { dueCost: options.journalCost });
  const { openAudit, ...memoryOptions } = memory;
  // The state is created before the journal, because the number of the journal is known only after the state was
  // restored.
  const state = new RecordedState({
    ...memoryOptions,
    room,
    audit: openAudit?.(directory),
    markSecret: Buffer.from(keys('marks')).toString('base64url'),
  });
  const { clock, records, replay, tables, ports, plain } = state;
  const { journals, next, from, after, tornBytes } = recover(directory, replay, { ...memory, boot });
  state.begin();
  const bytes = journals.reduce((sum, path) => sum + disk.sizeOf(path), 0);
  room.start(disk.sizeOf(directory.snapshot(from)), { bytes, records: replay.journalActs });
  const header: Header = { format: FORMAT, version, boot, sync };
  syncFiles(directory, journals, openFile);
  const gaveUp = disk.exists(directory.loss);
  const away = awayOf(replay, { tornBytes, gaveUp, unsynced: directory.mayMissUnsynced(replay.header?.boot, boot) });
  // If this start fails before the consequences of the loss are recorded, the next start must still learn of the loss.
  if (away?.lost && !gaveUp) disk.open(directory.loss, 'append').close();
  const journal = new Journal(next, after, {
    directory,
    header,
    sync,
    log,
    onFailure,
    records,
    room,
    openFile,
    clock: memory.clock,
    loop: options.loop,
  });
  state.onFirst = () => journal.wake();
  const reportsMissingUntil = resume({ replay, tables, ports, plain, away, now: memory.clock.now() });
  journal.syncNow();
  journal.onRecord(() => {
    for (const dealtWith of [directory.loss, directory.unsynced]) disk.remove(dealtWith);
  });
  // If a relay was killed while it removed the files before its newest snapshot, some of them still exist.
  void directory.removeBefore(from).catch((error: unknown) => log.warn({ err: error }, 'old files are still there'));
  if (away?.lost) log.warn({ since: away.since }, 'records are missing: commands that had not ended end as unknown');
  const snapshots = new Snapshots({
    log: journal,
    room,
    tables,
    clock,
    loop: options.loop,
    logger: log,
    tickets: replay.tickets,
  });
  const backend: DurableBackend = {
    ...ports,
    onRecord: (run, holder) => journal.onRecord(run, holder),
    reportsMissingUntil: () => reportsMissingUntil,
    ready: () => room.requireSpace(),
    durability: () => ({
      kind: 'directory',
      sync: typeof sync === 'number' ? `${sync} ms` : sync,
      bytes: directory.size(),
      full: room.full,
      snapshotAt: snapshots.lastAt,
      away,
    }),
    snapshot: () => snapshots.write(),
    async close() {
      await snapshots.close();
      records.begin(clock.now(), NO_USER);
      records.add('closed');
      await journal.close();
      await plain.close();
      lock.release();
    },
  };
  return { backend, directory, cursorKey: keys('cursors') };
}

function refuse(message: string, reason: string): never {
  return fail('store_unavailable', message, { cause: new Error(reason) });
}

// Reads a directory.

type Recovered = {
  /** The paths of the journals that were read. */
  readonly journals: readonly string[];
  /** The number of the next journal. */
  readonly next: number;
  /** The number of the snapshot that was read; without a snapshot, the number of the first journal. */
  readonly from: number;
  /** The last batch that was read. The next batch follows it. */
  readonly after: BatchName;
  /** The number of bytes of an unfinished batch that was cut off. */
  readonly tornBytes: number;
};

/**
 * Restores the state from the newest snapshot and the journals that follow it. Removes the files of an interrupted
 * snapshot.
 */
export function recover(
  directory: DataDirectory,
  replay: Replay,
  { clock, log, boot }: Pick<MemoryOptions, 'clock' | 'log'> & { readonly boot: string | null },
): Recovered {
  const { disk } = directory;
  const onBytes = progressOf({ clock, log });
  const { snapshot, journals, missing, from } = directory.toRead();
  if (missing !== null) refuseDamage(missing, 'it is not there');
  if (snapshot !== null) {
    const end = readInto({ disk, path: snapshot }, new BatchChain(NO_BATCH), { replay, onBytes });
    if (end.kind !== 'whole') refuseDamage(snapshot, badPart(end));
    if (!replay.complete) refuseDamage(snapshot, 'it has no end');
  }
  replay.endSnapshot();
  // Without a snapshot, the first journal must be the first of all, unless earlier ones were given up.
  const chain = new BatchChain(snapshot === null && disk.exists(directory.loss) ? null : replay.after);
  let tornBytes = 0;
  const read: string[] = [];
  for (const [index, path] of journals.entries()) {
    const end = readInto({ disk, path }, chain, { replay, onBytes });
    read.push(path);
    if (end.kind === 'whole') continue;
    const [, ...later] = journals.slice(index);
    const lostPower = directory.mayMissUnsynced(replay.header?.boot, boot);
    if (!mayBeCut(end, { disk, files: [path, ...later], lostPower })) refuseDamage(path, badPart(end));
    for (const unsynced of later) disk.remove(unsynced);
    directory.syncing(() => cutFile({ disk, path }, end.offset));
    const { kind, bytes, sha256 } = end;
    log.warn({ path, kind, bytes, sha256, later }, 'what was written last is not whole: it was cut off');
    tornBytes = bytes;
    break;
  }
  directory.removeUnfinished();
  // The next journal takes the number after the last journal that was kept. A gap in the numbers would look like a
  // missing file at the next start.
  return { journals: read, next: from + read.length, from, after: chain.last, tornBytes };
}

/**
 * Syncs files that another process wrote, because all later records depend on them. If that process was killed, some of
 * its writes may not be on the disk yet.
 */
function syncFiles(directory: DataDirectory, paths: readonly string[], openFile: OpenFile): void {
  for (const path of paths) {
    const file = openFile(path);
    directory.syncing(() => file.syncNow());
    file.close();
  }
}

type Into = { readonly replay: Replay; readonly onBytes: (bytes: number) => void };

type ReadFile = { readonly disk: Disk; readonly path: string };

function readInto({ disk, path }: ReadFile, chain: BatchChain, { replay, onBytes }: Into): FileEnd {
  let first = true;
  return readBatches({ disk, path }, chain, (body) => {
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

/** How long a start may take before the log shows its progress, in milliseconds. */
const SILENT_MS = 1_000;

/** Returns a function that adds up the bytes read, and logs the sum once a second. */
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

function badPart({ kind, bytes, offset }: BadEnd): string {
  if (kind === 'misplaced') return `the batch at byte ${offset} does not follow the one before it`;
  return `${bytes} bytes from byte ${offset} on`;
}

function refuseDamage(path: string, what: string): never {
  return refuse(
    `${path} is damaged. "callboard data check" shows more, "callboard data accept-loss" starts without what cannot be read.`,
    what,
  );
}

type PreviousRun = {
  readonly tornBytes: number;
  /** Whether data that was not synced may be missing. */
  readonly unsynced: boolean;
  /** Whether records were given up; see `DataDirectory.loss`. */
  readonly gaveUp: boolean;
};

/** Returns how long the relay was away and whether records are missing; null if the directory was empty. */
function awayOf({ lastAt, clean, header }: Replay, { tornBytes, gaveUp, unsynced }: PreviousRun): Away | null {
  if (header === null) return null;
  const isMissing = unsynced && !clean && header.sync !== 'always';
  return { since: lastAt, clean, tornBytes, lost: isMissing || gaveUp };
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
 * Treats the former process like a lost node: its links are lost, and commands that were not dispatched wait for their
 * clients again. If records are missing, all unfinished commands end as unknown. Link histories get a row about the
 * relay's absence. Returns the time until which earlier clients may report their contexts and windows again, in epoch
 * milliseconds; 0 if no client was connected.
 */
function resume({ replay, tables, ports, plain, away, now }: Resumed): number {
  for (const [hash, until] of replay.tickets) if (until > now) void plain.tickets.take(hash, until - now);
  if (away) tables.dedup.resume(now);
  const { commands, connections, history } = ports;
  const present = replay.finish(now);
  for (const { userId, clientId, epoch } of present)
    void connections.disconnect({ userId, clientId }, epoch, 'node_lost');
  if (away) for (const userId of replay.usersAtEnd) void history.retain(awayRow(userId, away));
  const queues = tables.ledger.clients().toArray();
  if (away?.lost) giveUpAll({ tables, ports });
  for (const { head, binding } of queues) {
    const { userId, clientId } = head;
    const bound = binding ?? { nodeId: '', instanceId: '', epoch: tables.connections.lastEpoch };
    // A snapshot stores no bindings, so a client may have queued commands but no binding.
    const queue = tables.ledger.peekClient(head);
    if (queue) queue.binding = bound;
    void commands.rebind({ userId, clientId }, bound, 'down');
  }
  return present.length === 0 ? 0 : now + FORGET_MS;
}

/** Returns the row of a user's link history that shows that the relay was away and how its process ended. */
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
