/**
 * Core's CommandStore in memory: the transaction that applies each change of core's rules at once, and the mailboxes
 * that it posts to.
 */
import type { Command, CommandMark } from '../../core/commands/command.ts';
import type { NewWaiter } from '../../core/commands/waiter.ts';
import { CommandRules } from '../../core/commands/rules.ts';
import type { AdmitQuestion, AdmitRequest, Binding, CommandStore } from '../../core/commands/command-store.ts';
import type { MailboxRow, NodeListener } from '../../core/commands/node-store.ts';
import type { WaiterStore } from '../../core/commands/waiter-store.ts';
import type {
  ClientView,
  CommandMessage,
  ContextState,
  MemberLimits,
  MovingQueue,
  Progress,
  RefusedAdmission,
  Transaction,
} from '../../core/commands/transaction.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { revisionOf } from '../../core/connections/revision.ts';
import { keyOf, type ClientKey, type CommandKey } from '../../core/ids.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import { RATE_CALLERS } from '../../core/limits.ts';
import type { Clock } from '../../core/ports.ts';
import type { Pause, PausedCall, PauseSet } from '../../core/pauses/pause.ts';
import { RateTable, TokenBucket, type CallerRate } from '../../core/rates.ts';
import { paramsAreSmall, paramsBytesAtMost } from '../../core/shares/queued-bytes.ts';
import type { ShareRefusal } from '../../core/shares/share-bounds.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import { DECLINED } from '../../core/trace-context.ts';
import type { MemoryDedup } from './dedup.ts';
import { NO_TRACE, type CommandRows, type TraceIds } from './history-row.ts';
import { ClientQueue, Entry, type Ledger, type UserLedger } from './ledger.ts';
import type { WaiterIndex } from './waiters.ts';
import { CallboardError } from '../../core/errors.ts';

/** The dependencies of the transactions of acts on commands. */
export type TransactionDeps = {
  readonly clock: Clock;
  readonly ledger: Ledger;
  readonly waiters: WaiterIndex;
  readonly mailboxes: Mailboxes;
  /** Retains a message about a command in history. Returns the number of the new row, or null if no row was added. */
  readonly keep: (rows: CommandRows, row: CommandMessage, now: number, seq?: number) => number | null;
  readonly dedup: Pick<MemoryDedup, 'countEnd'>;
  readonly sha256: (text: string) => string;
  /** The pauses. Each admission and each dispatch checks them. */
  readonly pauses: PauseSet;
  /** Returns whether a client reports a context, and which instance reports it. */
  readonly contextState: (key: ClientKey, contextId: string) => ContextState;
  /** Returns the current connection row of a client. */
  readonly connectionOf: (key: ClientKey) => Connection | null;
  /** Returns the holdings of a user, without creating an object in the ledger. */
  readonly holdingsOf: (userId: string) => Holdings;
  /**
   * Whether dispatch attempts are remembered. They have to be if other processes request acts, because an answer may be
   * lost and the act requested again.
   */
  readonly keepsAttempts: boolean;
};

/** The data of a request that the store holds outside the record. */
export type AddedRequest = ClientKey & Pick<AdmitRequest, 'params' | 'chosenId'>;

/**
 * A client as the transaction reads it: with an object in the ledger, or without one if the client has no link and no
 * live command.
 */
export type Client = ClientView & {
  readonly holdings: Holdings;
  readonly user: Pick<UserLedger, 'holdings' | 'unmarkedId'>;
};

/**
 * The transaction of every act in memory. Only this class changes the commands of the ledger. An act is one synchronous
 * function, so nothing else runs between its changes, and each change is applied at once.
 */
export class MemoryTransaction implements Transaction<Entry, Client> {
  now = 0;
  protected readonly keepsAttempts: boolean;
  readonly #deps: TransactionDeps;
  readonly #ledger: Ledger;
  readonly #rules: CommandRules<Entry, Client>;
  /** The token buckets of each rate rule, by caller. A bucket that does not exist yet counts as full. */
  readonly #rates = new Map<string, RateTable<TokenBucket>>();

  constructor(deps: TransactionDeps) {
    this.#deps = deps;
    this.keepsAttempts = deps.keepsAttempts;
    this.#ledger = deps.ledger;
    this.#rules = new CommandRules(this);
  }

