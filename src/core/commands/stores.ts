/** The port of commands. Each method is one atomic act, so two nodes never see half of one. */
import type { ClientType, Connection } from '../connections/connection.ts';
import type { StoredPayload, TerminalError } from '../history/message.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { RefusedShare, ShareRefusal } from '../shares/bounds.ts';
import type { Command, CommandCaller, CommandMark } from './command.ts';
import type { Waiter } from './waiter.ts';

/** The part of an admission that decides whether it is refused. */
export type AdmitQuestion = CommandKey & {
  /** True if the caller chose the id. Such a command is admitted only if there is room for its mark. */
  readonly chosenId: boolean;
  readonly digest: string;
  readonly scopeId: string;
  /** The most reservations that the scope may hold at once. */
  readonly scopeLimit: number;
  /** The most reservations of the user above three quarters of `scopeLimit`; null: no bound of its own. */
  readonly memberLimit: number | null;
  readonly namedInstanceId: string | null;
  readonly params: JsonText | null;
  readonly connectWithinMs: number;
  readonly waiter: Pick<NewWaiter, 'waitFor'>;
};

export type AdmitRequest = AdmitQuestion & {
  /** What kind of program the client is; null if it is not connected. */
  readonly clientType: ClientType | null;
  readonly action: string;
  /** The params in the form that the history row keeps. */
  readonly kept: StoredPayload;
  readonly caller: CommandCaller;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly traceFlags: string | null;
  readonly traceState: string | null;
  readonly callSpan: string | null;
  readonly respondWithinMs: number;
  readonly waiter: NewWaiter;
  /**
   * The connection that the caller's checks relied on, if it was not read from the store (`ConnectionStore.lastSeen`).
   * If the client is bound to another link now, or advertises other actions, the answer is `outdated`.
   */
  readonly seen?: Connection | null;
  /**
   * A link of the caller's node that has room for the command. If the client is bound to this link and none of its
   * commands waits to be dispatched, the store may record the dispatch in the same act.
   */
  readonly claim?: DispatchClaim | null;
};

/** A request to record the dispatch together with the admission. `attempt`: as for `CommandStore.dispatch`. */
export type DispatchClaim = { readonly binding: Binding; readonly attempt: string };

/** A wait to register. `withinMs`: how long from now; null: for as long as the command may live. */
export type NewWaiter = Pick<Waiter, 'rpcId' | 'callerNodeId' | 'waitFor'> & { readonly withinMs: number | null };

export type AdmitRefusal =
  | 'command_conflict'
  | 'not_connected'
  | 'instance_mismatch'
  | 'capacity_exceeded'
  | 'queue_full'
  /**
   * A share has no room: `queued_bytes` for the params, `marks` for the mark of an id that a caller chose, or `scope`
   * for the user's part of its scope.
   */
  | ShareRefusal;

/**
 * The result of an admission. `admitted`: a new command, queued if its client is live, else parked. `attached`: the id
 * was known with the same digest. The waiter then waits on the known command; it is not registered if the record
 * already satisfies it. `ended`: the id was known with the same digest, and only its mark is left. `refused` and
 * `outdated`: nothing was written.
 */
export type AdmitResult =
  /** `dispatch`: the dispatch that was recorded for the request's `claim`. `command`: the record before it. */
  | { readonly kind: 'admitted'; readonly command: Command; readonly dispatch?: MarkedDispatch }
  | { readonly kind: 'attached'; readonly command: Command; readonly result: JsonText | null }
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  /** `share`: the resource that has no room. Absent: it is `marks`. Null: the store itself has no room. */
  | { readonly kind: 'refused'; readonly code: AdmitRefusal; readonly share?: RefusedShare | null }
  /** The connection in `seen` is not the one that the client has now. */
  | { readonly kind: 'outdated' };

/** What an admission would answer now, and the state that it depends on. */
export type AdmitPreview = {
  readonly answer: { readonly kind: 'admitted' } | Exclude<AdmitResult, { readonly kind: 'admitted' | 'outdated' }>;
  /** Whether a command or a mark has the id. */
  readonly known: boolean;
  /** The instance that the client is bound to; null: it is not connected. */
  readonly boundInstanceId: string | null;
  /** The number of reservations that the scope holds. */
  readonly reserved: number;
  /** The number of the client's commands that were not dispatched. */
  readonly queued: number;
};

/** The number of live commands: `inFlight` were dispatched; `queued` were not, and their client may be offline. */
export type CommandLoad = { readonly inFlight: number; readonly queued: number };

/** The link that a client is bound to. */
export type Binding = { readonly nodeId: string; readonly instanceId: string; readonly epoch: number };

/** A recorded dispatch: the command may be written to its link. */
export type MarkedDispatch = {
  readonly kind: 'dispatch';
  readonly command: Command;
  readonly params: JsonText | null;
  readonly remainingMs: number;
};

export type DispatchResult =
  | MarkedDispatch
  /** The command ended, was dispatched before, is due, or belongs to another link. It must not be written. */
  | { readonly kind: 'skip' };

export type Report = {
  readonly instanceId: string;
  readonly kind: 'ack' | 'progress';
  readonly payload: JsonText | null;
  /** The payload in the form that its history row keeps; null: this report makes no row. */
  readonly kept: StoredPayload | null;
};
export type ReportResult =
  | { readonly kind: 'recorded'; readonly command: Command }
  /** Nothing changed: the report was known, the command has ended, or the instance is not the bound one. */
  | { readonly kind: 'ignored'; readonly command: Command | null };

export type End = {
  readonly instanceId: string;
  readonly kind: 'result' | 'error' | 'cancelled';
  /** The payload that the waiters get, and that `result` returns later. */
  readonly payload: JsonText | null;
  /** The payload in the form that the history row keeps. */
  readonly kept: StoredPayload;
  readonly error: TerminalError | null;
  /** The client refused the command before its handler ran. */
  readonly refused: boolean;
};

