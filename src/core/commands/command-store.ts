/** The storage port of commands, with the types of its arguments and results. Each atomic act is one method. */
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

/** The part of an admission request by which the store decides whether to refuse it. */
export type AdmitQuestion = CommandKey & {
  readonly action: string;
  readonly caller: CommandCaller;
  /** Whether the caller chose the command id. If so, the command is admitted only if there is room for its mark. */
  readonly chosenId: boolean;
  readonly digest: string;
  readonly scopeId: string;
  /** The most reservations that the scope may hold at once. */
  readonly scopeLimit: number;
  /**
   * The most reservations that one user may hold while more than three quarters of `scopeLimit` are in use; null: no
   * bound.
   */
  readonly memberLimit: number | null;
  readonly namedInstanceId: string | null;
  readonly params: JsonText | null;
  readonly connectWithinMs: number;
  readonly waiter: Pick<NewWaiter, 'waitFor'>;
  /**
   * The rate bucket from which a new command takes a token. If the bucket is empty, the command is refused. Null or
   * absent if no rate rule applies.
   */
  readonly rate?: CallerRate | null;
  /** The context of the client in which the command must run. Absent or null: the call names none. */
  readonly contextId?: string | null;
  /**
   * Whether the connected client supports commands that name a context. Null or absent if this is unknown, or if the
   * call names no context.
   */
  readonly knowsPlaces?: boolean | null;
  /**
   * The token of the agent's request that must get the answer. If the id is already known, the admission is a conflict,
   * unless this same request admitted the command. Absent: the call is not an agent's.
   */
  readonly owedBy?: string | undefined;
};

export type AdmitRequest = AdmitQuestion & {
  /** What kind of program the client is; null if the client is not connected. */
  readonly clientType: ClientType | null;
  /** The params as the history row stores them. */
  readonly kept: StoredPayload;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly traceFlags: string | null;
  readonly traceState: string | null;
  readonly callSpan: string | null;
  readonly respondWithinMs: number;
  readonly waiter: NewWaiter;
  /**
   * The connection that the caller's checks used, if it came from `ConnectionStore.lastSeen` and may be out of date. If
   * the client is bound to another link by now, or advertises other actions, the answer is `outdated`.
   */
  readonly seen?: Connection | null;
  /** Replaces `seen` in a request from a process that does not have the client's connection itself. */
  readonly seenLink?: SeenLink | null;
  /**
   * A link of the caller's node that has room for the command. If the client is bound to this link and no other command
   * waits for it, the store may record the dispatch in the same act.
   */
  readonly claim?: DispatchClaim | null;
  /**
   * Whether this request may have been sent before and its answer lost. A repeated request never admits a second
   * command, even if the relay made the command id.
   */
  readonly repeated?: boolean;
};

/**
 * A request to record the dispatch together with the admission. `attempt`: as for `dispatch`; absent if the store's
 * answer cannot get lost.
 */
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
  /**
   * A share has no room: `queued_bytes`, `marks` (the mark of an id that a caller chose), or `scope` (the user's part
   * of an admission scope).
   */
  | ShareRefusal;

/**
 * The result of an admission. `admitted`: a new command, which is queued if its client is connected and parked
 * otherwise. `attached`: a command with the same id and digest exists, and the waiter is registered for it, unless it
 * already has the stage that the caller waits for. `ended`: a command with the same id and digest existed, and only its
 * mark is retained. `refused` and `outdated`: nothing was written.
 */
export type AdmitResult =
  /**
   * `dispatch`: the result of recording the dispatch for the request's `claim`. `command`: the record before the
   * dispatch, or the present record if the request is repeated.
   */
  | { readonly kind: 'admitted'; readonly command: Command; readonly dispatch?: MarkedDispatch | PausedDispatch }
  | { readonly kind: 'attached'; readonly command: Command; readonly result: JsonText | null }
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  /**
   * `share`: the share without room; null if the store itself has none. Absent if the share is `marks`, or if the code
   * is not about a share. `retryAfterMs`: how long until the rate bucket has a token; absent for other codes. `pause`:
   * the pause that stopped the call, for the code `paused`.
   */
  | {
      readonly kind: 'refused';
      readonly code: AdmitRefusal;
      readonly share?: RefusedShare | null;
      readonly retryAfterMs?: number;
      readonly pause?: Pause;
    }
  /** The connection in `seen` is no longer the client's connection. */
  | { readonly kind: 'outdated' };

