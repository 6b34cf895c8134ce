import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { Maybe } from '../maybe.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { NewWaiter } from './commands.ts';
import type { Command, CommandMark } from './command.ts';
import type { Waiter } from './waiter.ts';

/** A waiter beside the command that it waits on, as both stand. */
export type PendingWait = { readonly waiter: Waiter; readonly command: Command };

export type WaiterFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  /** The node of the target's connection. */
  readonly nodeId: string | null;
  readonly callerNodeId: string | null;
  readonly minAgeMs: number | null;
};

export type AttachResult =
  | { readonly kind: 'waiting'; readonly waiter: Waiter; readonly command: Command }
  | { readonly kind: 'satisfied'; readonly command: Command; readonly result: JsonText | null }
  /** A mark alone is left of the command. */
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  | { readonly kind: 'full' }
  | { readonly kind: 'unknown' };

/** `complete` is false when the count stopped at COUNT_SCAN rows. */
export type Counted = { readonly count: number; readonly complete: boolean };

export type CountedScan = { readonly total: number; readonly scan: Scan<PendingWait> };

/** Callers that still wait. Rows appear by ADMIT or `attach`, and go when their command ends, their stage is reached, or they are removed. */
export interface WaiterStore {
  /** Atomic: reads the record and registers the waiter in one act, so that no end falls between. */
  attach(key: CommandKey, waiter: NewWaiter): Maybe<AttachResult>;
  /** The caller's wait ended or it hung up. The command is untouched. Idempotent. */
  remove(key: CommandKey, rpcId: string): Maybe<void>;
  /** Oldest first. Reads only: an observation resolves, renews and removes nothing. */
  list(filter: WaiterFilter, page: PageRequest): Maybe<Scan<PendingWait>>;
  count(filter: WaiterFilter): Maybe<Counted>;
  /** By the node of the target's connection; null for commands that wait for their client. */
  countByNode(
    filter: WaiterFilter,
  ): Maybe<{ readonly counts: ReadonlyMap<string | null, number>; readonly complete: boolean }>;
  /** Per user asked for: the page that `list` gives for it alone, and how many in all. One round trip. */
  ofUsers(userIds: readonly string[], first: number): Maybe<readonly CountedScan[]>;
  ofClients(keys: readonly ClientKey[], first: number): Maybe<readonly CountedScan[]>;
  ofCommands(keys: readonly CommandKey[]): Maybe<readonly (readonly PendingWait[])[]>;
}
