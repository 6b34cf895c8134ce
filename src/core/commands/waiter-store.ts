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
  /** The context that the command names. */
  readonly contextId: string | null;
  readonly minAgeMs: number | null;
  /** The only actions for whose commands the requester may see waits. Absent: all. */
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
  /** The command ended, and only its mark is left. */
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  | { readonly kind: 'full' }
  | { readonly kind: 'unknown' };

/** A number of waits. `complete` is false if the count stopped at COUNT_SCAN rows. */
export type Counted = { readonly count: number; readonly complete: boolean };

/** Numbers of waits by the node of the target's connection; the key is null for commands that wait for their client. */
export type WaitCounts = WithGaps & {
  readonly counts: ReadonlyMap<string | null, number>;
  /** False if the count stopped at COUNT_SCAN rows. */
  readonly complete: boolean;
};

export type CountedScan = { readonly total: number; readonly scan: Scan<PendingWait> };

/**
 * The waits of the callers of this process. `CommandStore.admit` or `attach` adds a row. The row is removed when its
 * command ends, its stage is reached, or `remove` is called. A deployment has at most WAITERS_PER_COMMAND waits on a
 * command; those of a node that is gone do not count. Reads return the rows of all nodes, or, without the capability
 * `allWaits`, those of this process: other nodes are then asked for theirs (`core/calls/pending.ts`). Positions begin
 * with a time, so those of several processes can be compared.
 */
export interface WaiterStore {
  /** Atomic: reads the record and registers the waiter in one act, so that no end is missed in between. */
  attach(key: CommandKey, waiter: NewWaiter): MaybePromise<AttachResult>;
  /** Removes a wait, because it ended or because the caller hung up. The command is not touched. Idempotent. */
  remove(key: CommandKey, rpcId: string): MaybePromise<void>;
  /** Lists waits in the order in which they were registered. Observation only: resolves, renews and removes nothing. */
  list(filter: WaiterFilter, page: PageRequest): MaybePromise<Scan<PendingWait>>;
  countByNode(filter: WaiterFilter): MaybePromise<WaitCounts>;
  /**
   * Returns for each user the first page that `list` gives for this user, and the total number of the user's waits. One
   * round trip.
   */
  ofUsers(userIds: readonly string[], first: number): MaybePromise<readonly CountedScan[]>;
  ofClients(keys: readonly ClientKey[], first: number): MaybePromise<readonly CountedScan[]>;
  ofCommands(keys: readonly CommandKey[]): MaybePromise<readonly (readonly PendingWait[])[]>;
}
