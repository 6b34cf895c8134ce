/**
 * Restores the tables of the memory backend from the facts of a snapshot and of journals.
 *
 * It applies no rule, and drops data for lack of room only where a fact says so.
 */
import type { Command } from '../../core/commands/command.ts';
import type { Binding } from '../../core/commands/command-store.ts';
import type { Connection, DisconnectCause } from '../../core/connections/connection.ts';
import type { CommandMessage } from '../../core/commands/transaction.ts';
import {
  LINK_STREAM,
  NO_PAYLOAD,
  clientStream,
  type MessageKind,
  type NewMessage,
  type PayloadRef,
  type TerminalError,
} from '../../core/history/message.ts';
import type { Device } from '../../core/devices/device.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import { ByClient } from '../../core/collections.ts';
import { FORGET_MS } from '../../core/limits.ts';
import type { Revocation } from '../../core/revocations/revocation.ts';
import type { Pause } from '../../core/pauses/pause.ts';
import type { SiteSession } from '../../core/sites/site-session.ts';
import type { Site, SiteKey } from '../../core/sites/site.ts';
import type { MemoryTables } from '../memory/backend.ts';
import { MemoryTransaction, traceOf, type AddedRequest } from '../memory/commands.ts';
import type { MarkShard } from '../memory/commands-marks.ts';
import { CommandRows, NO_TRACE, type StreamHead, type TraceIds } from '../memory/history-row.ts';
import type { Gap } from '../memory/history-rows.ts';
import { Entry } from '../memory/ledger.ts';
import { NO_BATCH, type BatchName } from './batches.ts';
import {
  Interned,
  NEW_COMMAND,
  RESULT,
  applyDifference,
  packTrace,
  readActs,
  unpackId,
  versionOf,
  type Header,
  type PackedTrace,
  type ReadAct,
} from './records.ts';

type Difference = readonly unknown[];
type PackedBinding = readonly [nodeId: string, instanceId: string, epoch: number];

/** Reads the arguments of facts, one after another. */
class Arguments {
  readonly #facts: readonly unknown[];
  readonly #payloads: readonly JsonText[];
  #at = 0;

  constructor({ facts, payloads }: ReadAct) {
    this.#facts = facts;
    this.#payloads = payloads;
  }

  get done(): boolean {
    return this.#at >= this.#facts.length;
  }

  /**
   * Returns the next argument without checking its type, because this program wrote the records and each batch has a
   * checksum.
   */
  next<T>(): T {
    return this.#facts[this.#at++] as T;
  }

  payload(): JsonText | null {
    return this.payloadOf(this.next<number>());
  }

  payloadOf(place: number): JsonText | null {
    return this.#payloads[place] ?? null;
  }
}

/** The command that facts are about. `entry`: its ledger entry when it was last looked up; null if there was none. */
type FactCommand = { readonly key: CommandKey; entry: Entry | null };

/** A connection as it was when the process ended. */
type LastConnection = { connection: Connection; lostAt: number | null };

type Actions = Connection['actions'];
const NO_ACTIONS: Actions = [];

type ReplayOptions = {
  readonly tables: MemoryTables;
  /** Called with the time of each act, before the act's facts are restored. */
  readonly onTime: (at: number) => void;
};

/** Applies facts to the tables. Connections are collected, and restored by `finish`. */
export class Replay {
  readonly #tables: MemoryTables;
  readonly #tx: MemoryTransaction;
  readonly #onTime: (at: number) => void;
  readonly #intern = new Interned();
  readonly #seen = new ByClient<LastConnection>();
  readonly #tickets = new Map<string, number>();
  readonly #nodes = new Map<string, string>();
  readonly #heads = new ByClient<StreamHead>();
  #ended: Entry[] = [];
  #bindings = new ByClient<Binding>();
  #inSnapshot = true;
  #snapshotActs = 0;
  /** The command that the next fact is about. */
  #about: FactCommand = { key: { userId: '', clientId: '', commandId: '' }, entry: null };
  /** The dispatch attempt that belongs to the next fact; null if the record contains none. */
  #markedBy: string | null = null;
  /** The commands that have a number in the current file, by that number. */
  #numbered: FactCommand[] = [];
  /** The lists of actions in the current file, by number. */
  #lists: Actions[] = [];
  /**
   * `#begunAt`: the time at which the current record begins. `#at`: the time of the next fact. Both in epoch
   * milliseconds.
   */
  #begunAt = 0;
  #at = 0;
  #closedAt = -1;
  #complete = false;
  /** The first fact of the latest file; null if no file was read. */
  header: Header | null = null;
  /** The time of the latest act, in epoch milliseconds; 0 if no act was read. */
  lastAt = 0;
  acts = 0;