  /** Begins an act: reads the clock once for the whole act, and returns the rules. */
  begin(): CommandRules<Entry, Client> {
    this.now = this.#deps.clock.now();
    return this.#rules;
  }

  find(key: CommandKey): Entry | null {
    return this.#ledger.find(key) ?? null;
  }

  markOf(key: CommandKey, digest: string | null): CommandMark | 'conflict' | null {
    return this.#ledger.mark(key, digest);
  }

  /** Returns a view of the client. Creates no object for a user or client that has none. */
  client(key: ClientKey): Client {
    return this.#ledger.peekClient(key) ?? this.#idleClient(key);
  }

  /**
   * Returns the client's commands, all of which move in one act. Does not read the lists of an idle client, because
   * reading a list creates it.
   */
  moving(key: ClientKey): MovingQueue<Entry> {
    const client = this.#ledger.peekClient(key);
    const { waiting, running } = client && !client.idle ? client : { waiting: NONE, running: NONE };
    return { binding: client?.binding ?? null, waiting, arrived: NONE, running, isLast: true };
  }

  /**
   * Whether the request is based on a connection that is no longer current. This can only happen if another process
   * read the connection, because core reads it in the same tick.
   */
  isOutdated(request: AdmitRequest): boolean {
    const { seenLink = null } = request;
    if (seenLink === null) return false;
    const now = this.#deps.connectionOf(request);
    return (
      now?.disconnectedAt !== null ||
      now.epoch !== seenLink.epoch ||
      now.instanceId !== seenLink.instanceId ||
      revisionOf(now.actions, this.#deps.sha256) !== seenLink.revision
    );
  }

  isOver(deadline: number): boolean {
    return this.now >= deadline;
  }

  params({ params }: Entry): JsonText | null {
    return params;
  }

  keptParams({ params }: Entry): JsonText | null {
    return params;
  }

  result({ result }: Entry): JsonText | null {
    return result;
  }

  context(key: ClientKey, contextId: string): ContextState {
    return this.#deps.contextState(key, contextId);
  }

  pauseOf(call: PausedCall): Pause | null {
    const { pauses } = this.#deps;
    return pauses.size === 0 ? null : pauses.of(call, this.now);
  }

  reserved(scopeId: string): number {
    return this.#ledger.reserved(scopeId);
  }

  scopeFull(scopeId: string, most: number, refusal: RefusedAdmission): RefusedAdmission | null {
    return this.#ledger.reserved(scopeId) >= most ? refusal : null;
  }

  memberFull(
    { scopeId, userId }: AdmitQuestion,
    { above, most }: MemberLimits,
    refusal: RefusedAdmission,
  ): RefusedAdmission | null {
    const isShort = this.#ledger.reserved(scopeId) > above;
    return isShort && this.#ledger.reservedBy(scopeId, userId) >= most ? refusal : null;
  }

  queueFull({ waiting }: Client, most: number, refusal: RefusedAdmission): RefusedAdmission | null {
    return waiting.size >= most ? refusal : null;
  }

  noMark(client: Client, commandId: string): ShareRefusal | null {
    return this.#ledger.refuseChosen(client, commandId);
  }

  /** Small params for a connected client with an empty queue are never refused, because they are dispatched at once. */
  noRoom({ binding, waiting, holdings }: Client, params: JsonText): ShareRefusal | null {
    if (binding && waiting.size === 0 && paramsAreSmall(params)) return null;
    if (holdings.refusal('queued_bytes', paramsBytesAtMost(params)) === null) return null;
    return holdings.refusal('queued_bytes', utf8Length(params));
  }

  waitForToken(rate: CallerRate): number {
    return this.#bucketOf(rate).waitMs;
  }

  takeToken(rate: CallerRate): void {
    this.#bucketOf(rate).take();
  }

  #bucketOf({ rule, caller, burst, perSecond }: CallerRate): TokenBucket {
    const { clock } = this.#deps;
    const known = this.#rates.get(rule);
    const table = known ?? new RateTable(RATE_CALLERS, () => new TokenBucket(clock, { burst, perSecond }));
    if (!known) this.#rates.set(rule, table);
    return table.of(caller);
  }

  canWait({ waiters }: Entry, { rpcId }: Pick<NewWaiter, 'waitFor'> & Partial<NewWaiter>, most: number): boolean {
    return waiters.length < most || waiters.some(({ request }) => request.rpcId === rpcId);
  }

