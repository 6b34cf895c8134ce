/**
 * Records what the ports of the memory backend decide: a transaction that records each change of a command, and ports
 * that record what changed. KEPT says of each method of each port whether it is recorded.
 */
import type { Backend } from '../../core/backend.ts';
import type { Command } from '../../core/commands/command.ts';
import type { CommandRules } from '../../core/commands/rules.ts';
import type { Binding } from '../../core/commands/stores.ts';
import type { CommandMessage, Progress, Transaction } from '../../core/commands/transaction.ts';
import { fail } from '../../core/errors.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { ClientKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { MemoryBackend, MemoryTables, MemoryWatcher } from '../memory/backend.ts';
import { MemoryTransaction, type Acts, type AddedRequest, type Client } from '../memory/commands.ts';
import type { Entry } from '../memory/ledger.ts';
import { NEW_COMMAND, addRow, differenceOf, packTrace, type ActWriter } from './records.ts';

/**
 * What happens to what a method changes when the process ends. `read`: it changes nothing. `recorded`: it is put back.
 * `by_act`: it is put back, and the transaction records it. `process`: it ends with the process, because it describes
 * the process, is reported again, or only counts.
 */
type Kept = 'read' | 'recorded' | 'by_act' | 'process';
type Methods<P> = keyof { [M in keyof P as NonNullable<P[M]> extends (...args: never[]) => unknown ? M : never]: true };
type PortName = keyof {
  [P in keyof Backend as NonNullable<Backend[P]> extends (...args: never[]) => unknown ? never : P]: true;
};
type KeptPorts = Omit<{ readonly [P in PortName]: { readonly [M in Methods<Backend[P]>]: Kept } }, 'capabilities'>;

/** Says of each method of each port what is kept. A new method does not compile before it has a row here. */
export const KEPT = {
  commands: {
    ...{ admit: 'by_act', dispatch: 'by_act', report: 'by_act', finish: 'by_act', settle: 'by_act', rebind: 'by_act' },
    ...{ preview: 'read', live: 'read', loads: 'read', get: 'read', mark: 'read', result: 'read' },
  },
  waiters: {
    ...{ attach: 'process', remove: 'process' },
    ...{ list: 'read', countByNode: 'read', ofUsers: 'read', ofClients: 'read', ofCommands: 'read' },
  },
  nodes: {
    ...{ attach: 'process', beat: 'process', post: 'process' },
    ...{ due: 'read', list: 'read', silent: 'read', get: 'read' },
  },
  inspector: {
    ...{ summary: 'read', scopes: 'read', getScopes: 'read', reservedScopes: 'read', busiest: 'read', list: 'read' },
  },
  connections: {
    ...{ connect: 'recorded', advertise: 'recorded', disconnect: 'recorded', touch: 'process' },
    ...{ get: 'read', lastSeen: 'read', list: 'read', ofUsers: 'read', users: 'read', quietest: 'read' },
  },
  reconnects: { note: 'process', counts: 'read', top: 'read' },
  contexts: {
    ...{ report: 'process', list: 'read', lists: 'read', count: 'read', windows: 'read', windowLists: 'read' },
    ...{ windowCount: 'read', windowsNamed: 'read', getContexts: 'read', getWindows: 'read' },
  },
  history: {
    ...{ retain: 'recorded', ingest: 'recorded' },
    ...{ streams: 'read', ofUsers: 'read', messages: 'read', ofCommand: 'read', sample: 'read', users: 'read' },
  },
  dedup: { stats: 'read', backend: 'read' },
  sites: { put: 'recorded', remove: 'recorded', get: 'read', list: 'read', ofUsers: 'read' },
  sessions: {
    ...{ open: 'recorded', close: 'recorded', addGrant: 'recorded', revokeGrant: 'recorded' },
    ...{ putTicket: 'process', redeemTicket: 'process' },
    ...{ prefixOf: 'read', get: 'read', findByToken: 'read', list: 'read' },
  },
  // The audit has a file of its own.
  audit: { append: 'process', close: 'process', head: 'read', list: 'read', lines: 'read' },
  tickets: { take: 'recorded' },
  bus: { publish: 'process', subscribe: 'process', confirmed: 'process', hasSubscribers: 'read' },
} as const satisfies KeptPorts;

