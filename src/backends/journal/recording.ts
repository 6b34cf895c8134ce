/**
 * Wraps the memory backend so that each change is recorded in a journal: a transaction that records changes of
 * commands, and ports that record all other changes.
 *
 * KEPT says for each method of each port whether its changes are recorded.
 */
import type { Backend, PortMethod, PortName } from '../../core/backend.ts';
import type { Command } from '../../core/commands/command.ts';
import type { CommandRules } from '../../core/commands/rules.ts';
import type { AdmitRequest, Binding } from '../../core/commands/command-store.ts';
import type { CommandMessage, Progress, Transaction } from '../../core/commands/transaction.ts';
import { advertisedBytes, type Connection } from '../../core/connections/connection.ts';
import { NO_PAYLOAD, type NewMessage } from '../../core/history/message.ts';
import type { Confirmation, Device } from '../../core/devices/device.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import { DEVICE_ACTIONS } from '../../core/limits.ts';
import { thenDo } from '../../core/maybe-promise.ts';
import type { JsonText } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { NewRevocation } from '../../core/revocations/revocation.ts';
import type { NewGrant } from '../../core/sites/site-stores.ts';
import type { MemoryBackend, MemoryTables, MemoryWatcher } from '../memory/backend.ts';
import { MemoryTransaction, type TransactionDeps, type AddedRequest, type Client } from '../memory/commands.ts';
import { sameActions } from '../memory/connections.ts';
import type { Entry } from '../memory/ledger.ts';
import { NEW_COMMAND, NO_USER, addAttempt, addRow, differenceOf, packTrace, type ActWriter } from './records.ts';
import type { EndingAct, Growth, RecordRoom, Room } from './room.ts';

/**
 * What happens to the changes of a method when the process ends. `read`: the method changes nothing. `grows`: it adds
 * data, which is restored and needs room. `ends`: it ends or removes data; this is restored and needs no room.
 * `by_act`: its changes are restored, and the transaction records them; they concern a command that already got room.
 * `process`: its changes are lost with the process, because they describe the process, are reported again, or only
 * count.
 */
type Persistence = 'read' | 'grows' | 'ends' | 'by_act' | 'process';
type PortPersistence = { readonly [P in PortName]: { readonly [M in PortMethod<P>]: Persistence } };

/**
 * What happens to the changes of each method of each port when the process ends. A new method does not compile until it
 * has a row here.
 */
export const KEPT = {
  commands: {
    ...{ admit: 'grows', dispatch: 'by_act', report: 'by_act', finish: 'by_act', settle: 'by_act', rebind: 'by_act' },
    ...{ preview: 'read', live: 'read', loads: 'read', get: 'read', mark: 'read', result: 'read' },
  },
  waiters: {
    ...{ attach: 'process', remove: 'process' },
    ...{ list: 'read', countByNode: 'read', ofUsers: 'read', ofClients: 'read', ofCommands: 'read' },
  },
  nodes: {
    ...{ attach: 'process', beat: 'process', post: 'process' },
    ...{ due: 'read', list: 'read', silent: 'read', reportTimes: 'read', living: 'read', get: 'read' },
  },
  inspector: {
    ...{ summary: 'read', scopes: 'read', getScopes: 'read', reservedScopes: 'read', busiest: 'read', list: 'read' },
  },
  connections: {
    ...{ connect: 'grows', advertise: 'grows', disconnect: 'ends', touch: 'process' },
    ...{ get: 'read', lastSeen: 'read', list: 'read', ofUsers: 'read', users: 'read', quietest: 'read' },
  },
  reconnects: { note: 'process', counts: 'read', top: 'read' },
  contexts: {
    ...{ report: 'process', list: 'read', lists: 'read', count: 'read', windows: 'read', windowLists: 'read' },
    ...{ windowCount: 'read', windowsNamed: 'read', getContexts: 'read', getWindows: 'read' },
  },
  history: {
    // Only the relay itself retains rows by this method, for example `relay_away`.
    ...{ retain: 'ends', ingest: 'grows' },
    ...{ streams: 'read', ofUsers: 'read', messages: 'read', ofCommand: 'read', sample: 'read', users: 'read' },
  },
  dedup: { stats: 'read', backend: 'read' },
  sites: { put: 'grows', remove: 'ends', get: 'read', list: 'read', ofUsers: 'read' },
  sessions: {
    ...{ open: 'grows', close: 'ends', addGrant: 'grows', revokeGrant: 'ends' },
    ...{ putTicket: 'process', redeemTicket: 'process' },
    ...{ prefixOf: 'read', get: 'read', findByToken: 'read', list: 'read' },
  },
  // The audit has its own file, so the journal does not record it.
  audit: { append: 'process', close: 'process', head: 'read', list: 'read', lines: 'read' },
  pauses: {
    // A pause needs no room on the disk, so that a person can stop calls even when the disk is full. Pauses are few and
    // their texts short.
    ...{ keep: 'ends', lift: 'ends', lapse: 'ends' },
    ...{ parts: 'read', deciderOf: 'read', list: 'read', reach: 'read', covered: 'read' },
  },
  tickets: { take: 'grows' },
  revocations: { add: 'grows', after: 'read' },
  devices: {
    ...{ decide: 'grows', use: 'ends', rename: 'ends', remove: 'ends' },
    // Open enrolments are lost with the process.
    ...{ begin: 'process', find: 'read', ofKey: 'read', get: 'read', list: 'read' },
  },
  bus: { publish: 'process', subscribe: 'process', confirmed: 'process', hasSubscribers: 'read' },
} as const satisfies PortPersistence;

