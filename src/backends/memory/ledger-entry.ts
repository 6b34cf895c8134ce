import type { Command } from '../../core/delivery/command.ts';
import type { Binding } from '../../core/delivery/commands.ts';
import type { Waiter } from '../../core/delivery/waiter.ts';
import type { JsonText } from '../../core/json.ts';
import type { LazySet } from '../../core/lazy.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { CommandHead } from './commands-message.ts';
import type { SparseQueue } from './list-sparse.ts';

/** A command with all that belongs to it. Each act replaces the record; only acts change the rest. */
export type Entry = {
  command: Command;
  readonly head: CommandHead;
  readonly client: ClientQueue;
  /** The node that the command was last queued on. */
  queuedOn: string | null;
  /** Kept until dispatch, because no command is written twice. */
  params: JsonText | null;
  /** The bytes that are counted for `params`. */
  paramsBytes: number;
  result: JsonText | null;
  /** How many progress rows were kept, and when the last one was; null before the first. */
  progress: { readonly rows: number; readonly at: number } | null;
  /** The bytes that are counted for the result of an ended command. */
  resultBytes: number;
  /** Whether room is reserved for its mark. Always true if a caller chose its id. */
  marked: boolean;
  /** True once the record is no longer kept; its mark is kept if room was reserved for one. */
  reduced: boolean;
  /**
   * At most WAITERS_PER_COMMAND, in the order of registration. The array is replaced on each change, because most
   * commands have no waiters most of the time.
   */
  waiters: readonly WaiterRow[];
};

export type WaiterRow = { readonly waiter: Waiter; readonly entry: Entry; readonly seq: number };

export const NO_WAITERS: readonly WaiterRow[] = [];

/** The commands that wait for one client, in the order of admission, and those that it runs. */
export type ClientQueue = {
  readonly user: UserLedger;
  /** The holdings of its user. */
  readonly holdings: Holdings;
  /** The suffix of its history stream. */
  readonly suffix: string;
  binding: Binding | null;
  readonly waiting: LazySet<Entry>;
  readonly running: LazySet<Entry>;
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
  /** Number of clients that have an object in the ledger. */
  clients: number;
  /** Until when the latest record that was reduced to a mark would still be shown, in epoch milliseconds. */
  shortUntil: number;
  /** The greatest id, among those that the relay made, whose record was reduced without a mark; '' if there is none. */
  unmarkedId: string;
};