  constructor({ tables, onTime }: ReplayOptions) {
    this.#tables = tables;
    this.#onTime = onTime;
    this.#tx = new MemoryTransaction(tables.acts);
  }

  /**
   * Restores the acts of one batch. Batches belong to the snapshot until `endSnapshot` is called, and then to journals.
   */
  batch(body: Buffer): void {
    const steps = this.steps(body);
    while (!steps.next().done);
  }

  /** Like `batch`, but restores one act at each step, so that the caller can do other work in between. */
  *steps(body: Buffer): Generator<void> {
    for (const act of readActs(body)) {
      this.acts++;
      this.#begunAt = act.at;
      this.#moveTo(act.at);
      const args = new Arguments(act);
      while (!args.done) this.#put(args);
      yield;
    }
  }

  /** The batch that the journal after the snapshot follows; NO_BATCH for an empty directory. */
  after: BatchName = NO_BATCH;

  /** Whether the process that wrote the latest act was closed in order. */
  get clean(): boolean {
    return this.#closedAt === this.acts;
  }

  /** The number of acts in the journals. */
  get journalActs(): number {
    return this.acts - this.#snapshotActs;
  }

  /** Whether the last record of a snapshot was read, so the snapshot is complete. */
  get complete(): boolean {
    return this.#complete;
  }

  /** Sorts the ended commands by the time of their ends. Call it after the snapshot and before the first journal. */
  endSnapshot(): void {
    this.#inSnapshot = false;
    this.#snapshotActs = this.acts;
    this.#tables.ledger.restoreEnds(this.#ended);
    this.#ended = [];
    this.#bindings = new ByClient();
  }

  /**
   * Restores the connections that a client may still resume. Returns those whose links were up when the process ended,
   * the oldest link first. `now`: the time of the start, in epoch milliseconds.
   */
  finish(now: number): readonly Connection[] {
    const { connections } = this.#tables;
    const up: Connection[] = [];
    // Rows are restored in the order of their loss, because the row that was lost first is forgotten first.
    const inOrder = [...this.#seen.values()].sort((a, b) => (a.lostAt ?? now) - (b.lostAt ?? now));
    for (const { connection, lostAt } of inOrder) {
      connections.skipEpochs(connection.epoch);
      if (lostAt === null) {
        // The link counts as seen now, because no client could show a sign of life while the relay was away.
        connections.restore({ ...connection, lastSeenAt: now });
        up.push(connection);
      } else if (lostAt + FORGET_MS > now) connections.restore(connection);
    }
    return up.sort((a, b) => a.epoch - b.epoch);
  }

  /** The users who had a connected client within FORGET_MS before the latest act, sorted. */
  get usersAtEnd(): readonly string[] {
    const present = this.#seen.values().filter(({ lostAt }) => lostAt === null || lostAt + FORGET_MS > this.lastAt);
    return [...new Set(present.map(({ connection }) => connection.userId))].sort();
  }

  /** The used sign-in tickets, with the time until which each is remembered, in epoch milliseconds. */
  get tickets(): Map<string, number> {
    return this.#tickets;
  }

  /** The process that holds the links of each node, by node id. */
  get nodes(): Map<string, string> {
    return this.#nodes;
  }

  #moveTo(at: number): void {
    this.#at = at;
    this.lastAt = Math.max(this.lastAt, at);
    this.#onTime(at);
    this.#tx.now = at;
  }