/** A method that claims room before it adds data. Only `growsIn` creates one. */
type Growing<Method> = Method & { readonly [grown]: true };
declare const grown: unique symbol;

type PersistenceOf<P extends keyof typeof KEPT> = (typeof KEPT)[P][keyof (typeof KEPT)[P]];
/**
 * The methods that the recorded ports must provide: exactly the methods that KEPT marks `grows` or `ends`. A `grows`
 * method must have been created by `growsIn`.
 */
type Recorded = {
  [P in keyof typeof KEPT as Extract<PersistenceOf<P>, 'grows' | 'ends'> extends never ? never : P]: {
    [
      M in keyof (typeof KEPT)[P] & keyof Backend[P] as (typeof KEPT)[P][M] extends 'grows' | 'ends' ? M : never
    ]: (typeof KEPT)[P][M] extends 'grows' ? Growing<Backend[P][M]> : Backend[P][M];
  };
};

type Verb = keyof Transaction<Entry, Client>;

/** Whether RecordingTransaction records the changes of each method of a transaction. */
export const VERBS = {
  ...{ now: 'read', find: 'read', markOf: 'read', client: 'read', isOutdated: 'read', isOver: 'read', params: 'read' },
  pauseOf: 'read',
  ...{ keptParams: 'read' },
  ...{ result: 'read', reserved: 'read', scopeFull: 'read', memberFull: 'read', queueFull: 'read', noMark: 'read' },
  ...{ noRoom: 'read', waitForToken: 'read', canWait: 'read', sha256: 'read', moving: 'read', context: 'read' },
  ...{ add: 'grows', reserveMark: 'by_act', retain: 'by_act', move: 'by_act', queue: 'by_act' },
  ...{ run: 'by_act', noteProgress: 'by_act', end: 'by_act', bind: 'by_act', countEnd: 'process' },
  // The params of dispatched commands are not restored after a restart.
  ...{ arrived: 'process' },
  ...{ wait: 'process', unwait: 'process', offer: 'process', post: 'process', reply: 'process', takeToken: 'process' },
} as const satisfies { readonly [V in Verb]: Persistence };

/** The transaction of the memory backend, which records each change. */
export class RecordingTransaction extends MemoryTransaction {
  readonly #records: ActWriter;
  readonly #space: RecordSpace;
  /** The room that the current act claimed; null if it claimed none. */
  #room: Room | null = null;

  constructor(acts: TransactionDeps, records: ActWriter, space: RecordSpace) {
    super(acts);
    this.#records = records;
    this.#space = space;
  }

  /** Runs an act that may add a command, with the room that was claimed for it. */
  within<T>(room: Room, act: () => T): T {
    this.#room = room;
    try {
      return act();
    } finally {
      this.#room = null;
    }
  }

  override begin(): CommandRules<Entry, Client> {
    const rules = super.begin();
    this.#records.begin(this.now, this.#room ?? NO_USER);
    return rules;
  }

