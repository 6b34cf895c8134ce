/**
 * The objects of the ledger: commands, waiters, the queues of a client, and the data of a user.
 *
 * Only acts may change them.
 */
import { waiterOf, type NewWaiter, type Waiter } from '../../core/commands/waiter.ts';
import type { Command } from '../../core/commands/command.ts';
import type { Binding } from '../../core/commands/command-store.ts';
import type { HeldCommand, Progress } from '../../core/commands/transaction.ts';
import { clientStream } from '../../core/history/message.ts';
import type { ClientKey } from '../../core/ids.ts';
import { trustJson, utf8Length, type JsonText } from '../../core/json.ts';
import type { Holdings, Shares } from '../../core/shares/shares.ts';
import { DueItem } from './due-index.ts';
import { CommandRows, type StreamHead, type TraceIds } from './history-row.ts';
import { PackedCommand } from './ledger-packed.ts';
import { SparseQueue } from './sparse-queue.ts';

const NO_WAITERS: readonly WaiterRow[] = [];
/** The params of a command that was called without params. */
const NO_PARAMS = trustJson('{}');

/** The commands that hold a reservation in one admission scope, and how many of them each user has. */
export type Scope = {
  readonly scopeId: string;
  readonly holders: SparseQueue<Entry>;
  readonly members: Map<string, number>;
};

/** The values with which an entry is created. */
type NewEntry = {
  readonly command: Command;
  readonly trace: TraceIds;
  readonly client: ClientQueue;
  readonly params: JsonText | null;
};

/**
 * A command with its waiters, its payloads and its positions in the indexes. Only acts may change it. An act replaces
 * `command` by a new record, and sets the other members.
 */
export class Entry extends DueItem implements HeldCommand {
  readonly client: ClientQueue;
  /** The command's first rows in history. They may be retained longer than the command. */
  readonly rows: CommandRows;
  /** The node that the command was last queued on. */
  queuedOn: string | null;
  /**
   * The params. They are kept until dispatch. They are kept until the first report, so that a command that never
   * arrived can be written again, if the client lists in each hello what it has received, or if the attempt to dispatch
   * may be repeated.
   */
  params: JsonText | null;
  /** The number of bytes that `params` counts for. */
  paramsBytes = 0;
  result: JsonText | null = null;
  progress: Progress | null = null;
  /** The number of bytes that the result of an ended command counts for. */
  resultBytes = 0;
  /** True if room for a mark of this command is reserved. Always true if a caller chose the command's id. */
  marked = false;
  /**
   * The dispatch attempt that succeeded, if `TransactionDeps.keepsAttempts` is set. Null once the command has ended.
   */
  markedBy: string | null = null;
  /** True once the whole record was dropped. If room for a mark was reserved, the mark remains. */
  reduced = false;
  /**
   * The waiters, at most WAITERS_PER_COMMAND, in the order of registration. Each change replaces the array, so that all
   * commands without waiters can share one empty array.
   */
  waiters = NO_WAITERS;
  /**
   * The command's admission scope, and the client's queue that contains it; both are null once the command has ended.
   */
  scope: Scope | null = null;
  place: 'waiting' | 'running' | null = null;
  #record: Command | PackedCommand;

  constructor({ command, trace, client, params }: NewEntry) {
    super();
    this.client = client;
    this.rows = new CommandRows(command.commandId, trace, client.head);
    this.queuedOn = command.nodeId;
    this.params = params;
    this.#record = command;
  }

  get userId(): string {
    return this.client.head.userId;
  }

  get clientId(): string {
    return this.client.head.clientId;
  }

  get commandId(): string {
    return this.rows.commandId;
  }

  get trace(): TraceIds {
    return this.rows.trace;
  }

  /**
   * The record. Until the record is replaced or packed, each read returns the same object. Once packed, each read
   * creates a new object.
   */
  get command(): Command {
    return this.#record instanceof PackedCommand ? this.#record.unpack(this) : this.#record;
  }

  replace(command: Command): void {
    this.#record = command;
  }

  /** When the command ended, in epoch milliseconds; null while it is live. */
  get terminalAt(): number | null {
    return this.#record.terminalAt;
  }

  /** The members of the record that a mark needs, read without unpacking the record. */
  get summary(): Pick<Command, 'digest' | 'outcome' | 'execution' | 'error' | 'resultExpired'> {
    return this.#record;
  }