  #put(args: Arguments): void {
    const fact = args.next<string>();
    const put = this.#facts[fact];
    if (!put) throw new Error(`unknown fact "${fact}"`);
    put(args);
  }

  readonly #facts: Readonly<Record<string, (args: Arguments) => void>> = {
    '@': (args) => {
      const number = args.next<number>();
      const key = { userId: this.#text(args), clientId: this.#text(args), commandId: args.next<string>() };
      this.#about = { key, entry: null };
      if (number >= 0) this.#numbered[number] = this.#about;
    },
    '#': (args) => {
      const number = args.next<number>();
      const about = this.#numbered[number];
      if (!about) throw new Error(`no command has the number ${number}`);
      this.#about = about;
    },
    add: (args) => this.#add(args),
    mark: () => {
      const entry = this.#find();
      if (entry) this.#tables.ledger.reserveMark(entry, true);
    },
    move: (args) => this.#change(args, (entry, command) => this.#tx.move(entry, command)),
    queue: (args) => this.#change(args, (entry, command) => this.#tx.queue(entry, command)),
    by: (args) => void (this.#markedBy = this.#text(args)),
    run: (args) => {
      const markedBy = this.#takeAttempt();
      this.#change(args, (entry, command) => void this.#tx.run(entry, command, markedBy));
    },
    end: (args) => {
      const difference = args.next<Difference>();
      const result = args.payload();
      this.#apply(difference, (entry, command) => this.#tx.end(entry, command, result));
    },
    progress: (args) => {
      const progress = { rows: args.next<number>(), at: args.next<number>() };
      const entry = this.#find();
      if (entry) this.#tx.noteProgress(entry, progress);
    },
    row: (args) => this.#row(args),
    bind: (args) => {
      const key = { userId: this.#text(args), clientId: this.#text(args) };
      const bound = args.next<PackedBinding | null>();
      this.#tx.bind(key, bound && this.#binding(bound));
      if (bound) this.#tables.connections.skipEpochs(bound[2]);
    },
    seen_gone: (args) => {
      const [userId, clientId, messageId] = [args.next<string>(), args.next<string>(), args.next<string>()];
      this.#tables.dedup.evict({ userId, clientId, messageId }, this.#at);
    },
    row_gone: (args) => {
      const [userId, suffix] = [args.next<string>(), args.next<string>()];
      this.#rowsOf(suffix).dropUpTo(userId, suffix, { seq: args.next<number>(), at: args.next<number>() });
    },
    result_gone: () => {
      const entry = this.#find();
      if (entry && entry.result !== null) this.#tables.ledger.ended.giveUp(entry, 'share');
    },
    no_result: () => {
      // If a later snapshot contains the result, the result is not expired.
      const entry = this.#find();
      if (entry && entry.terminalAt !== null && entry.result === null) entry.expireResult();
    },
    record_gone: () => {
      const entry = this.#find();
      if (entry && entry.terminalAt !== null) this.#tables.ledger.ended.reduce(entry);
    },
    retained: (args) => this.#message(args),
    link: (args) => this.#message(args),
    ingested: (args) => {
      const { userId, clientId, id: messageId } = this.#message(args);
      if (clientId !== null) this.#tables.dedup.restore({ userId, clientId, messageId }, this.#at);
    },
    actions: (args) => void (this.#lists[args.next<number>()] = args.next<Actions>()),
    connected: (args) => {
      const members = args.next<Omit<Connection, 'actions'>>();
      const connection: Connection = { ...members, actions: this.#lists[args.next<number>()] ?? NO_ACTIONS };
      const known = this.#seen.get(connection);
      if (!known || known.connection.epoch <= connection.epoch)
        this.#seen.set(connection, { connection, lostAt: connection.disconnectedAt });
    },
    lost: (args) => this.#lost(args),
    site: (args) => this.#tables.sites.restoreSite(args.next<Site>()),
    site_gone: (args) => this.#tables.sites.removeSite({ userId: args.next(), siteId: args.next() } as SiteKey),
    session: (args) => {
      const session = args.next<SiteSession>();
      this.#tables.sites.restoreSession({ session, hashes: new Map(args.next<[string, string][]>()) });
    },
    pause: (args) => this.#tables.acts.pauses.put(args.next<Pause>()),
    pause_gone: (args) => void this.#tables.acts.pauses.end(args.next<string>()),
    ticket: (args) => void this.#tickets.set(args.next(), args.next()),
    device: (args) => this.#tables.devices.put(args.next<Device>()),
    device_gone: (args) => void this.#tables.devices.remove({ userId: args.next(), clientId: args.next() }),
    revocation: (args) => this.#tables.revocations.restore(args.next<Revocation>()),
    node: (args) => void this.#nodes.set(args.next(), args.next()),
    begin: (args) => {
      this.header = args.next<Header>();
      this.#numbered = [];
      this.#lists = [];
    },
    after: (args) => void (this.after = { number: args.next(), sum: args.next() }),
    closed: () => void (this.#closedAt = this.acts),
    // The facts below occur only in a snapshot.
    at: (args) => this.#moveTo(this.#begunAt + args.next<number>()),
    complete: () => void (this.#complete = true),
    entry: (args) => this.#entry(args),
    marks: (args) => this.#marks(args),
    mark_owner: (args) => this.#markOwner(args),
    short: (args) => {
      const [userId, shortUntil, unmarkedId] = [args.next<string>(), args.next<number>(), args.next<string>()];
      this.#tables.ledger.ended.restoreShort(userId, { shortUntil, unmarkedId });
    },
    seen: (args) => {
      const [userId, clientId, messageId] = [this.#text(args), this.#text(args), args.next<string>()];
      this.#tables.dedup.restore({ userId, clientId, messageId }, args.next<number>());
    },
    gap: (args) => {
      const rows = this.#tables.history.tables[args.next<'messages' | 'links'>()];
      const [userId, suffix] = [args.next<string>(), args.next<string | null>()];
      const [droppedAt, wholeStreamAt] = [args.next<number>(), args.next<number | null>() ?? -Infinity];
      rows.restoreGap({ userId, suffix, droppedAt, wholeStreamAt } satisfies Gap);
    },
    floors: (args) => {
      const { messages, links } = this.#tables.history.tables;
      messages.raiseSeqFloor(args.next());
      links.raiseSeqFloor(args.next());
      this.#tables.connections.skipEpochs(args.next());
      this.#tables.history.advanceTo(args.next());
    },
  };

  #text(args: Arguments): string {
    return this.#intern.text(args.next<string>());
  }

  #find(): Entry | null {
    const about = this.#about;
    // A command that has ended may have expired since the last look-up, so it is looked up again.
    if (about.entry && about.entry.terminalAt === null) return about.entry;
    return (about.entry = this.#tables.ledger.find(about.key) ?? null);
  }

  #rowsOf(suffix: string) {
    const { messages, links } = this.#tables.history.tables;
    return suffix === LINK_STREAM ? links : messages;
  }

  #binding([nodeId, instanceId, epoch]: PackedBinding): Binding {
    return { nodeId: this.#intern.text(nodeId), instanceId: this.#intern.text(instanceId), epoch };
  }

  #takeAttempt(): string | null {
    const markedBy = this.#markedBy;
    this.#markedBy = null;
    return markedBy;
  }

  #add(args: Arguments): void {
    const markedBy = this.#takeAttempt();
    const difference = args.next<Difference>();
    const marked = args.next<0 | 1>() === 1;
    const params = args.payload();
    if (this.#find()) return;
    const about = this.#about;
    const command = this.#applied({ ...NEW_COMMAND, ...about.key }, difference);
    const request: AddedRequest = { ...command, params, chosenId: marked };
    about.entry = this.#tx.add(this.#tx.client(about.key), request, command, markedBy);
  }

  #change(args: Arguments, apply: (entry: Entry, command: Command) => void): void {
    this.#apply(args.next<Difference>(), apply);
  }

  /**
   * Applies a difference unless the restored record is newer: a record from a snapshot may already include the fact.
   */
  #apply(difference: Difference, apply: (entry: Entry, command: Command) => void): void {
    const entry = this.#find();
    if (!entry) return;
    const { command } = entry;
    if (command.version < versionOf(difference)) apply(entry, this.#applied(command, difference));
  }

  #applied(before: Command, difference: Difference): Command {
    return applyDifference(before, difference, { at: this.#at, intern: this.#intern });
  }

  #row(args: Arguments): void {
    const { key } = this.#about;
    const { history } = this.#tables;
    const entry = this.#inSnapshot ? this.#about.entry : this.#find();
    const known = entry?.rows ?? history.tables.messages.rowsOf(key);
    const commandId = known?.commandId ?? key.commandId;
    const [kind, instanceId] = [args.next<MessageKind>(), args.next<string | null>()];
    const packed = args.next<string | readonly [string] | null>();
    const place = args.next<number>();
    const payload = place === RESULT ? (entry?.result ?? null) : args.payloadOf(place);
    const [spill, error] = [args.next<PayloadRef | null>(), args.next<TerminalError | null>()];
    const traced = args.next<PackedTrace | null>();
    const seq = args.next<number>();
    const part: CommandMessage = {
      kind: this.#intern.text(kind) as MessageKind,
      instanceId: instanceId && this.#intern.text(instanceId),
      kept: payload === null && spill === null ? NO_PAYLOAD : { payload, spill },
      error,
      ...(packed !== null && { id: unpackId(commandId, packed) }),
    };
    // The row may belong to an earlier command with the same id, whose trace was different.
    const isOfKnown = known && JSON.stringify(packTrace(known.trace)) === JSON.stringify(traced);
    const trace = traced ? unpackTrace(traced) : NO_TRACE;
    const rows = isOfKnown ? known : new CommandRows(commandId, trace, known?.head ?? this.#head(key));
    // A snapshot writes each table separately, oldest row first, so the times go back from one table to the next.
    // `addOfCommand` is used because, unlike `keep`, it expires no rows.
    if (this.#inSnapshot) history.tables.messages.addOfCommand(rows, part, this.#at, seq);
    else history.keep(rows, part, this.#at, seq);
  }

  #head({ userId, clientId }: ClientKey): StreamHead {
    const known = this.#heads.get({ userId, clientId });
    if (known) return known;
    const made = { userId, clientId, suffix: clientStream(clientId) };
    this.#heads.set(made, made);
    return made;
  }

  #message(args: Arguments): NewMessage {
    const members = args.next<NewMessage>();
    const message: NewMessage = { ...members, payload: args.payload() };
    const seq = args.next<number>();
    if (this.#inSnapshot) this.#rowsOf(message.suffix).add(message, this.#at, seq);
    else this.#tables.history.keepRow(message, this.#at, seq);
    return message;
  }

  #lost(args: Arguments): void {
    const [userId, clientId, epoch] = [args.next<string>(), args.next<string>(), args.next<number>()];
    const [lostAt, disconnectCause] = [args.next<number>(), args.next<DisconnectCause>()];
    const closeCode = args.next<number | null>();
    const known = this.#seen.get({ userId, clientId });
    if (known?.connection.epoch !== epoch) return;
    known.connection = { ...known.connection, disconnectedAt: lostAt, disconnectCause, closeCode };
    known.lostAt = lostAt;
  }

  /** Restores a command from a snapshot: its record, and the data that is not in the record. */
  #entry(args: Arguments): void {
    const about = this.#about;
    const markedBy = this.#takeAttempt();
    const command = this.#applied({ ...NEW_COMMAND, ...about.key }, args.next<Difference>());
    const marked = args.next<0 | 1>() === 1;
    const [params, result] = [args.payload(), args.payload()];
    const [queuedOn, progress] = [args.next<string | null>(), args.next<[number, number] | null>()];
    const { ledger } = this.#tables;
    const entry = new Entry({ command, trace: traceOf(command), client: ledger.client(about.key), params });
    about.entry = entry;
    entry.queuedOn = queuedOn;
    entry.progress = progress && { rows: progress[0], at: progress[1] };
    if (marked) ledger.reserveMark(entry, true);
    if (command.terminalAt !== null) {
      entry.result = result;
      ledger.restoreEnded(entry, this.#boundOf(entry));
      this.#ended.push(entry);
      return;
    }
    entry.markedBy = markedBy;
    if (command.dispatchedAt === null || markedBy !== null) entry.holdParams();
    ledger.add(entry, command.queuedAt === null ? command.connectDeadline : command.deadline);
  }

  /**
   * Returns one shared object for all commands that ended on the same link of a client. Their packed records refer to
   * it.
   */
  #boundOf({ command }: Entry): Binding | null {
    const { nodeId, boundInstanceId: instanceId } = command;
    if (nodeId === null || instanceId === null) return null;
    const known = this.#bindings.get(command);
    if (known?.nodeId === nodeId && known.instanceId === instanceId) return known;
    const made = { nodeId, instanceId, epoch: 0 };
    this.#bindings.set(command, made);
    return made;
  }

  #marks(args: Arguments): void {
    const generation = args.next<number>();
    const bytes = Buffer.from(args.next<string>(), 'base64');
    const codes = new Uint8Array(Buffer.from(args.next<string>(), 'base64'));
    const words = new Uint32Array(bytes.length / Uint32Array.BYTES_PER_ELEMENT);
    for (const at of words.keys()) words[at] = bytes.readUInt32LE(at * Uint32Array.BYTES_PER_ELEMENT);
    this.#tables.ledger.ended.marks.restore({ generation, marks: { words, codes } } satisfies MarkShard);
  }

  #markOwner(args: Arguments): void {
    const { users, marks } = this.#tables.ledger.ended;
    const [generation, userId, count] = [args.next<number>(), args.next<string>(), args.next<number>()];
    const owner = users.of(userId);
    marks.restoreOwner({ generation, owner, count });
    owner.holdings.take('marks', count);
  }
}

function unpackTrace([traceId, parentSpanId, contextId, callerLabel]: PackedTrace): TraceIds {
  const { caller } = NEW_COMMAND;
  return traceOf({
    ...NEW_COMMAND,
    traceId,
    parentSpanId,
    ...(typeof contextId === 'string' && { contextId }),
    ...(callerLabel && { caller: { ...caller, label: callerLabel } }),
  });
}