  override add(client: Client, request: AddedRequest, command: Command, markedBy: string | null): Entry {
    const records = this.#records;
    if (!this.#room) throw new Error('a command is added without room for its record');
    const entry = super.add(client, request, command, markedBy);
    const params = records.payload(entry.params);
    this.#about(entry);
    addAttempt(records, entry.markedBy);
    records.addText(`"add",${differenceOf(NEW_COMMAND, command, records.at)},${entry.marked ? 1 : 0},${params}`);
    return entry;
  }

  override reserveMark(entry: Entry): void {
    const before = entry.marked;
    super.reserveMark(entry);
    if (!entry.marked || before) return;
    this.#about(entry);
    this.#records.addText('"mark"');
  }

  override retain(entry: Entry, row: CommandMessage): number | null {
    const records = this.#records;
    const trace = packTrace(entry.trace);
    const payload = row.kept?.payload ?? null;
    const recorded = payload !== null && this.#leavesOut(entry, payload) ? { ...row, kept: NO_PAYLOAD } : row;
    // `deferred` puts the facts about rows that this row displaces after the fact about this row.
    return records.deferred(
      () => super.retain(entry, row),
      (seq) => {
        this.#about(entry);
        addRow(records, entry.commandId, { ...recorded, trace, seq: seq ?? 0 });
      },
    );
  }

  override move(entry: Entry, command: Command): void {
    this.#change('move', entry, command);
    super.move(entry, command);
  }

  override queue(entry: Entry, command: Command): void {
    this.#change('queue', entry, command);
    super.queue(entry, command);
  }

  override run(entry: Entry, command: Command, markedBy: string | null): JsonText | null {
    this.#about(entry);
    addAttempt(this.#records, this.keepsAttempts ? markedBy : null);
    this.#change('run', entry, command);
    return super.run(entry, command, markedBy);
  }

  override noteProgress(entry: Entry, progress: Progress): void {
    this.#about(entry);
    this.#records.addText(`"progress",${progress.rows},${progress.at}`);
    super.noteProgress(entry, progress);
  }

  override end(entry: Entry, command: Command, result: JsonText | null): void {
    const records = this.#records;
    const leftOut = result !== null && this.#leavesOut(entry, result);
    this.#change('end', entry, command);
    records.addText(String(records.payload(leftOut ? null : result)));
    if (leftOut) records.addText('"no_result"');
    super.end(entry, command, result);
    records.forget(entry);
  }

  /**
   * Whether a payload is left out of the records because there is no room for it. An end is recorded in any case, and
   * its waiters get the result. But if the process restarts before the next snapshot, the end is restored without the
   * result.
   */
  #leavesOut({ userId }: Entry, payload: JsonText): boolean {
    if (this.#room || this.#space.has(userId, payload.length)) return false;
    this.#space.omit();
    return true;
  }

  override bind(key: ClientKey, binding: Binding | null): void {
    this.#records.add('bind', key.userId, key.clientId, binding && [binding.nodeId, binding.instanceId, binding.epoch]);
    super.bind(key, binding);
  }

  #change(fact: 'move' | 'queue' | 'run' | 'end', entry: Entry, command: Command): void {
    this.#about(entry);
    this.#records.addText(`"${fact}",${differenceOf(entry.command, command, this.#records.at)}`);
  }

  /**
   * A live command gets a number, which later facts use. A command that has ended gets none, because few acts concern
   * it.
   */
  #about(entry: Entry): void {
    this.#records.about(entry, entry.terminalAt === null);
  }
}

/** The parts that the recorded ports need besides the memory backend. */
type Recording = {
  readonly tables: MemoryTables;
  readonly records: ActWriter;
  readonly clock: Pick<Clock, 'now'>;
  /** The used sign-in tickets, with the time until which each is remembered, in epoch milliseconds. */
  readonly tickets: Map<string, number>;
  readonly space: RecordSpace;
  readonly within: RecordingTransaction['within'];
};

/** The methods with which recorded ports claim room in the journal. */
type RecordSpace = Pick<RecordRoom, 'claim' | 'has' | 'omit' | 'refusal'>;

/** The bytes of a record besides its texts. An estimate is enough, because the written bytes are counted later. */
const RECORD_BYTES = 512;

