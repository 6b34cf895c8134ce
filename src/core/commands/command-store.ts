/** The storage port of commands, with the types of its arguments and answers. One atomic act is one method. */
import type { ClientType, Connection } from '../connections/connection.ts';
import type { StoredPayload, TerminalError } from '../history/message.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Pause } from '../pauses/pause.ts';
import type { CallerRate } from '../rates.ts';
import type { RefusedShare, ShareRefusal } from '../shares/share-bounds.ts';
import type { Command, CommandCaller, CommandMark, ContextRefusal } from './command.ts';
import type { Settlement, SettleResult } from './settlement.ts';
import type { NewWaiter } from './waiter.ts';

/** The part of an admission that decides whether it is refused. */
export type AdmitQuestion = CommandKey & {
  readonly action: string;
  readonly caller: CommandCaller;
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
  /** The bucket that must have a token for a new command, and gives it. Null or absent: no rate rule matches. */
  readonly rate?: CallerRate | null;
  /** The context of the client that the call names. Absent or null: none. */
  readonly contextId?: string | null;
  /** Whether the connected client knows places; null or absent if it is not known, or if the call names no context. */
  readonly knowsPlaces?: boolean | null;
  /** The request that owes the answer: an id that is known is a conflict, unless this same request admitted it. */
  readonly owedBy?: string | undefined;
};

export type AdmitRequest = AdmitQuestion & {
  /** What kind of program the client is; null if it is not connected. */
  readonly clientType: ClientType | null;
  /** The params in the form that the history row keeps. */
  readonly kept: StoredPayload;
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
  /** In place of `seen`, from a process that does not have the client's connection itself. */
  readonly seenLink?: SeenLink | null;
  /**
   * A link of the caller's node that has room for the command. If the client is bound to this link and none of its
   * commands waits to be dispatched, the store may record the dispatch in the same act.
   */
  readonly claim?: DispatchClaim | null;
  /** Whether this request may have been made before, and its answer lost. It admits nothing twice, whoever chose the id. */
  readonly repeated?: boolean;
};

/** A request to record the dispatch with the admission. `attempt`: as for `dispatch`; absent: no answer can be lost. */
export type DispatchClaim = { readonly binding: Binding; readonly attempt?: string | undefined };

export type AdmitRefusal =
  | 'command_conflict'
  | 'not_connected'
  | 'instance_mismatch'
  | ContextRefusal
  | 'capacity_exceeded'
  | 'queue_full'
  | 'rate_limited'
  | 'paused'
  /** A share has no room: `queued_bytes`, `marks` (of an id that a caller chose) or `scope` (the part of the user). */
  | ShareRefusal;

/**
 * The result of an admission. `admitted`: a new command, queued if its client is live, else parked. `attached`: the id
 * was known with the same digest. The waiter then waits on the known command; it is not registered if the record
 * already satisfies it. `ended`: the id was known with the same digest, and only its mark is left. `refused` and
 * `outdated`: nothing was written.
 */
export type AdmitResult =
  /**
   * `dispatch`: what became of the dispatch that was recorded for the request's `claim`. `command`: the record before it;
   * in the answer to a repeated request, the present one.
   */
  | { readonly kind: 'admitted'; readonly command: Command; readonly dispatch?: MarkedDispatch | PausedDispatch }
  | { readonly kind: 'attached'; readonly command: Command; readonly result: JsonText | null }
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  /**
   * `share`: the resource that has no room; null if the store itself has none. Absent if it is `marks`, or if the code
   * does not concern a share. `retryAfterMs`: when the bucket of a rate rule has a token; absent for other codes.
   * `pause`: what `paused` refers to.
   */
  | {
      readonly kind: 'refused';
      readonly code: AdmitRefusal;
      readonly share?: RefusedShare | null;
      readonly retryAfterMs?: number;
      readonly pause?: Pause;
    }
  /** The connection in `seen` is not the one that the client has now. */
  | { readonly kind: 'outdated' };

/** What an admission compares of a connection. `revision`: of its actions (`revisionOf`). */
export type SeenLink = Pick<Connection, 'instanceId' | 'epoch'> & { readonly revision: string };

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
export type Binding = {
  readonly nodeId: string;
  readonly instanceId: string;
  readonly epoch: number;
  /** Whether the client knows places. Only the node of the link says so; stores need not keep it. */
  readonly places?: boolean;
  /**
   * Whether the client says in each hello what it has received, so that what was lost may be written again. Only the
   * node of the link says so; stores need not keep it.
   */
  readonly tellsReceived?: boolean;
};

/** A recorded dispatch: the command may be written to its link. */
export type MarkedDispatch = {
  readonly kind: 'dispatch';
  readonly command: Command;
  readonly params: JsonText | null;
  readonly remainingMs: number;
};

/**
 * This attempt had dispatched the command, and then a pause began. Nothing changed: a node that has not written the
 * command settles it as `unwritten`.
 */
type PausedDispatch = { readonly kind: 'paused' };

