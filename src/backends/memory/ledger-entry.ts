/** One command with its waiters and its places in the indexes. Only acts may change it. */
import type { Command } from '../../core/delivery/command.ts';
import type { Binding, NewWaiter } from '../../core/delivery/commands.ts';
import type { Waiter } from '../../core/delivery/waiter.ts';
import type { JsonText } from '../../core/json.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { StreamHead, TraceIds } from './history-command-row.ts';
import { PackedCommand } from './commands-packed.ts';
import { DueItem } from './due.ts';
import type { List, ListItem } from './list.ts';
import type { SparseQueue } from './list-sparse.ts';

const NO_WAITERS: readonly WaiterRow[] = [];

/** The parts of a new entry. */
export type NewEntry = {
  readonly command: Command;
  readonly trace: TraceIds;
  readonly client: ClientQueue;
  readonly params: JsonText | null;
};

/** A command with all that belongs to it. Each act replaces the record; only acts change the rest. */
export class Entry extends DueItem {
  readonly commandId: string;
  readonly trace: TraceIds;
  readonly client: ClientQueue;
  /** The node that the command was last queued on. */
  queuedOn: string | null;
  /** Kept until dispatch, because no command is written twice. */
  params: JsonText | null;
  /** The bytes that are counted for `params`. */
  paramsBytes = 0;
  result: JsonText | null = null;
  /** How many progress rows were kept, and when the last one was; null before the first. */
  progress: { readonly rows: number; readonly at: number } | null = null;
  /** The bytes that are counted for the result of an ended command. */
  resultBytes = 0;
  /** Whether room is reserved for its mark. Always true if a caller chose its id. */
  marked = false;
  /** True once the record is no longer kept; its mark is kept if room was reserved for one. */
  reduced = false;
  /**
   * At most WAITERS_PER_COMMAND, in the order of registration. The array is replaced on each change, because most
   * commands have no waiters most of the time.
   */
  waiters = NO_WAITERS;
  /** Its place among the commands of its client and its scope; null once it has ended. */
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

  get userId(): string {
    return this.client.head.userId;
  }

  get clientId(): string {
    return this.client.head.clientId;
  }

  get head(): StreamHead {
    return this.client.head;
  }

  /** The record: the same object until it is replaced or packed, and a new object on each read once it is packed. */
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

  /** What a mark keeps of the record, without unpacking it. */
  get summary(): Pick<Command, 'digest' | 'outcome' | 'execution' | 'error' | 'resultExpired'> {
    return this.#record;
  }

  /** Packs the record of an ended command, if it is of the usual form. */
  pack(): void {
    if (!(this.#record instanceof PackedCommand))
      this.#record = PackedCommand.of(this.#record, this.client.binding) ?? this.#record;
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

/** An unresolved waiter. Its Waiter object is made when it is read, because most waiters are never listed. */
export class WaiterRow {
  readonly entry: Entry;
  /** The number of the registration: a later one has a higher number. */
  readonly seq: number;
  readonly createdAt: number;
  readonly request: NewWaiter;
  /** Its places in the lists of WaiterIndex; null before it is added. */
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
    const { createdAt, entry } = this;
    const { rpcId, callerNodeId, waitFor, withinMs } = this.request;
    const { userId, clientId, commandId, action, deadline } = entry.command;
    const timesOutAt = withinMs === null ? deadline : Math.min(createdAt + withinMs, deadline);
    return { userId, clientId, commandId, action, rpcId, callerNodeId, waitFor, createdAt, timesOutAt };
  }
}

/** The commands that wait for one client, in the order of admission, and those that it runs. */
export type ClientQueue = {
  readonly user: UserLedger;
  /** The holdings of its user. */
  readonly holdings: Holdings;
  /** Its ids, and its history stream. */
  readonly head: StreamHead;
  binding: Binding | null;
  readonly waiting: List<Entry>;
  readonly running: List<Entry>;
  /** The waiters for its commands, in the order of registration. */
  readonly waiters: List<WaiterRow>;
};

/**
 * What the ledger keeps for one user: what the user holds of the shares, and the user's ended commands, oldest first.
 */
export type UserLedger = {
  readonly userId: string;
  readonly holdings: Holdings;
  /** Ended commands with a whole record. */
  readonly records: SparseQueue<Entry>;
  /** Ended commands with a result. */
  readonly results: SparseQueue<Entry>;
  /** The waiters for the commands of this user, in the order of registration. */
  readonly waiters: List<WaiterRow>;
  /** Number of clients that have an object in the ledger. */
  clients: number;
  /** Until when the latest record that was reduced to a mark would still be shown, in epoch milliseconds. */
  shortUntil: number;
  /** The greatest id, among those that the relay made, whose record was reduced without a mark; '' if there is none. */
  unmarkedId: string;
};