  add(client: Client, request: AddedRequest, command: Command, markedBy: string | null): Entry {
    const queue = client instanceof ClientQueue ? client : this.#ledger.client(request);
    const entry = new Entry({ command, trace: traceOf(command), client: queue, params: request.params });
    if (command.dispatchedAt === null) entry.holdParams();
    else this.#takeParams(entry, markedBy);
    this.#ledger.reserveMark(entry, request.chosenId);
    this.#ledger.add(entry, command.queuedAt === null ? command.connectDeadline : command.deadline);
    return entry;
  }

  reserveMark(entry: Entry): void {
    this.#ledger.reserveMark(entry, false);
  }

  wait(entry: Entry, waiter: NewWaiter): void {
    if (entry.waiters.some(({ request }) => request.rpcId === waiter.rpcId)) return;
    this.#deps.waiters.add(entry, waiter, this.now);
  }

  unwait(key: CommandKey, rpcId: string): void {
    const { waiters } = this.#deps;
    const row = this.find(key)?.waiters.find(({ request }) => request.rpcId === rpcId);
    if (row) waiters.remove(row);
  }

  /** Retains a message in history, and returns the number of its row. */
  retain({ rows }: Entry, row: CommandMessage): number | null {
    return this.#deps.keep(rows, row, this.now);
  }

  offer(entry: Entry, nodeId: string): void {
    this.#deps.mailboxes.post(nodeId, { kind: 'command', key: keyOf(entry) });
  }

  post(nodeId: string, row: MailboxRow): void {
    this.#deps.mailboxes.post(nodeId, row);
  }

  move(entry: Entry, command: Command): void {
    entry.replace(command);
    if (command.stage === 'acknowledged') this.arrived(entry);
  }

  queue(entry: Entry, command: Command): void {
    entry.replace(command);
    entry.queuedOn = command.nodeId;
    this.#ledger.setDue(entry, command.deadline);
  }

  run(entry: Entry, command: Command, markedBy: string | null): JsonText | null {
    entry.replace(command);
    this.#ledger.run(entry);
    return this.#takeParams(entry, markedBy);
  }

  /**
   * Returns the params of a command that is being dispatched. If the attempt may be repeated, the entry keeps the
   * params for that.
   */
  #takeParams(entry: Entry, markedBy: string | null): JsonText | null {
    entry.markedBy = this.keepsAttempts ? markedBy : null;
    if (entry.markedBy !== null) return entry.keepParams('always');
    return entry.client.binding?.tellsReceived ? entry.keepParams() : entry.giveUpParams();
  }

  arrived(entry: Entry): void {
    if (entry.params !== null) entry.giveUpParams();
  }

  noteProgress(entry: Entry, progress: Progress): void {
    entry.progress = progress;
  }

  countEnd(isNew: boolean): void {
    this.#deps.dedup.countEnd(isNew, this.now);
  }

  reply(entry: Entry): void {
    const { command } = entry;
    for (const { request } of this.#deps.waiters.take(entry)) {
      const { rpcId, callerNodeId } = request;
      this.#deps.mailboxes.post(callerNodeId, {
        kind: 'reply',
        reply: { rpcId, command, result: entry.result },
      });
    }
  }

  end(entry: Entry, command: Command, result: JsonText | null): void {
    entry.result = result;
    entry.replace(command);
    entry.markedBy = null;
    this.#ledger.end(entry, this.now);
    this.reply(entry);
    entry.pack();
    this.#ledger.keepWithin(this.now);
  }

  bind(key: ClientKey, binding: Binding | null): void {
    const client = binding ? this.#ledger.client(key) : this.#ledger.peekClient(key);
    if (!client) return;
    client.binding = binding;
    if (!binding) this.#ledger.dropIdle(key);
  }

  sha256(text: string): string {
    return this.#deps.sha256(text);
  }

  #idleClient({ userId }: ClientKey): Client {
    const user = this.#ledger.peekUser(userId) ?? { holdings: this.#deps.holdingsOf(userId), unmarkedId: '' };
    return { binding: null, holdings: user.holdings, waiting: NONE, user };
  }
}

const NONE: readonly Entry[] & { readonly size: number } = Object.assign([], { size: 0 });

