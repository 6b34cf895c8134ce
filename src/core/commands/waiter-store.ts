/** The storage port of waiters: the callers that wait for commands. */
import type { ActionPatterns } from '../auth/principal.ts';
import type { WithGaps } from '../completeness.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { CallerFilter, Command, CommandMark } from './command.ts';
import type { NewWaiter, Waiter } from './waiter.ts';

/** A waiter and the command that it waits on, in their current states. */
export type PendingWait = { readonly waiter: Waiter; readonly command: Command };

export type WaiterFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  /** The node of the target's connection. */
  readonly nodeId: string | null;
  readonly callerNodeId: string | null;
  /** The context that the command names; null: any or none. */
  readonly contextId: string | null;
  readonly minAgeMs: number | null;
  /** The actions whose waits the requester may see. Absent: all actions. */
  readonly seen?: ActionPatterns;
} & CallerFilter;

/** Matches every wait. */
export const ANY_WAIT: WaiterFilter = {
  userId: null,
  clientId: null,
  nodeId: null,
  callerNodeId: null,
  contextId: null,
  minAgeMs: null,
  caller: null,
  callerKind: null,
};

export type AttachResult =
  | { readonly kind: 'waiting'; readonly waiter: Waiter; readonly command: Command }
  | { readonly kind: 'satisfied'; readonly command: Command; readonly result: JsonText | null }
  /** The command ended, and only its mark is retained. */
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  | { readonly kind: 'full' }
  | { readonly kind: 'unknown' };

/** A number of waits. `complete`: false if counting stopped at COUNT_SCAN rows. */
export type Counted = { readonly count: number; readonly complete: boolean };

/**
 * The number of waits for each node of a target's connection. The key is null for commands whose client is not
 * connected.
 */
export type WaitCounts = WithGaps & {
  readonly counts: ReadonlyMap<string | null, number>;
  /** False if counting stopped at COUNT_SCAN rows. */
  readonly complete: boolean;
};

export type CountedScan = { readonly total: number; readonly scan: Scan<PendingWait> };

/**
 * The waits of callers. `CommandStore.admit` or `attach` adds a row. The row is removed when its command ends, when the
 * command reaches the stage that the caller waits for, or when `remove` is called. A command has at most
 * WAITERS_PER_COMMAND waits in the whole deployment, not counting those of nodes that are gone. Reads return the rows
 * of all nodes. A store without the capability `allWaits` returns only the rows of this process;
 * `core/calls/pending.ts` then asks the other nodes. A position begins with a time, so positions of different processes
 * can be compared.
 */
export interface WaiterStore {
  /** Atomic: reads the record and registers the waiter in one act, so no end is missed between the two. */
  attach(key: CommandKey, waiter: NewWaiter): MaybePromise<AttachResult>;
  /** Removes a wait that ended, or whose caller hung up. Does not change the command. Idempotent. */
  remove(key: CommandKey, rpcId: string): MaybePromise<void>;
  /** Lists waits in the order in which they were registered. Resolves, renews and removes nothing. */
  list(filter: WaiterFilter, page: PageRequest): MaybePromise<Scan<PendingWait>>;
  countByNode(filter: WaiterFilter): MaybePromise<WaitCounts>;
  /**
   * Returns for each user the first page of `list` for this user, and the total number of the user's waits. One round
   * trip.
   */
  ofUsers(userIds: readonly string[], first: number): MaybePromise<readonly CountedScan[]>;
  ofClients(keys: readonly ClientKey[], first: number): MaybePromise<readonly CountedScan[]>;
  ofCommands(keys: readonly CommandKey[]): MaybePromise<readonly (readonly PendingWait[])[]>;
}
