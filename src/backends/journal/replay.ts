/**
 * Puts the facts of a journal and of a snapshot back into the tables of the memory backend. It decides nothing: no rule
 * is asked, and nothing is dropped for lack of room unless a fact says so.
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

  /** The records were written by this program and have a checksum, so their types are not checked again. */
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

/** A command that facts are about. `entry`: what the ledger had of it when it was last looked up. */
type About = { readonly key: CommandKey; entry: Entry | null };

/** A connection as it was when the process ended. */
type Seen = { connection: Connection; lostAt: number | null };

type Actions = Connection['actions'];
const NO_ACTIONS: Actions = [];

type ReplayOptions = {
  readonly tables: MemoryTables;
  /** Called with the time of each act, before its facts are put back. */
  readonly onTime: (at: number) => void;
};

/** Puts facts back, and remembers the connections until `finish`. */
export class Replay {
  readonly #tables: MemoryTables;
  readonly #tx: MemoryTransaction;
  readonly #onTime: (at: number) => void;
  readonly #intern = new Interned();
  readonly #seen = new ByClient<Seen>();
  readonly #tickets = new Map<string, number>();
  readonly #nodes = new Map<string, string>();
  readonly #heads = new ByClient<StreamHead>();
  #ended: Entry[] = [];
  #bindings = new ByClient<Binding>();
  #inSnapshot = true;
  #snapshotActs = 0;
  /** The command that the next fact is about. */
  #about: About = { key: { userId: '', clientId: '', commandId: '' }, entry: null };
  /** The attempt by which the next fact has dispatched that command; null: none that is kept. */
  #markedBy: string | null = null;
  /** The commands that have a number in this file. */
  #numbered: About[] = [];
  /** The lists of actions of this file, by their numbers. */
  #lists: Actions[] = [];
  /** The time at which the record begins, and that of the next fact. */
  #begunAt = 0;
  #at = 0;
  #closedAt = -1;
  #complete = false;
  /** The first fact of the latest file; null: none was read. */
  header: Header | null = null;
  /** The time of the latest act, in epoch milliseconds; 0: none was read. */
  lastAt = 0;
  acts = 0;

  constructor({ tables, onTime }: ReplayOptions) {
    this.#tables = tables;
    this.#onTime = onTime;
    this.#tx = new MemoryTransaction(tables.acts);
  }

  /** Puts back the acts of one batch of a snapshot (until `endSnapshot`) or of a journal. */
  batch(body: Buffer): void {
    const steps = this.steps(body);
    while (!steps.next().done);
  }

  /** Like `batch`, one act at a step, for a process that has other work. */
  *steps(body: Buffer): Generator<void> {
    for (const act of readActs(body)) {
      this.acts++;
      this.#begunAt = act.at;
      this.#moveTo(act.at);
      const given = new Arguments(act);
      while (!given.done) this.#put(given);
      yield;
    }
  }

  /** The batch that the journal after the snapshot follows; of an empty directory, none. */
  after: BatchName = NO_BATCH;

  /** Whether the process that wrote the latest act had been closed in order. */
  get clean(): boolean {
    return this.#closedAt === this.acts;
  }

  /** The number of acts in the journals. */
  get journalActs(): number {
    return this.acts - this.#snapshotActs;
  }

  /** Whether the last record of a snapshot was read. */
  get complete(): boolean {
    return this.#complete;
  }

  /** Call it after the snapshot and before the journal: puts the ended commands into the order of their ends. */
  endSnapshot(): void {
    this.#inSnapshot = false;
    this.#snapshotActs = this.acts;
    this.#tables.ledger.restoreEnds(this.#ended);
    this.#ended = [];
    this.#bindings = new ByClient();
  }