  /**
   * Packs the record of an ended command, if the record has a packed form. `bound`: the link on which the command
   * ended.
   */
  pack(bound = this.client.binding): void {
    if (!(this.#record instanceof PackedCommand)) this.#record = PackedCommand.of(this.#record, bound) ?? this.#record;
  }

  /** Counts the params in the share `queued_bytes` of the user. `giveUpParams` ends this. */
  holdParams(): void {
    if (this.params === null) return;
    this.paramsBytes = utf8Length(this.params);
    this.client.holdings.take('queued_bytes', this.paramsBytes);
  }

  /**
   * Returns the params of a command that is being dispatched. Keeps and counts them, so that the command can be written
   * again. With `if_plenty`, gives them up if little room is left for new commands. With `always`, keeps them even
   * then.
   */
  keepParams(how: 'always' | 'if_plenty' = 'if_plenty'): JsonText | null {
    const { params, paramsBytes } = this;
    const kept = params ?? NO_PARAMS;
    const bytes = paramsBytes > 0 ? 0 : utf8Length(kept);
    if (how !== 'always' && !this.client.holdings.hasPlenty('queued_bytes', bytes)) return this.giveUpParams();
    this.params = kept;
    if (bytes > 0) this.holdParams();
    return params;
  }

  /** Removes and returns the params of a command that was dispatched or has ended, and stops counting them. */
  giveUpParams(): JsonText | null {
    const { params, paramsBytes } = this;
    this.params = null;
    this.paramsBytes = 0;
    this.client.holdings.release('queued_bytes', paramsBytes);
    return params;
  }

  /** Records that the result is no longer retained. */
  expireResult(): void {
    if (this.#record instanceof PackedCommand) this.#record.resultExpired = true;
    else this.#record = { ...this.#record, resultExpired: true };
  }

  removeWaiter(row: WaiterRow): void {
    this.waiters = this.waiters.length === 1 ? NO_WAITERS : this.waiters.filter((other) => other !== row);
  }
}

/** A waiter that is not resolved. Its Waiter object is created on each read, because most waiters are never listed. */
export class WaiterRow {
  readonly entry: Entry;
  /** The number of the registration. A later registration has a higher number. */
  readonly seq: number;
  readonly createdAt: number;
  /** The same time as `createdAt`, unless an earlier registration has a later time; then that time. */
  readonly listedAt: number;
  readonly request: NewWaiter;
  /** True once the waiter was resolved or removed. */
  gone = false;

  constructor(
    entry: Entry,
    request: NewWaiter,
    { seq, createdAt, listedAt }: { readonly seq: number; readonly createdAt: number; readonly listedAt: number },
  ) {
    this.entry = entry;
    this.request = request;
    this.seq = seq;
    this.createdAt = createdAt;
    this.listedAt = listedAt;
  }

  get waiter(): Waiter {
    return waiterOf(this.entry.command, this.request, this.createdAt);
  }
}

export function isOver({ gone }: WaiterRow): boolean {
  return gone;
}

/**
 * The commands of one client, and the waiters for them. Each queue is created at its first use, because a connected
 * client usually has no command.
 */
export class ClientQueue {
  readonly user: UserLedger;
  /** The ids of the client, with the suffix of its history stream. */
  readonly head: StreamHead;
  binding: Binding | null = null;
  #waiting: SparseQueue<Entry> | null = null;
  #running: SparseQueue<Entry> | null = null;
  #waiters: SparseQueue<WaiterRow> | null = null;

  constructor(user: UserLedger, { userId, clientId }: ClientKey) {
    this.user = user;
    this.head = { userId, clientId, suffix: clientStream(clientId) };
  }

  /** The holdings of the client's user. */
  get holdings(): Holdings {
    return this.user.holdings;
  }

  /** The commands that wait for the client, in order of admission. */
  get waiting(): SparseQueue<Entry> {
    return (this.#waiting ??= new SparseQueue(({ place }) => place !== 'waiting'));
  }

  /** The commands that the client runs. */
  get running(): SparseQueue<Entry> {
    return (this.#running ??= new SparseQueue(({ place }) => place !== 'running'));
  }

  /** The waiters for the client's commands, in the order of registration. */
  get waiters(): SparseQueue<WaiterRow> {
    return (this.#waiters ??= new SparseQueue(isOver));
  }

  /** Whether the client has no live command. */
  get idle(): boolean {
    return (this.#waiting?.size ?? 0) + (this.#running?.size ?? 0) === 0;
  }
}

/** The data of one user in the ledger: holdings, ended commands (oldest first), and waiters. */
export type UserLedger = {
  readonly userId: string;
  readonly holdings: Holdings;
  /** The ended commands with a whole record. */
  readonly records: SparseQueue<Entry>;
  /** The ended commands with a result. */
  readonly results: SparseQueue<Entry>;
  /** The waiters for the user's commands, in the order of registration. */
  readonly waiters: SparseQueue<WaiterRow>;
  /** The number of the user's clients that have a ClientQueue in the ledger. */
  clients: number;
  /** Until this time (epoch milliseconds), listings of the user may lack records that were reduced to marks early. */
  shortUntil: number;
  /**
   * The greatest id among the ids that the relay made and whose records were dropped without a mark; '' if there is
   * none.
   */
  unmarkedId: string;
};

/**
 * The UserLedger objects by user id. An object exists while its user has a client, an ended command or a mark, and
 * until `shortUntil` is over.
 */
export class UserLedgers {
  readonly #shares: Shares;
  readonly #users = new Map<string, UserLedger>();

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  find(userId: string): UserLedger | undefined {
    return this.#users.get(userId);
  }

  of(userId: string): UserLedger {
    const known = this.#users.get(userId);
    if (known) return known;
    const made: UserLedger = {
      userId,
      holdings: this.#shares.of(userId),
      records: new SparseQueue(hasNoRecord),
      results: new SparseQueue(hasNoResult),
      waiters: new SparseQueue(isOver),
      clients: 0,
      shortUntil: -Infinity,
      unmarkedId: '',
    };
    this.#users.set(userId, made);
    return made;
  }

  values(): Iterable<UserLedger> {
    return this.#users.values();
  }

  /** Removes the object of a user who has no client, ended command or mark any more and whose `shortUntil` is over. */
  dropIdle(user: UserLedger, now: number): void {
    if (user.clients > 0 || user.records.size > 0 || user.holdings.held('marks') > 0 || now < user.shortUntil) return;
    this.#users.delete(user.userId);
  }
}

export function hasNoRecord(entry: Entry): boolean {
  return entry.reduced;
}

export function hasNoResult(entry: Entry): boolean {
  return entry.result === null;
}