/**
 * The part of a connection that an admission compares. `revision`: the revision of the advertised actions
 * (`revisionOf`).
 */
export type SeenLink = Pick<Connection, 'instanceId' | 'epoch'> & { readonly revision: string };

/** What an admission would answer now, with the state on which the answer depends. */
export type AdmitPreview = {
  readonly answer: { readonly kind: 'admitted' } | Exclude<AdmitResult, { readonly kind: 'admitted' | 'outdated' }>;
  /** Whether a command or a mark with this id exists. */
  readonly known: boolean;
  /** The instance to which the client is bound; null if the client is not connected. */
  readonly boundInstanceId: string | null;
  /** The number of reservations that the scope holds. */
  readonly reserved: number;
  /** How many of the client's commands were not dispatched yet. */
  readonly queued: number;
};

/**
 * Numbers of live commands. `inFlight`: commands that were dispatched. `queued`: commands that were not, including
 * those whose client is offline.
 */
export type CommandLoad = { readonly inFlight: number; readonly queued: number };

/** The link to which a client is bound. */
export type Binding = {
  readonly nodeId: string;
  readonly instanceId: string;
  readonly epoch: number;
  /**
   * Whether the client supports commands that name a context. The node of the link adds this; stores need not store it.
   */
  readonly places?: boolean;
  /**
   * Whether the client reports in each hello which commands it received, so that lost commands can be written again.
   * The node of the link adds this; stores need not store it.
   */
  readonly tellsReceived?: boolean;
};

/** A recorded dispatch. The node may now write the command to the link. */
export type MarkedDispatch = {
  readonly kind: 'dispatch';
  readonly command: Command;
  readonly params: JsonText | null;
  readonly remainingMs: number;
};

/**
 * This attempt had recorded the dispatch earlier, and a pause has begun since. Nothing changed. If the node has not
 * written the command, it settles it as `unwritten`.
 */
type PausedDispatch = { readonly kind: 'paused' };

export type DispatchResult =
  | MarkedDispatch
  /**
   * The command must not be written: it is unknown, ended, parked, due, paused, already dispatched, or it belongs to
   * another link.
   */
  | { readonly kind: 'skip' }
  | PausedDispatch
  /**
   * The command must not be written because of the context that it names. Nothing changed; the node settles the command
   * as `refuse`.
   */
  | { readonly kind: 'refuse'; readonly code: ContextRefusal };

export type Report = {
  readonly instanceId: string;
  readonly kind: 'ack' | 'progress';
  readonly payload: JsonText | null;
  /** The payload as its history row stores it; null if this report makes no history row. */
  readonly kept: StoredPayload | null;
  /** The number that the client gave this report of progress; undefined: none. It is not stored. */
  readonly number?: number | undefined;
};
export type ReportResult =
  /** `isPublished`: the store has published the report to the watchers of the command. Otherwise the caller must. */
  | { readonly kind: 'recorded'; readonly command: Command; readonly isPublished?: true }
  /**
   * Nothing changed: the report was already known, the command has ended, or the reporting instance is not the bound
   * one.
   */
  | { readonly kind: 'ignored'; readonly command: Command | null };

export type End = {
  readonly instanceId: string;
  readonly kind: 'result' | 'error' | 'cancelled';
  /** The result for the waiters, which `CommandStore.result` returns later. */
  readonly payload: JsonText | null;
  /** The payload as the history row stores it. */
  readonly kept: StoredPayload;
  readonly error: TerminalError | null;
  /** Whether the client refused the command before its handler ran. */
  readonly refused: boolean;
};

export type FinishResult =
  | { readonly kind: 'finished'; readonly command: Command }
  /** This end was recorded before. The repeated report is counted as a sighting, and nothing else changed. */
  | { readonly kind: 'duplicate'; readonly command: Command }
  /**
   * The command had ended before. The report is kept as late evidence. Until the record has SIGHTINGS_PER_COMMAND
   * sightings, it also becomes a `late_result` row.
   */
  | { readonly kind: 'late'; readonly command: Command }
  /** The command is bound to another instance, or was never dispatched. The report is kept as evidence only. */
  | { readonly kind: 'fenced'; readonly command: Command }
  | { readonly kind: 'unknown' };