/**
 * Builds the id of the message that carries an end. An end that is sent again has the same id. Uses `join`, because the
 * id is kept and the string of a template literal would keep each of its parts in memory.
 */
export function endMessageId(commandId: string, { kind, instanceId }: Pick<End, 'kind' | 'instanceId'>): string {
  return [commandId, kind, instanceId].join(':');
}

export type FinishResult =
  | { readonly kind: 'finished'; readonly command: Command }
  /** This same end was recorded before. It is counted as a sighting; nothing else changed. */
  | { readonly kind: 'duplicate'; readonly command: Command }
  /** The command had ended in another way. The report is kept as late evidence and as a `late_result` row. */
  | { readonly kind: 'late'; readonly command: Command }
  /**
   * Another instance is bound, or the command was never dispatched. The report is kept as evidence and resolves
   * nothing.
   */
  | { readonly kind: 'fenced'; readonly command: Command }
  | { readonly kind: 'unknown' };

export type Settlement =
  /** Requests a cancel. It ends a command that was not dispatched; for a dispatched one it is only recorded. */
  | { readonly kind: 'cancel'; readonly reason: string | null; readonly by: string }
  /** Ends the command if it is due: `expired` if it was never dispatched, else `outcome_unknown`. */
  | { readonly kind: 'expire' }
  /**
   * Ends the command: `outcome_unknown` if it was dispatched, else `expired`. If `instanceId` is given, only while the
   * command is bound to that instance.
   */
  | {
      readonly kind: 'give_up';
      readonly code: 'instance_replaced' | 'node_lost' | 'store_lost';
      readonly instanceId: string | null;
    };

export type SettleResult =
  | { readonly kind: 'settled'; readonly command: Command }
  | { readonly kind: 'requested'; readonly command: Command }
  | { readonly kind: 'unchanged'; readonly command: Command }
  | { readonly kind: 'unknown' };

export type RebindResult = {
  /** The number of commands that were queued again. They had not been dispatched when their link was lost. */
  readonly requeued: number;
  /** The commands that were dispatched to this same instance and have not ended. They fill the instance's window. */
  readonly unfinished: readonly Command[];
  /** The commands that were dispatched to another instance. They are given up after the grace period. */
  readonly orphaned: readonly Command[];
};

/**
 * What happened to a client's link. `again`: the link stayed open, but the commands that wait for its client were
 * parked.
 */
export type LinkMove = 'up' | 'again' | 'down';

/**
 * Stores commands. Each method is one atomic act on a command. An act includes all that belongs to it: the reservation,
 * the history rows, the waiters and their replies, and the mailbox rows of the nodes concerned. Each act is all or
 * nothing, and idempotent. Only the act that ends a command frees its reservation, and that happens once. The times are
 * those of the backend's clock.
 */
export interface CommandStore {
  /** How long after its end a command's id is known, in milliseconds. Within this window no id runs twice. */
  readonly windowMs: number;
  admit(request: AdmitRequest): MaybePromise<AdmitResult>;
  /** Returns what `admit` would answer now, by the same rules. Writes and reserves nothing. */
  preview(question: AdmitQuestion): MaybePromise<AdmitPreview>;
  /**
   * Records the dispatch of a command, at most once per command and before the write to the socket begins. A node that
   * got no answer asks again with the same `attempt`, a text that is unique among the attempts of the binding's link.
   * It then gets the same answer, as long as the recorded dispatch is that of this attempt.
   */
  dispatch(key: CommandKey, binding: Binding, attempt?: string): MaybePromise<DispatchResult>;
  /**
   * Records an acknowledgement or progress that a client reported. Progress also acknowledges the command. History
   * keeps at most one progress row a second. Reports of other instances than the bound one change nothing.
   */
  report(key: CommandKey, report: Report): MaybePromise<ReportResult>;
  /**
   * Records an end that a client reported. Replies to the waiters never precede the record. In the same act the
   * deduplicator counts the end under `endMessageId`. Its answer changes only its own counters. The record decides
   * whether an end is a repeated one, because it is kept longer.
   */
  finish(key: CommandKey, end: End): MaybePromise<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): MaybePromise<SettleResult>;
  /**
   * Records that a client's link came up or went down. `up` queues the commands that wait for the client and posts each
   * to the binding's node; `down` parks them again. Among links that come and go at the same time the highest epoch
   * wins: a link older than the bound one changes nothing. `again` queues as `up` does, but only for the bound link. A
   * command that names another instance stays parked, or ends `expired` (`instance_replaced`) if it had been queued.
   */
  rebind(client: ClientKey, binding: Binding, link: LinkMove): MaybePromise<RebindResult>;
  /** Returns the keys of a client's commands that have not ended, in no particular order. */
  live(client: ClientKey): MaybePromise<readonly CommandKey[]>;
  /** Counts the commands of each client that have not ended: one answer per client, in the order of the clients. */
  loads(clients: readonly ClientKey[]): MaybePromise<readonly CommandLoad[]>;
  /** Returns one record per key, in the order of the keys. One round trip. */
  get(keys: readonly CommandKey[]): MaybePromise<readonly (Command | null)[]>;
  /**
   * Returns the mark of an ended command whose record is no longer kept; null if there is a record, or if the id is
   * unknown.
   */
  mark(key: CommandKey): MaybePromise<CommandMark | null>;
  /**
   * Returns the payload of the recorded result; null if there is none, or if it is no longer retained
   * (`resultExpired`). Payloads are stored apart from records, so that no record can hold one.
   */
  result(key: CommandKey): MaybePromise<JsonText | null>;
}