function sized(userId: string, ...texts: readonly (JsonText | string | null)[]): Growth {
  return { userId, bytes: texts.reduce((sum, text) => sum + (text?.length ?? 0), RECORD_BYTES) };
}

/**
 * Returns a function that creates methods which claim room. `growth` returns how much the method would add; `act` gets
 * the claimed room.
 */
function growsIn(space: RecordSpace) {
  return <A extends readonly unknown[], R>(growth: (...args: A) => Growth, act: (room: Room, ...args: A) => R) =>
    ((...args: A): R => act(space.claim(growth(...args)), ...args)) as Growing<(...args: A) => R>;
}

/** Returns the ports of the memory backend, which record what each of their methods changed. */
export function recordedPorts(memory: MemoryBackend, recording: Recording): Omit<Backend, 'ready' | 'close'> {
  const { commands, connections, history, sites, sessions } = memory;
  const recorded: Recorded = {
    commands: { admit: recordedAdmission(memory, recording) },
    connections: recordedConnections(recording),
    history: recordedHistory(memory, recording),
    ...recordedSites(memory, recording),
    pauses: recordedPauses(memory, recording),
    tickets: { take: recordedTickets(memory, recording) },
    revocations: { add: recordedRevocations(recording) },
    devices: recordedDevices(recording),
  };
  const observed = { report: reportIn(memory, recording), preview: previewIn(memory, recording) };
  return {
    ...memory,
    commands: { ...commands, ...recorded.commands, ...observed },
    connections: { ...connections, ...recorded.connections },
    history: { ...history, ...recorded.history },
    sites: { ...sites, ...recorded.sites },
    sessions: { ...sessions, ...recorded.sessions },
    pauses: { ...memory.pauses, ...recorded.pauses },
    tickets: recorded.tickets,
    revocations: { add: recorded.revocations.add, after: memory.revocations.after },
    devices: { ...memory.devices, ...recorded.devices },
  };
}

/** A request whose command id is known adds nothing, so it is answered even if there is no room. */
function recordedAdmission(
  { commands }: MemoryBackend,
  { tables, space, within }: Recording,
): Recorded['commands']['admit'] {
  const isKnown = (key: CommandKey): boolean =>
    tables.ledger.find(key) !== undefined || tables.ledger.mark(key, null) !== null;
  const growth = ({ userId, params }: AdmitRequest): Growth => sized(userId, params);
  const added = growsIn(space)(growth, (room, request) => within(room, () => commands.admit(request)));
  const isRefused = (request: AdmitRequest): boolean => space.refusal(growth(request)) !== null;
  return ((request) =>
    isRefused(request) && isKnown(request) ? commands.admit(request) : added(request)) as typeof added;
}

/** A preview is also refused if the data directory has no room for the call. */
function previewIn({ commands }: MemoryBackend, { space }: Recording): typeof commands.preview {
  return (question) =>
    thenDo(commands.preview(question), (preview) => {
      const adds = preview.answer.kind === 'admitted';
      const refusal = adds ? space.refusal(sized(question.userId, question.params)) : null;
      return refusal ? { ...preview, answer: { kind: 'refused', ...refusal } } : preview;
    });
}

/** If there is no room for progress, no row is retained, but waiters still receive the progress. */
function reportIn({ commands }: MemoryBackend, { space }: Recording): typeof commands.report {
  return (key, report) => {
    const { kind, kept } = report;
    const payload = kind === 'progress' && kept?.spill === null ? kept.payload : null;
    const hasRoom = payload === null || space.has(key.userId, sized(key.userId, payload).bytes);
    return commands.report(key, hasRoom ? report : { ...report, kept: null });
  };
}