  /**
   * Puts back the connections that a client may still resume, and returns those whose links were up, the oldest link
   * first. `now`: the time of the start, in epoch milliseconds.
   */
  finish(now: number): readonly Connection[] {
    const { connections } = this.#tables;
    const up: Connection[] = [];
    // The ones that were lost first are forgotten first.
    const inOrder = [...this.#seen.values()].sort((a, b) => (a.lostAt ?? now) - (b.lostAt ?? now));
    for (const { connection, lostAt } of inOrder) {
      connections.skipEpochs(connection.epoch);
      if (lostAt === null) {
        // Seen now: while the relay was away, no client could show a sign of life.
        connections.restore({ ...connection, lastSeenAt: now });
        up.push(connection);
      } else if (lostAt + FORGET_MS > now) connections.restore(connection);
    }
    return up.sort((a, b) => a.epoch - b.epoch);
  }

  /** The users whose clients were connected in the last minute before the latest act, in order. */
  get usersAtEnd(): readonly string[] {
    const present = this.#seen.values().filter(({ lostAt }) => lostAt === null || lostAt + FORGET_MS > this.lastAt);
    return [...new Set(present.map(({ connection }) => connection.userId))].sort();
  }

  /** The sign-in tickets that were used, and until when they are remembered. */
  get tickets(): Map<string, number> {
    return this.#tickets;
  }

  /** The processes whose links the connections are, by the ids of their nodes. */
  get nodes(): Map<string, string> {
    return this.#nodes;
  }

  #moveTo(at: number): void {
    this.#at = at;
    this.lastAt = Math.max(this.lastAt, at);
    this.#onTime(at);
    this.#tx.now = at;
  }

