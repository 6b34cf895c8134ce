import type { Command } from '../../core/delivery/command.ts';
import type { Binding } from '../../core/delivery/commands.ts';
import type { Waiter } from '../../core/delivery/waiter.ts';
import type { JsonText } from '../../core/json.ts';
import type { LazySet } from '../../core/lazy.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { CommandHead } from './commands-message.ts';
import type { SparseQueue } from './list-sparse.ts';

/** A command with what belongs to it. The record is replaced on every move; the rest is only ever touched by the acts. */
export type Entry = {
  command: Command;
  readonly head: CommandHead;
  readonly client: ClientQueue;
  /** The node that it was last queued on. */
  queuedOn: string | null;
  /** Kept until dispatch: nothing is written twice. */
  params: JsonText | null;
  /** Of `params`, as they are counted. */
  paramsBytes: number;
  result: JsonText | null;
  /** Rows of progress that were kept, and when the last one was; null before the first. */
  progress: { readonly rows: number; readonly at: number } | null;
  /** Of an ended command. */
  resultBytes: number;
  /** Whether room is kept for its mark. Always so where a caller chose its id. */
  marked: boolean;
  /** The record is no longer kept; a mark is, if room was kept for one. */
  reduced: boolean;
  /** At most WAITERS_PER_COMMAND, in the order registered. Replaced when one comes or goes: most commands have none most of the time. */
  waiters: readonly WaiterRow[];
};

export type WaiterRow = { readonly waiter: Waiter; readonly entry: Entry; readonly seq: number };

export const NO_WAITERS: readonly WaiterRow[] = [];

/** What waits for one client, in the order admitted, and what it runs. */
export type ClientQueue = {
  readonly user: UserLedger;
  /** Of its user. */
  readonly holdings: Holdings;
  /** Of its stream of history. */
  readonly suffix: string;
  binding: Binding | null;
  readonly waiting: LazySet<Entry>;
  readonly running: LazySet<Entry>;
};

/** What the ledger knows of one user: what it holds of the shares, and its ended commands, oldest first. */
export type UserLedger = {
  readonly userId: string;
  readonly holdings: Holdings;
  /** Those with a whole record. */
  readonly records: SparseQueue<Entry>;
  /** Those with a result. */
  readonly results: SparseQueue<Entry>;
  /** Clients that the ledger keeps something of. */
  clients: number;
  /** Until when a record would still be shown that was reduced. */
  shortUntil: number;
  /** Of the ids that the relay made, the greatest whose record was reduced without a mark; '' for none. */
  unmarkedId: string;
};
