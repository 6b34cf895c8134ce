/**
 * The objects of the ledger: a command with its waiters and its positions in the indexes, a waiter, the queue of a
 * client, and the data of a user. Only acts may change them.
 */
import { waiterOf, type Command, type NewWaiter, type Waiter } from '../../core/commands/command.ts';
import type { Binding } from '../../core/commands/stores.ts';
import type { HeldCommand, Progress } from '../../core/commands/transaction.ts';
import { clientStream } from '../../core/history/message.ts';
import type { ClientKey } from '../../core/ids.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { StreamHead, TraceIds } from './history-rows.ts';
import { PackedCommand } from './commands-packed.ts';
import { DueItem, List, type ListItem, type SparseQueue } from './collections.ts';

const NO_WAITERS: readonly WaiterRow[] = [];

/** The values with which an entry is created. */
export type NewEntry = {
  readonly command: Command;
  readonly trace: TraceIds;
  readonly client: ClientQueue;
  readonly params: JsonText | null;
};

/**
 * A command with everything that belongs to it. An act replaces the record as a whole. Only acts change the other
 * members.
 */
export class Entry extends DueItem implements HeldCommand {
  readonly commandId: string;
  readonly trace: TraceIds;
  readonly client: ClientQueue;
  /** The node that the command was last queued on. */
  queuedOn: string | null;
  /** The params, until dispatch. They are not needed later, because no command is written twice. */
  params: JsonText | null;
  /** The number of bytes that `params` counts for. */
  paramsBytes = 0;
  result: JsonText | null = null;
  progress: Progress | null = null;
  /** The number of bytes that the result of an ended command counts for. */
  resultBytes = 0;
  /** True if room for a mark is reserved. Always true if a caller chose the command's id. */
  marked = false;
  /** True once the whole record is dropped. If room was reserved for a mark, the mark is kept. */
  reduced = false;
  /**
   * The waiters, at most WAITERS_PER_COMMAND, in the order of registration. Each change replaces the array, so that the
   * many commands without waiters can use the same empty array.
   */
  waiters = NO_WAITERS;
  /** The command's positions in the lists of its client and of its admission scope; null once the command has ended. */
  place: ListItem<Entry> | null = null;
  scopePlace: ListItem<Entry> | null = null;
  #record: Command | PackedCommand;

  constructor({ command, trace, client, params }: NewEntry) {
    super();
    this.commandId = command.commandId;
    this.trace = trace;
    this.client = client;
    this.queuedOn = command.nodeId;
    this.params = params;
    this.#record = command;
  }

  /** Always null: every act in memory is answered, so no dispatch is requested twice. */
  get markedBy(): null {
    return null;
  }

  get userId(): string {
    return this.client.head.userId;
  }

  get clientId(): string {
    return this.client.head.clientId;
  }

  get head(): StreamHead {
    return this.client.head;
  }

  /**
   * The record. It is the same object on each read until the record is replaced or packed. Once it is packed, each read
   * makes a new object.
   */
  get command(): Command {
    return this.#record instanceof PackedCommand ? this.#record.unpack(this) : this.#record;
  }

  set command(command: Command) {
    this.#record = command;
  }

  /** When the command ended, in epoch milliseconds; null while it is live. */
  get terminalAt(): number | null {
    return this.#record.terminalAt;
  }

  /** The members of the record that a mark keeps, read without unpacking the record. */
  get summary(): Pick<Command, 'digest' | 'outcome' | 'execution' | 'error' | 'resultExpired'> {
    return this.#record;
  }

  /**
   * Packs the record of an ended command, if the command ended in the usual way. `bound`: the link on which it ended.
   */
  pack(bound = this.client.binding): void {
    if (!(this.#record instanceof PackedCommand)) this.#record = PackedCommand.of(this.#record, bound) ?? this.#record;
  }

  /** Counts the params in the share `queued_bytes` of their user, until `giveUpParams` returns them. */
  holdParams(): void {
    if (this.params === null) return;
    this.paramsBytes = utf8Length(this.params);
    this.client.holdings.take('queued_bytes', this.paramsBytes);
  }

  /** Returns the params of a command that was dispatched or has ended, and stops counting them. */
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

/** A waiter that is not resolved. Its Waiter object is made when it is read, because most waiters are never listed. */
export class WaiterRow {
  readonly entry: Entry;
  /** The number of the registration. A later registration has a higher number. */
  readonly seq: number;
  readonly createdAt: number;
  readonly request: NewWaiter;
  /** The waiter's positions in the lists of WaiterIndex; null before it is added. */
  places: Readonly<Record<'all' | 'user' | 'client', ListItem<WaiterRow>>> | null = null;

  constructor(
    entry: Entry,
    request: NewWaiter,
    { seq, createdAt }: { readonly seq: number; readonly createdAt: number },
  ) {
    this.entry = entry;
    this.request = request;
    this.seq = seq;
    this.createdAt = createdAt;
  }

  get waiter(): Waiter {
    return waiterOf(this.entry.command, this.request, this.createdAt);
  }
}

/**
 * The commands of one client, and the waiters for them. Each list is created at its first use, because a connected
 * client usually has no command.
 */
export class ClientQueue {
  readonly user: UserLedger;
  /** The ids of the client, and the suffix of its history stream. */
  readonly head: StreamHead;
  binding: Binding | null = null;
  #waiting: List<Entry> | null = null;
  #running: List<Entry> | null = null;
  #waiters: List<WaiterRow> | null = null;

  constructor(user: UserLedger, { userId, clientId }: ClientKey) {
    this.user = user;
    this.head = { userId, clientId, suffix: clientStream(clientId) };
  }

  /** The holdings of the client's user. */
  get holdings(): Holdings {
    return this.user.holdings;
  }

  /** The commands that wait for the client, in the order of admission. */
  get waiting(): List<Entry> {
    return (this.#waiting ??= new List());
  }

  /** The commands that the client runs. */
  get running(): List<Entry> {
    return (this.#running ??= new List());
  }

  /** The waiters for the client's commands, in the order of registration. */
  get waiters(): List<WaiterRow> {
    return (this.#waiters ??= new List());
  }

  /** Whether the client has no live command. */
  get idle(): boolean {
    return (this.#waiting?.size ?? 0) + (this.#running?.size ?? 0) === 0;
  }
}

/**
 * The ledger's data of one user: the user's holdings, the user's ended commands, oldest first, and the waiters for the
 * user's commands.
 */
export type UserLedger = {
  readonly userId: string;
  readonly holdings: Holdings;
  /** The ended commands with a whole record. */
  readonly records: SparseQueue<Entry>;
  /** The ended commands with a result. */
  readonly results: SparseQueue<Entry>;
  /** The waiters for the user's commands, in the order of registration. */
  readonly waiters: List<WaiterRow>;
  /** The number of the user's clients that have an object in the ledger. */
  clients: number;
  /** The time until which the user's listings lack records that were reduced to marks early, in epoch milliseconds. */
  shortUntil: number;
  /** The greatest id that the relay made and whose record was dropped without a mark; '' if there is none. */
  unmarkedId: string;
};