/** The methods that a port must record: exactly those that KEPT says are recorded. */
type Recorded = {
  [P in keyof typeof KEPT as 'recorded' extends (typeof KEPT)[P][keyof (typeof KEPT)[P]] ? P : never]: {
    [
      M in keyof (typeof KEPT)[P] & keyof Backend[P] as (typeof KEPT)[P][M] extends 'recorded' ? M : never
    ]: Backend[P][M];
  };
};

type Verb = keyof Transaction<Entry, Client>;

/** Says of each method of a transaction whether RecordingTransaction records it. */
export const VERBS = {
  ...{ now: 'read', find: 'read', markOf: 'read', client: 'read', isOutdated: 'read', isOver: 'read', params: 'read' },
  ...{ result: 'read', reserved: 'read', scopeFull: 'read', memberFull: 'read', queueFull: 'read', noMark: 'read' },
  ...{ noRoom: 'read', canWait: 'read', sha256: 'read', moving: 'read', context: 'read' },
  ...{ add: 'recorded', reserveMark: 'recorded', retain: 'recorded', move: 'recorded', queue: 'recorded' },
  ...{ run: 'recorded', noteProgress: 'recorded', end: 'recorded', bind: 'recorded', countEnd: 'process' },
  ...{ wait: 'process', unwait: 'process', offer: 'process', post: 'process', reply: 'process' },
} as const satisfies { readonly [V in Verb]: Kept };

/** The transaction of the memory backend, with a record of each change. */
export class RecordingTransaction extends MemoryTransaction {
  readonly #records: ActWriter;

  constructor(acts: Acts, records: ActWriter) {
    super(acts);
    this.#records = records;
  }

  override begin(): CommandRules<Entry, Client> {
    const rules = super.begin();
    this.#records.begin(this.now);
    return rules;
  }