type Traced = Omit<TraceIds, 'callerLabel'> & Pick<Command, 'caller'>;

/**
 * Returns the data of a call that the history rows of its command show. Most commands have no trace, or a trace that
 * the tracer did not record. All of these commands share two objects.
 */
export function traceOf(call: Traced): TraceIds {
  const { traceId, parentSpanId, traceFlags, traceState, callSpan, contextId } = call;
  const { label: callerLabel } = call.caller;
  const given = traceId ?? parentSpanId ?? traceFlags ?? traceState ?? contextId ?? callerLabel ?? null;
  if (given === null && callSpan === null) return NO_TRACE;
  if (given === null && callSpan === DECLINED) return DECLINED_TRACE;
  const trace = { traceId, parentSpanId, traceFlags, traceState, callSpan };
  return { ...trace, ...(contextId !== undefined && { contextId }), ...(callerLabel && { callerLabel }) };
}

const DECLINED_TRACE: TraceIds = { ...NO_TRACE, callSpan: DECLINED };

/** Creates core's CommandStore in memory. */
export function createMemoryCommands(
  tx: MemoryTransaction,
  { ledger, keepsAttempts }: Pick<TransactionDeps, 'ledger' | 'keepsAttempts'>,
): CommandStore {
  return {
    windowMs: ledger.windowMs,
    admit: (request) => tx.begin().admit(request),
    preview: (question) => tx.begin().preview(question),
    dispatch: (key, binding, attempt) => tx.begin().dispatch(key, keepsAttempts ? { binding, attempt } : { binding }),
    report: (key, report) => tx.begin().report(key, report),
    finish: (key, end) => tx.begin().finish(key, end),
    settle: (key, settlement) => tx.begin().settle(key, settlement),
    rebind: (client, binding, link, received) => tx.begin().rebind(client, { binding, link, received }),
    live(client) {
      const { waiting, running } = ledger.peekClient(client) ?? { waiting: NONE, running: NONE };
      return [...waiting, ...running].map(keyOf);
    },
    loads: (clients) =>
      clients.map((client) => {
        const { waiting, running } = ledger.peekClient(client) ?? { waiting: NONE, running: NONE };
        return { inFlight: running.size, queued: waiting.size };
      }),
    get: (keys) => keys.map((key) => ledger.find(key)?.command ?? null),
    mark(key) {
      const mark = ledger.find(key) ? null : ledger.mark(key, null);
      return mark === 'conflict' ? null : mark;
    },
    result: (key) => ledger.find(key)?.result ?? null,
  };
}

/** Creates core's WaiterStore in memory. */
export function createMemoryWaiters(tx: MemoryTransaction, reads: Omit<WaiterStore, 'attach' | 'remove'>): WaiterStore {
  return {
    ...reads,
    attach: (key, waiter) => tx.begin().attach(key, waiter),
    remove: (key, rpcId) => tx.unwait(key, rpcId),
  };
}

type Box = { readonly listener: Pick<NodeListener, 'deliver'>; rows: MailboxRow[]; scheduled: boolean };

/**
 * The mailboxes of the nodes in one process. Rows are delivered in order, in a microtask, after the act that posted
 * them is complete.
 */
export class Mailboxes {
  readonly #boxes = new Map<string, Box>();

  open(nodeId: string, listener: Box['listener']): () => void {
    if (this.#boxes.has(nodeId)) throw new CallboardError('internal', `Another live node is called "${nodeId}".`);
    const box: Box = { listener, rows: [], scheduled: false };
    this.#boxes.set(nodeId, box);
    return () => {
      if (this.#boxes.get(nodeId) === box) this.#boxes.delete(nodeId);
    };
  }

  post(nodeId: string, row: MailboxRow): boolean {
    const box = this.#boxes.get(nodeId);
    if (!box) return false;
    box.rows.push(row);
    if (!box.scheduled) {
      box.scheduled = true;
      queueMicrotask(() => this.#flush(nodeId, box));
    }
    return true;
  }

  has(nodeId: string): boolean {
    return this.#boxes.has(nodeId);
  }

  #flush(nodeId: string, box: Box): void {
    const rows = box.rows;
    box.rows = [];
    box.scheduled = false;
    for (const row of rows) if (this.#boxes.get(nodeId) === box) box.listener.deliver(row);
  }
}