export type DispatchResult =
  | MarkedDispatch
  /** The command is unknown, ended, parked, due, paused, dispatched before, or of another link. It is not written. */
  | { readonly kind: 'skip' }
  | PausedDispatch
  /** Its context forbids writing the command to the link. Nothing changed: settle it as `refuse`. */
  | { readonly kind: 'refuse'; readonly code: ContextRefusal };

export type Report = {
  readonly instanceId: string;
  readonly kind: 'ack' | 'progress';
  readonly payload: JsonText | null;
  /** The payload in the form that its history row keeps; null: this report makes no row. */
  readonly kept: StoredPayload | null;
  /** The number that the client gave this report of progress; undefined: none. It is not stored. */
  readonly number?: number | undefined;
};
export type ReportResult =
  /** `isPublished`: the store has published the report to the watchers of the command. Otherwise the caller does. */
  | { readonly kind: 'recorded'; readonly command: Command; readonly isPublished?: true }
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

export type FinishResult =
  | { readonly kind: 'finished'; readonly command: Command }
  /** This same end was recorded before. It is counted as a sighting; nothing else changed. */
  | { readonly kind: 'duplicate'; readonly command: Command }
  /**
   * The command had ended before. The report is kept as late evidence and, until there are SIGHTINGS_PER_COMMAND
   * sightings, as a `late_result` row.
   */
  | { readonly kind: 'late'; readonly command: Command }
  /** Another instance is bound, or the command was never dispatched. The report is only kept as evidence. */
  | { readonly kind: 'fenced'; readonly command: Command }
  | { readonly kind: 'unknown' };

export type RebindResult = {
  /** The number of commands that were queued again. They had not been dispatched when their link was lost. */
  readonly requeued: number;
  /** The commands that were dispatched to this same instance and have not ended. They fill the instance's window. */
  readonly unfinished: readonly Command[];
  /** The commands that were dispatched to another instance. They are given up after the grace period. */
  readonly orphaned: readonly Command[];
  /**
   * What was dispatched to this same instance and never arrived. `again`: to be written to the new link, in the order of
   * dispatch; this is recorded. `ended`: ended as `not_received`, because the params are not kept any more. Absent: the
   * client did not say what it has received.
   */
  readonly unreceived?: { readonly again: readonly MarkedDispatch[]; readonly ended: readonly Command[] };
};

/**
 * What happened to a client's link. `again`: the link stayed open, but the commands that wait for its client were
 * parked.
 */
export type LinkMove = 'up' | 'again' | 'down';

/** The ids of the commands that arrived at a client and whose ends it still has to report. */
export type Received = ReadonlySet<string>;

/**
 * Stores commands. Each method is one atomic act on a command. An act includes all that belongs to it: the reservation,
 * the history rows, the waiters and their replies, and the mailbox rows of the nodes concerned. Each act is all or
 * nothing, and idempotent. Only the act that ends a command frees its reservation, and that happens once. The times are
 * those of the backend's clock.
 */
export interface CommandStore {
  /**
   * For how many milliseconds after a command has ended its id stays known. Until then no other command with it runs.
   */
  readonly windowMs: number;
  admit(request: AdmitRequest): MaybePromise<AdmitResult>;
  /** Returns what `admit` would answer now, by the same rules. Writes and reserves nothing. */
  preview(question: AdmitQuestion): MaybePromise<AdmitPreview>;
  /**
   * Records the dispatch of a command, at most once per link and before the write to the socket begins. A node that
   * got no answer asks again with the same `attempt`, a text that is unique among the attempts of the binding's link.
   * It then gets the same answer, as long as the recorded dispatch is that of this attempt. A paused command stays
   * queued until its pause ends; if this attempt had dispatched it before, the answer is `paused`.
   */
  dispatch(key: CommandKey, binding: Binding, attempt?: string): MaybePromise<DispatchResult>;
  /**
   * Records an acknowledgement or progress that a client reported. Progress also acknowledges the command. History
   * keeps at most one progress row a second. Reports of other instances than the bound one change nothing.
   */
  report(key: CommandKey, report: Report): MaybePromise<ReportResult>;
  /**
   * Records an end that a client reported. Replies to the waiters never precede the record. In the same act the
   * deduplicator counts the end: as a duplicate if the record has a sighting of its `endMessageId`, or has no room for
   * one. It sets no mark, so a message with this id that a host ingests is no duplicate of the end.
   */
  finish(key: CommandKey, end: End): MaybePromise<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): MaybePromise<SettleResult>;
  /**
   * Records that a client's link came up or went down. `up` queues the commands that wait for the client and posts each
   * to the binding's node; `down` parks them again. Among links that come and go at the same time the highest epoch
   * wins: a link older than the bound one changes nothing. `again` queues as `up` does, but only for the bound link. A
   * command that names another instance stays parked, or ends `expired` (`instance_replaced`) if it had been queued. A
   * command that names a context of another instance ends `expired` (`context_gone`). A long queue may move in several
   * acts. During the move, too, commands are dispatched in the order of their admission. `received`: the commands that
   * the instance has received, if it said so in the hello of a link that comes up. It has never received the others that
   * were dispatched to it and that it did not report on: nothing of them ran.
   */
  rebind(client: ClientKey, binding: Binding, link: LinkMove, received?: Received): MaybePromise<RebindResult>;
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