function recordedConnections({ tables, records, clock, space }: Recording): Recorded['connections'] {
  const { connections } = tables;
  const grows = growsIn(space);
  const actionsBytes = (actions: Connection['actions']): number =>
    records.hasActions(actions) ? 0 : actions.reduce((sum, action) => sum + advertisedBytes(action), 0);
  return {
    connect: grows(
      ({ userId, clientId, metadata, actions }) => {
        const { bytes } = sized(userId, metadata);
        const known = sameActions(connections.peek({ userId, clientId })?.actions ?? [], actions);
        return { userId, bytes: bytes + actionsBytes(known) };
      },
      (room, request) => {
        records.begin(clock.now(), room);
        const result = connections.connect(request);
        records.addConnection(result.connection);
        return result;
      },
    ),
    advertise: grows(
      ({ userId }: ClientKey, _epoch: number, actions: Connection['actions']) => ({
        userId,
        bytes: RECORD_BYTES + actionsBytes(actions),
      }),
      (room, key, epoch, actions) => {
        records.begin(clock.now(), room);
        const before = connections.peek(key)?.actions;
        const connection = connections.advertise(key, epoch, actions);
        if (connection && connection.actions !== before) records.addConnection(connection);
        return connection;
      },
    ),
    disconnect(key, epoch, cause, closeCode) {
      records.begin(clock.now(), key);
      // A link ends once. A later report of its end changes nothing and is not recorded.
      const isUp = connections.peek(key)?.disconnectedAt === null;
      const connection = connections.disconnect(key, epoch, cause, closeCode);
      if (connection && isUp)
        records.add('lost', key.userId, key.clientId, epoch, connection.disconnectedAt, cause, closeCode ?? null);
      return connection;
    },
  };
}

function recordedHistory({ history }: MemoryBackend, recording: Recording): Recorded['history'] {
  return {
    retain: (message) => keepMessage(recording, 'retained', message, () => history.retain(message)),
    ingest: growsIn(recording.space)(
      ({ userId, payload }) => sized(userId, payload),
      (room, message) => keepMessage(recording, 'ingested', message, () => history.ingest(message), room),
    ),
  };
}

function recordedSites(
  { sites, sessions }: MemoryBackend,
  { tables, records, clock, space }: Recording,
): Pick<Recorded, 'sites' | 'sessions'> {
  const grows = growsIn(space);
  const kept = (sessionId: string) => tables.sites.keptSession(sessionId);
  const ownerOf = (sessionId: string): EndingAct => kept(sessionId)?.session ?? NO_USER;
  /** Runs an act on a session. Records the session if the act changed it. */
  const recording = <T>(sessionId: string, permit: Room | EndingAct, act: () => T): T => {
    records.begin(clock.now(), permit);
    const before = kept(sessionId)?.session;
    const result = act();
    const after = kept(sessionId);
    if (after && after.session !== before) records.add('session', after.session, [...after.hashes]);
    return result;
  };
  return {
    sites: {
      put: grows(
        ({ userId, title, eventNames, actions }) => sized(userId, title, ...(eventNames ?? []), ...(actions ?? [])),
        (room, definition) => {
          records.begin(clock.now(), room);
          const result = sites.put(definition);
          if (isDone(result) && result.kind === 'put') records.add('site', result.site);
          return result;
        },
      ),
      remove(key) {
        records.begin(clock.now(), key);
        const result = sites.remove(key);
        if (isDone(result) && result) {
          records.add('site_gone', key.userId, key.siteId);
          for (const sessionId of result.closed) {
            const closed = kept(sessionId);
            if (closed) records.add('session', closed.session, [...closed.hashes]);
          }
        }
        return result;
      },
    },
    sessions: {
      open: grows(
        ({ userId }) => sized(userId),
        (room, session) => recording(session.sessionId, room, () => sessions.open(session)),
      ),
      close: (sessionId) => recording(sessionId, ownerOf(sessionId), () => sessions.close(sessionId)),
      addGrant: grows(
        (sessionId: string, _grant: NewGrant) => sized(ownerOf(sessionId).userId),
        (room, sessionId, grant) => recording(sessionId, room, () => sessions.addGrant(sessionId, grant)),
      ),
      revokeGrant: (sessionId, grantId) =>
        recording(sessionId, ownerOf(sessionId), () => sessions.revokeGrant(sessionId, grantId)),
    },
  };
}

function recordedPauses({ pauses }: MemoryBackend, { records, clock }: Recording): Recorded['pauses'] {
  const begin = (): void => records.begin(clock.now(), NO_USER);
  return {
    keep(part, pause) {
      begin();
      const kept = pauses.keep(part, pause);
      if (kept === 'kept') records.add('pause', pause);
      return kept;
    },
    lift(part, pauseId) {
      begin();
      const pause = pauses.lift(part, pauseId);
      records.add('pause_gone', pauseId);
      return pause;
    },
    lapse() {
      const over = pauses.lapse();
      if (!isDone(over) || over.length === 0) return over;
      begin();
      for (const { pauseId } of over) records.add('pause_gone', pauseId);
      return over;
    },
  };
}