  override add(client: Client, request: AddedRequest, command: Command): Entry {
    const records = this.#records;
    const entry = super.add(client, request, command);
    const params = records.payload(entry.params);
    this.#about(entry);
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
    // The facts about rows that this row displaces follow it.
    return records.deferred(
      () => super.retain(entry, row),
      (seq) => {
        this.#about(entry);
        addRow(records, entry.commandId, { ...row, trace, seq: seq ?? 0 });
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

  override run(entry: Entry, command: Command): JsonText | null {
    this.#change('run', entry, command);
    return super.run(entry, command);
  }

  override noteProgress(entry: Entry, progress: Progress): void {
    this.#about(entry);
    this.#records.addText(`"progress",${progress.rows},${progress.at}`);
    super.noteProgress(entry, progress);
  }

  override end(entry: Entry, command: Command, result: JsonText | null): void {
    this.#change('end', entry, command);
    this.#records.addText(String(this.#records.payload(result)));
    super.end(entry, command, result);
    this.#records.forget(entry);
  }

  override bind(key: ClientKey, binding: Binding | null): void {
    this.#records.add('bind', key.userId, key.clientId, binding && [binding.nodeId, binding.instanceId, binding.epoch]);
    super.bind(key, binding);
  }

  #change(fact: 'move' | 'queue' | 'run' | 'end', entry: Entry, command: Command): void {
    this.#about(entry);
    this.#records.addText(`"${fact}",${differenceOf(entry.command, command, this.#records.at)}`);
  }

  /** No later act needs the number of a command that has ended: acts about it are rare. */
  #about(entry: Entry): void {
    this.#records.about(entry, entry.terminalAt === null);
  }
}

/** What a wrapped backend needs besides the memory backend. */
type Recording = {
  readonly tables: MemoryTables;
  readonly records: ActWriter;
  readonly clock: Pick<Clock, 'now'>;
  /** The sign-in tickets that were used, and until when each is remembered. */
  readonly tickets: Map<string, number>;
  /** Throws `store_full` while the disk is full. Called before an act that would add to what is kept. */
  readonly checkRoom: () => void;
};

/** Returns the ports of the memory backend, with a record of what each of their methods changed. */
export function recordedPorts(memory: MemoryBackend, recording: Recording): Omit<Backend, 'ready' | 'close'> {
  const { records, clock, tables, checkRoom } = recording;
  const { commands, connections, history, sites, sessions, tickets } = memory;
  const begin = (): void => records.begin(clock.now());
  const recordSession = (sessionId: string): void => {
    const kept = tables.sites.keptSession(sessionId);
    if (kept) records.add('session', kept.session, [...kept.hashes]);
  };
  const recorded: Recorded = {
    connections: {
      connect(request) {
        begin();
        const result = tables.connections.connect(request);
        records.add('connected', result.connection);
        return result;
      },
      advertise(key, epoch, actions) {
        begin();
        const connection = tables.connections.advertise(key, epoch, actions);
        if (connection) records.add('connected', connection);
        return connection;
      },
      disconnect(key, epoch, cause, closeCode) {
        begin();
        const connection = tables.connections.disconnect(key, epoch, cause, closeCode);
        if (connection)
          records.add('lost', key.userId, key.clientId, epoch, connection.disconnectedAt, cause, closeCode ?? null);
        return connection;
      },
    },
    history: {
      retain: (message) => keepMessage(recording, 'retained', message, () => history.retain(message)),
      ingest(message) {
        checkRoom();
        return keepMessage(recording, 'ingested', message, () => history.ingest(message));
      },
    },
    sites: {
      put(definition) {
        checkRoom();
        begin();
        const result = sites.put(definition);
        if (isDone(result) && result.kind === 'put') records.add('site', result.site);
        return result;
      },
      remove(key) {
        begin();
        const result = sites.remove(key);
        if (isDone(result) && result) {
          records.add('site_gone', key.userId, key.siteId);
          for (const sessionId of result.closed) recordSession(sessionId);
        }
        return result;
      },
    },
    sessions: {
      open(session) {
        checkRoom();
        begin();
        const result = sessions.open(session);
        recordSession(session.sessionId);
        return result;
      },
      close(sessionId) {
        begin();
        const result = sessions.close(sessionId);
        recordSession(sessionId);
        return result;
      },
      addGrant(sessionId, grant) {
        checkRoom();
        begin();
        const result = sessions.addGrant(sessionId, grant);
        recordSession(sessionId);
        return result;
      },
      revokeGrant(sessionId, grantId) {
        begin();
        const result = sessions.revokeGrant(sessionId, grantId);
        recordSession(sessionId);
        return result;
      },
    },
    tickets: {
      take(ticketHash, ttlMs) {
        begin();
        const taken = tickets.take(ticketHash, ttlMs);
        if (taken !== true) return taken;
        for (const [hash, until] of recording.tickets) if (until <= clock.now()) recording.tickets.delete(hash);
        recording.tickets.set(ticketHash, clock.now() + ttlMs);
        records.add('ticket', ticketHash, clock.now() + ttlMs);
        return taken;
      },
    },
  };
  const admit: typeof commands.admit = (request) => {
    checkRoom();
    return commands.admit(request);
  };
  return {
    ...memory,
    commands: { ...commands, admit },
    connections: { ...connections, ...recorded.connections },
    history: { ...history, ...recorded.history },
    sites: { ...sites, ...recorded.sites },
    sessions: { ...sessions, ...recorded.sessions },
    tickets: recorded.tickets,
  };
}

/** Every method of the memory backend answers in the same tick. */
function isDone<T>(answer: T): answer is Exclude<T, PromiseLike<unknown>> {
  return !(answer instanceof Promise);
}

type Retained = { readonly seq: number };

/** Records a message with the number of its row. The facts about rows that it displaces follow it. */
function keepMessage<T>(
  { records, clock }: Pick<Recording, 'records' | 'clock'>,
  fact: 'retained' | 'ingested' | 'link',
  { payload, ...message }: NewMessage,
  retain: () => T,
): T {
  records.begin(clock.now());
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

/** Creates the watcher that records what memory drops for lack of room, and the rows of links. */
export function createWatcher(records: ActWriter, clock: Pick<Clock, 'now'>): MemoryWatcher & { replaying: boolean } {
  const drop = (...fact: readonly unknown[]): void => void records.add(...fact);
  return {
    replaying: false,
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

/** Refuses an act that would add to what is kept. */
export function refuseGrowth(): never {
  return fail('store_full', 'The disk of the data directory is full; ends of commands are still recorded.');
}