export type RebindResult = {
  /** How many commands were queued again. They had not been dispatched when their link was lost. */
  readonly requeued: number;
  /** The commands that were dispatched to this same instance and have not ended. They take up the instance's window. */
  readonly unfinished: readonly Command[];
  /** The commands that were dispatched to another instance. They are given up after a grace period. */
  readonly orphaned: readonly Command[];
  /**
   * The commands that were dispatched to this same instance and never arrived. `again`: those to write to the new link,
   * in the order of dispatch; this is recorded. `ended`: those that ended as `not_received`, because they can no longer
   * be written again. Absent if the client did not report which commands it received.
   */
  readonly unreceived?: { readonly again: readonly MarkedDispatch[]; readonly ended: readonly Command[] };
};

/**
 * What happened to a client's link. `up`: it opened. `down`: it closed. `again`: it stayed open, but the commands for
 * its client had been parked.
 */
export type LinkMove = 'up' | 'again' | 'down';

/** The ids of the commands that arrived at a client and whose ends the client has not reported yet. */
export type Received = ReadonlySet<string>;

/**
 * Stores commands. Each method is one atomic act on a command. The act covers everything that belongs to the change:
 * the reservation, the history rows, the waiters and their replies, and the mailbox rows of the nodes concerned. Each
 * act is all or nothing, and idempotent. A reservation is freed once, by the act that ends its command. The backend's
 * clock gives all times.
 */
export interface CommandStore {
  /**
   * For how many milliseconds the id of an ended command stays known. During this time no other command with this id
   * runs.
   */
  readonly windowMs: number;
  admit(request: AdmitRequest): MaybePromise<AdmitResult>;
  /** Returns what `admit` would answer now, by the same rules. Writes and reserves nothing. */
  preview(question: AdmitQuestion): MaybePromise<AdmitPreview>;
  /**
   * Records the dispatch of a command, before the write to the socket begins and at most once per link. A node that got
   * no answer repeats the call with the same `attempt`, a text that no other attempt on the binding's link has. It then
   * gets the same answer, as long as no other attempt has recorded a dispatch. A paused command stays queued until its
   * pause ends. If this attempt had recorded the dispatch before the pause, the answer is `paused`.
   */
  dispatch(key: CommandKey, binding: Binding, attempt?: string): MaybePromise<DispatchResult>;
  /**
   * Records an acknowledgement or a progress report of a client. Progress acknowledges the command too. History keeps
   * at most one progress row a second. A report from an instance other than the bound one changes nothing.
   */
  report(key: CommandKey, report: Report): MaybePromise<ReportResult>;
  /**
   * Records an end that a client reported. No waiter gets its reply before the record is written. In the same act the
   * deduplicator counts the end. It counts a duplicate if the record has a sighting with the end's `endMessageId`, or
   * has no room for another sighting. It stores no mark for the end, so a host may still ingest a message with this id.
   */
  finish(key: CommandKey, end: End): MaybePromise<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): MaybePromise<SettleResult>;
  /**
   * Records that a client's link opened or closed. `up` queues the commands that wait for the client, and posts each of
   * them to the binding's node. `down` parks them again. `again` queues them like `up`, but only for the bound link.
   * Among links that open and close at the same time the highest epoch wins: a link older than the bound one changes
   * nothing. A command that names another instance stays parked; if it had been queued, it ends as `expired`
   * (`instance_replaced`). A command that names a context of another instance ends as `expired` (`context_gone`). A
   * long queue may move in several acts. Commands are dispatched in the order of their admission during the move too.
   * `received`: for a link that opens, the commands that the instance has received, if its hello said so. The other
   * commands that were dispatched to this instance and not reported on never arrived, so nothing of them ran.
   */
  rebind(client: ClientKey, binding: Binding, link: LinkMove, received?: Received): MaybePromise<RebindResult>;
  /** Returns the keys of a client's live commands, in no particular order. */
  live(client: ClientKey): MaybePromise<readonly CommandKey[]>;
  /** Counts the live commands of each client: one result per client, in the order of the clients. */
  loads(clients: readonly ClientKey[]): MaybePromise<readonly CommandLoad[]>;
  /** Returns one record per key, in the order of the keys. One round trip. */
  get(keys: readonly CommandKey[]): MaybePromise<readonly (Command | null)[]>;
  /**
   * Returns the mark of an ended command whose record was removed. Null if the record exists, or if the id is unknown.
   */
  mark(key: CommandKey): MaybePromise<CommandMark | null>;
  /**
   * Returns the payload of the recorded result; null if there is none, or if it is no longer retained
   * (`resultExpired`). Payloads are stored separately, so records never contain one.
   */
  result(key: CommandKey): MaybePromise<JsonText | null>;
}