function recordedTickets(
  { tickets }: MemoryBackend,
  { records, clock, space, tickets: used }: Recording,
): Recorded['tickets']['take'] {
  return growsIn(space)(
    (_ticketHash: string, _ttlMs: number) => sized(NO_USER.userId),
    (room, ticketHash, ttlMs) => {
      records.begin(clock.now(), room);
      const taken = tickets.take(ticketHash, ttlMs);
      if (taken !== true) return taken;
      for (const [hash, until] of used) if (until <= clock.now()) used.delete(hash);
      used.set(ticketHash, clock.now() + ttlMs);
      records.add('ticket', ticketHash, clock.now() + ttlMs);
      return taken;
    },
  );
}

function recordedRevocations({ tables, records, clock, space }: Recording): Recorded['revocations']['add'] {
  return growsIn(space)(
    ({ reason }: NewRevocation) => sized(NO_USER.userId, reason),
    (room, row) => {
      const added = tables.revocations.add(row);
      if (!isDone(added) || added === null) return added;
      records.begin(clock.now(), room);
      records.add('revocation', added);
      return added;
    },
  );
}

function recordedDevices({ tables: { devices }, records, clock, space }: Recording): Recorded['devices'] {
  const record = (device: Device, permit: Room | EndingAct = device): void => {
    records.begin(clock.now(), permit);
    records.add('device', device);
  };
  return {
    decide: growsIn(space)(
      (_codeHash: string, confirmation: Confirmation | null) =>
        sized(confirmation?.userId ?? NO_USER.userId, 'x'.repeat(DEVICE_ACTIONS)),
      (room, codeHash, confirmation) => {
        const decided = devices.decide(codeHash, confirmation);
        if (decided.kind === 'confirmed') record(decided.device, room);
        return decided;
      },
    ),
    use(keyId, at) {
      const device = devices.note(keyId, at);
      if (device) record(device);
      return device !== null;
    },
    rename(key, name) {
      const renamed = devices.rename(key, name);
      if (renamed) record(renamed);
      return renamed;
    },
    remove(key) {
      const removed = devices.remove(key);
      if (removed) {
        records.begin(clock.now(), key);
        records.add('device_gone', key.userId, key.clientId);
      }
      return removed;
    },
  };
}

/** Narrows the answer to its value. Every method of the memory backend answers in the same tick. */
function isDone<T>(answer: T): answer is Exclude<T, PromiseLike<unknown>> {
  return !(answer instanceof Promise);
}

type Retained = { readonly seq: number };

/** Records a message with the number of its row. The facts about rows that the message displaces come after it. */
function keepMessage<T>(
  { records, clock }: Pick<Recording, 'records' | 'clock'>,
  fact: 'retained' | 'ingested' | 'link',
  { payload, ...message }: NewMessage,
  retain: () => T,
  permit: Room | EndingAct = message,
): T {
  records.begin(clock.now(), permit);
  return records.deferred(retain, (result) => {
    const seq = seqOf(result);
    if (seq !== null) records.add(fact, message, records.payload(payload), seq);
  });
}

function seqOf(result: unknown): number | null {
  const found = result as { readonly message?: Retained } | Retained | null;
  if (found === null) return null;
  if ('seq' in found) return found.seq;
  return found.message?.seq ?? null;
}

/** Creates the watcher that records the drops for lack of room, and the rows of link histories. */
export function createWatcher(records: ActWriter, clock: Pick<Clock, 'now'>): MemoryWatcher & { replaying: boolean } {
  const drop = (...fact: readonly unknown[]): void => void records.add(...fact);
  return {
    replaying: false,
    beginApart: () => records.begin(clock.now(), NO_USER),
    rowDropped: ({ user, suffix }, seq, at) => drop('row_gone', user.userId, suffix, seq, at),
    markDropped: ({ userId, clientId, messageId }) => drop('seen_gone', userId, clientId, messageId),
    resultDropped(entry) {
      records.about(entry, false);
      records.addText('"result_gone"');
    },
    recordDropped(entry) {
      records.about(entry, false);
      records.addText('"record_gone"');
    },
    retainLink: (message, retain) => void keepMessage({ records, clock }, 'link', message, retain),
  };
}