  #put(given: Arguments): void {
    const fact = given.next<string>();
    const put = this.#facts[fact];
    if (!put) throw new Error(`unknown fact "${fact}"`);
    put(given);
  }

  readonly #facts: Readonly<Record<string, (given: Arguments) => void>> = {
    '@': (given) => {
      const number = given.next<number>();
      const key = { userId: this.#text(given), clientId: this.#text(given), commandId: given.next<string>() };
      this.#about = { key, entry: null };
      if (number >= 0) this.#numbered[number] = this.#about;
    },
    '#': (given) => {
      const number = given.next<number>();
      const about = this.#numbered[number];
      if (!about) throw new Error(`no command has the number ${number}`);
      this.#about = about;
    },
    add: (given) => this.#add(given),
    mark: () => {
      const entry = this.#find();
      if (entry) this.#tables.ledger.reserveMark(entry, true);
    },
    move: (given) => this.#change(given, (entry, command) => this.#tx.move(entry, command)),
    queue: (given) => this.#change(given, (entry, command) => this.#tx.queue(entry, command)),
    by: (given) => void (this.#markedBy = this.#text(given)),
    run: (given) => {
      const markedBy = this.#takeAttempt();
      this.#change(given, (entry, command) => void this.#tx.run(entry, command, markedBy));
    },
    end: (given) => {
      const difference = given.next<Difference>();
      const result = given.payload();
      this.#apply(difference, (entry, command) => this.#tx.end(entry, command, result));
    },
    progress: (given) => {
      const progress = { rows: given.next<number>(), at: given.next<number>() };
      const entry = this.#find();
      if (entry) this.#tx.noteProgress(entry, progress);
    },
    row: (given) => this.#row(given),
    bind: (given) => {
      const key = { userId: this.#text(given), clientId: this.#text(given) };
      const bound = given.next<PackedBinding | null>();
      this.#tx.bind(key, bound && this.#binding(bound));
      if (bound) this.#tables.connections.skipEpochs(bound[2]);
    },
    seen_gone: (given) => {
      const [userId, clientId, messageId] = [given.next<string>(), given.next<string>(), given.next<string>()];
      this.#tables.dedup.evict({ userId, clientId, messageId }, this.#at);
    },
    row_gone: (given) => {
      const [userId, suffix] = [given.next<string>(), given.next<string>()];
      this.#rowsOf(suffix).dropUpTo(userId, suffix, { seq: given.next<number>(), at: given.next<number>() });
    },
    result_gone: () => {
      const entry = this.#find();
      if (entry && entry.result !== null) this.#tables.ledger.ended.giveUp(entry, 'share');
    },
    no_result: () => {
      // A snapshot that was written since has the result.
      const entry = this.#find();
      if (entry && entry.terminalAt !== null && entry.result === null) entry.expireResult();
    },
    record_gone: () => {
      const entry = this.#find();
      if (entry && entry.terminalAt !== null) this.#tables.ledger.ended.reduce(entry);
    },
    retained: (given) => this.#message(given),
    link: (given) => this.#message(given),
    ingested: (given) => {
      const { userId, clientId, id: messageId } = this.#message(given);
      if (clientId !== null) this.#tables.dedup.restore({ userId, clientId, messageId }, this.#at);
    },
    actions: (given) => void (this.#lists[given.next<number>()] = given.next<Actions>()),
    connected: (given) => {
      const members = given.next<Omit<Connection, 'actions'>>();
      const connection: Connection = { ...members, actions: this.#lists[given.next<number>()] ?? NO_ACTIONS };
      const known = this.#seen.get(connection);
      if (!known || known.connection.epoch <= connection.epoch)
        this.#seen.set(connection, { connection, lostAt: connection.disconnectedAt });
    },
    lost: (given) => this.#lost(given),
    site: (given) => this.#tables.sites.restoreSite(given.next<Site>()),
    site_gone: (given) => this.#tables.sites.removeSite({ userId: given.next(), siteId: given.next() } as SiteKey),
    session: (given) => {
      const session = given.next<SiteSession>();
      this.#tables.sites.restoreSession({ session, hashes: new Map(given.next<[string, string][]>()) });
    },
    pause: (given) => this.#tables.acts.pauses.put(given.next<Pause>()),
    pause_gone: (given) => void this.#tables.acts.pauses.end(given.next<string>()),
    ticket: (given) => void this.#tickets.set(given.next(), given.next()),
    device: (given) => this.#tables.devices.put(given.next<Device>()),
    device_gone: (given) => void this.#tables.devices.remove({ userId: given.next(), clientId: given.next() }),
    revocation: (given) => this.#tables.revocations.restore(given.next<Revocation>()),
    node: (given) => void this.#nodes.set(given.next(), given.next()),
    begin: (given) => {
      this.header = given.next<Header>();
      this.#numbered = [];
      this.#lists = [];
    },
    after: (given) => void (this.after = { number: given.next(), sum: given.next() }),
    closed: () => void (this.#closedAt = this.acts),
    // Facts that only a snapshot has.
    at: (given) => this.#moveTo(this.#begunAt + given.next<number>()),
    complete: () => void (this.#complete = true),
    entry: (given) => this.#entry(given),
    marks: (given) => this.#marks(given),
    mark_owner: (given) => this.#markOwner(given),
    short: (given) => {
      const [userId, shortUntil, unmarkedId] = [given.next<string>(), given.next<number>(), given.next<string>()];
      this.#tables.ledger.ended.restoreShort(userId, { shortUntil, unmarkedId });
    },
    seen: (given) => {
      const [userId, clientId, messageId] = [this.#text(given), this.#text(given), given.next<string>()];
      this.#tables.dedup.restore({ userId, clientId, messageId }, given.next<number>());
    },
    gap: (given) => {
      const rows = this.#tables.history.tables[given.next<'messages' | 'links'>()];
      const [userId, suffix] = [given.next<string>(), given.next<string | null>()];
      const [droppedAt, wholeStreamAt] = [given.next<number>(), given.next<number | null>() ?? -Infinity];
      rows.restoreGap({ userId, suffix, droppedAt, wholeStreamAt } satisfies Gap);
    },
    floors: (given) => {
      const { messages, links } = this.#tables.history.tables;
      messages.raiseSeqFloor(given.next());
      links.raiseSeqFloor(given.next());
      this.#tables.connections.skipEpochs(given.next());
      this.#tables.history.advanceTo(given.next());
    },
  };

  #text(given: Arguments): string {
    return this.#intern.text(given.next<string>());
  }

  #find(): Entry | null {
    const about = this.#about;
    // A command that has ended may have expired.
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

  #add(given: Arguments): void {
    const markedBy = this.#takeAttempt();
    const difference = given.next<Difference>();
    const marked = given.next<0 | 1>() === 1;
    const params = given.payload();
    if (this.#find()) return;
    const about = this.#about;
    const command = this.#applied({ ...NEW_COMMAND, ...about.key }, difference);
    const request: AddedRequest = { ...command, params, chosenId: marked };
    about.entry = this.#tx.add(this.#tx.client(about.key), request, command, markedBy);
  }

  #change(given: Arguments, apply: (entry: Entry, command: Command) => void): void {
    this.#apply(given.next<Difference>(), apply);
  }

  /** A record that a snapshot has may be newer than the fact: then it includes the fact already. */
  #apply(difference: Difference, apply: (entry: Entry, command: Command) => void): void {
    const entry = this.#find();
    if (!entry) return;
    const { command } = entry;
    if (command.version < versionOf(difference)) apply(entry, this.#applied(command, difference));
  }

  #applied(before: Command, difference: Difference): Command {
    return applyDifference(before, difference, { at: this.#at, intern: this.#intern });
  }

  #row(given: Arguments): void {
    const { key } = this.#about;
    const { history } = this.#tables;
    const entry = this.#inSnapshot ? this.#about.entry : this.#find();
    const known = entry?.rows ?? history.tables.messages.rowsOf(key);
    const commandId = known?.commandId ?? key.commandId;
    const [kind, instanceId] = [given.next<MessageKind>(), given.next<string | null>()];
    const packed = given.next<string | readonly [string] | null>();
    const place = given.next<number>();
    const payload = place === RESULT ? (entry?.result ?? null) : given.payloadOf(place);
    const [spill, error] = [given.next<PayloadRef | null>(), given.next<TerminalError | null>()];
    const traced = given.next<PackedTrace | null>();
    const seq = given.next<number>();
    const part: CommandMessage = {
      kind: this.#intern.text(kind) as MessageKind,
      instanceId: instanceId && this.#intern.text(instanceId),
      kept: payload === null && spill === null ? NO_PAYLOAD : { payload, spill },
      error,
      ...(packed !== null && { id: unpackId(commandId, packed) }),
    };
    // The row may be of an earlier command with the same id, which had another trace.
    const isOfKnown = known && JSON.stringify(packTrace(known.trace)) === JSON.stringify(traced);
    const trace = traced ? unpackTrace(traced) : NO_TRACE;
    const rows = isOfKnown ? known : new CommandRows(commandId, trace, known?.head ?? this.#head(key));
    // Each table of a snapshot begins with its oldest row again, and has only rows that had not expired.
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

  #message(given: Arguments): NewMessage {
    const members = given.next<NewMessage>();
    const message: NewMessage = { ...members, payload: given.payload() };
    const seq = given.next<number>();
    if (this.#inSnapshot) this.#rowsOf(message.suffix).add(message, this.#at, seq);
    else this.#tables.history.keepRow(message, this.#at, seq);
    return message;
  }

  #lost(given: Arguments): void {
    const [userId, clientId, epoch] = [given.next<string>(), given.next<string>(), given.next<number>()];
    const [lostAt, disconnectCause] = [given.next<number>(), given.next<DisconnectCause>()];
    const closeCode = given.next<number | null>();
    const known = this.#seen.get({ userId, clientId });
    if (known?.connection.epoch !== epoch) return;
    known.connection = { ...known.connection, disconnectedAt: lostAt, disconnectCause, closeCode };
    known.lostAt = lostAt;
  }

  /** A command of a snapshot: its record, and what is no part of it. */
  #entry(given: Arguments): void {
    const about = this.#about;
    const markedBy = this.#takeAttempt();
    const command = this.#applied({ ...NEW_COMMAND, ...about.key }, given.next<Difference>());
    const marked = given.next<0 | 1>() === 1;
    const [params, result] = [given.payload(), given.payload()];
    const [queuedOn, progress] = [given.next<string | null>(), given.next<[number, number] | null>()];
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

  /** Returns one object for all commands that ended on the same link of a client, which their packed records share. */
  #boundOf({ command }: Entry): Binding | null {
    const { nodeId, boundInstanceId: instanceId } = command;
    if (nodeId === null || instanceId === null) return null;
    const known = this.#bindings.get(command);
    if (known?.nodeId === nodeId && known.instanceId === instanceId) return known;
    const made = { nodeId, instanceId, epoch: 0 };
    this.#bindings.set(command, made);
    return made;
  }

  #marks(given: Arguments): void {
    const generation = given.next<number>();
    const bytes = Buffer.from(given.next<string>(), 'base64');
    const codes = new Uint8Array(Buffer.from(given.next<string>(), 'base64'));
    const words = new Uint32Array(bytes.length / Uint32Array.BYTES_PER_ELEMENT);
    for (const at of words.keys()) words[at] = bytes.readUInt32LE(at * Uint32Array.BYTES_PER_ELEMENT);
    this.#tables.ledger.ended.marks.restore({ generation, marks: { words, codes } } satisfies MarkShard);
  }

  #markOwner(given: Arguments): void {
    const { users, marks } = this.#tables.ledger.ended;
    const [generation, userId, count] = [given.next<number>(), given.next<string>(), given.next<number>()];
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
