/**
 * The storage ports of commands, waiters and nodes, and the reading port of the inspector, with the types of their
 * arguments and answers. One atomic act is one method.
 */
import type { PolicyReport } from '../auth/policy.ts';
import type { ActionPatterns } from '../auth/principal.ts';
import type { Leading } from '../connections/connection-store.ts';
import type { Label } from '../connections/labels.ts';
import type { Busy } from '../connections/reconnects.ts';
import type { ClientType, Connection } from '../connections/connection.ts';
import type { StoredPayload, TerminalError } from '../history/message.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { WithGaps } from '../completeness.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Cancel, ProcessFigures } from '../ports.ts';
import type { CallerRate } from '../rates.ts';
import type { RefusedShare, ShareRefusal } from '../shares/share-bounds.ts';
import {
  type CallerFilter,
  type Command,
  type CommandCaller,
  type CommandMark,
  type ContextRefusal,
  type NewWaiter,
  type Outcome,
  type Reply,
  type Settlement,
  type SettleResult,
  type Stage,
  type Waiter,
} from './command.ts';

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
  /** In place of `seen`, from a process that does not have the client's connection itself. */
  readonly seenLink?: SeenLink | null;
  /**
   * A link of the caller's node that has room for the command. If the client is bound to this link and none of its
   * commands waits to be dispatched, the store may record the dispatch in the same act.
   */
  readonly claim?: DispatchClaim | null;
  /** Whether this request was made before and its answer was lost. It admits nothing twice, whoever chose the id. */
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
   * `dispatch`: the dispatch that was recorded for the request's `claim`. `command`: the record before it; in the answer
   * to a repeated request, the present one.
   */
  | { readonly kind: 'admitted'; readonly command: Command; readonly dispatch?: MarkedDispatch }
  | { readonly kind: 'attached'; readonly command: Command; readonly result: JsonText | null }
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  /**
   * `share`: the resource that has no room; null if the store itself has none. Absent if it is `marks`, or if the code
   * does not concern a share. `retryAfterMs`: when the bucket of a rate rule has a token; absent for other codes.
   */
  | {
      readonly kind: 'refused';
      readonly code: AdmitRefusal;
      readonly share?: RefusedShare | null;
      readonly retryAfterMs?: number;
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

export type DispatchResult =
  | MarkedDispatch
  /**
   * The command is unknown, ended, parked, due, was dispatched before, or belongs to another link. It must not be
   * written.
   */
  | { readonly kind: 'skip' }
  /** Its context forbids writing the command to the link. Nothing changed: settle it as `refuse`. */
  | { readonly kind: 'refuse'; readonly code: ContextRefusal };

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

// The port of waiters: the callers that wait for commands.

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

// The port of nodes: leases, heartbeats, mailboxes, and the commands that are due.

/** A row of a node's mailbox. Rows are delivered in the order posted, each at most once per boot. */
export type MailboxRow =
  | { readonly kind: 'command'; readonly key: CommandKey }
  /** Asks the node to send a cancel of this command to the client. */
  | { readonly kind: 'cancel'; readonly key: CommandKey; readonly reason: string | null }
  /** The command ended without a report of its client, so it no longer counts in the window of its link. */
  | { readonly kind: 'ended'; readonly key: CommandKey }
  /** Asks to close this link; ignored if another epoch is bound. `instanceId`: the successor of a replaced instance. */
  | {
      readonly kind: 'kick';
      readonly client: ClientKey;
      readonly epoch: number;
      readonly cause: 'replaced' | 'operator';
      readonly instanceId: string | null;
    }
  | { readonly kind: 'drain'; readonly withinMs: number }
  /** A node posts this to itself. Its arrival proves that the mailbox is read. */
  | { readonly kind: 'pulse' }
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** A question of another node. `text`: the question, in the form of its topic. */
  | {
      readonly kind: 'question';
      readonly questionId: string;
      readonly from: string;
      readonly topic: 'series' | 'leaving' | 'waits' | 'answers' | 'revoked';
      readonly text: string;
    }
  /** The answer to a question that this node has asked. */
  | { readonly kind: 'answer'; readonly questionId: string; readonly text: string };
/** A row that nodes post to each other. */
export type NodeRow = Exclude<MailboxRow, { readonly key: CommandKey } | { readonly kind: 'reply' }>;

/** What a node reports of its process. `startedAt`: when it started, in epoch milliseconds. */
export type ProcessReport = ProcessFigures & { readonly version: string; readonly startedAt: number };

/** What a node reports with each heartbeat. */
export type NodeReport = {
  /** Whether a `pulse` row that the node posted to its own mailbox arrived within LOOP_ALIVE_MS. */
  readonly listenerAlive: boolean;
  /** Whether a reconciliation pass finished within LOOP_ALIVE_MS. */
  readonly reconciliationAlive: boolean;
  /** The number of links with queued commands. */
  readonly activeDrainers: number;
  /** The number of callers that wait on this node. */
  readonly connectionWaiters: number;
  /** The number of client links of this node. */
  readonly links: number;
  /** The number of commands that are queued or in flight on its links. */
  readonly unfinishedCommands: number;
  readonly draining: boolean;
  readonly counters: ReadonlyMap<string, number>;
  /** Null, or absent: the node does not report it. */
  readonly process: ProcessReport | null;
  readonly policy?: PolicyReport | undefined;
};

export type DispatcherNode = NodeReport & { readonly nodeId: string; readonly updatedAt: number };

/** Receives the events of a node and its mailbox. */
export interface NodeListener {
  deliver(row: MailboxRow): void;
  /**
   * Called when this node lost its id. `fenced`: the other nodes counted this node as dead and took over what it held.
   * `store_lost`: the store forgot something that it had confirmed, of these users. No row is delivered until this
   * resolves; the node then holds its id again. A store that cannot lose a node never calls it.
   */
  lost(cause: 'fenced' | 'store_lost', concerns?: (userId: string) => boolean): Promise<void>;
  /**
   * Called when this node has cleaned up after a dead node and marked these links of that node as lost. The dead node
   * may be this node itself, before it was fenced. Each link is reported to one node of the deployment, once.
   */
  linksLost(connections: readonly Connection[]): void;
  /**
   * Called when this node's lease is valid again, after it may have run out. In between its links may have been marked
   * as lost, which close now, and the commands for their clients were parked.
   */
  revived(): void;
  /**
   * Called when another process decides about the clients of these users from now on. It does not know yet who waits
   * here, and what is queued on the links of this node. Only stores in which several processes decide call it.
   */
  moved?(concerns: (userId: string) => boolean): void;
}

/** The nodes of a deployment: their mailboxes, their leases, and the commands that are due. */
export interface NodeStore {
  /** Registers this process under the id and delivers its mailbox. Throws if another live process holds the id. */
  attach(nodeId: string, listener: NodeListener): MaybePromise<Cancel>;
  /** Renews the lease and replaces the report. */
  beat(nodeId: string, report: NodeReport): MaybePromise<void>;
  /** Posts a row to a node. False: there is no such live node. */
  post(nodeId: string, row: NodeRow): MaybePromise<boolean>;
  /** Returns commands that are past their connect deadline or their deadline, oldest first. Reads only. */
  due(limit: number): MaybePromise<readonly CommandKey[]>;
  /**
   * Lists the nodes that have reported, ordered by id. A node that died without releasing its id stays listed, as it
   * last reported, for NODE_GONE_MS after it was cleaned up.
   */
  list(page: PageRequest): MaybePromise<Scan<DispatcherNode>>;
  /**
   * Returns the ids, in order, of the nodes whose last heartbeat is at least NODE_SILENT_MS old. Since that heartbeat
   * nothing is known of their links and waits. A node that died is included for as long as `list` shows it; a node that
   * released its id is not.
   */
  silent(): MaybePromise<readonly string[]>;
  /** Returns when each node that `list` shows has reported last. Absent: `list` is as cheap. */
  reportTimes?(): MaybePromise<readonly Pick<DispatcherNode, 'nodeId' | 'updatedAt'>[]>;
  /** Returns the last report of a node. Null if no such node has reported. */
  get(nodeId: string): MaybePromise<DispatcherNode | null>;
}

// The port of bounded delivery statistics.

/** Bounded statistics of delivery. The oldest values are those of a sample, not exact global extremes. */
export type DeliverySummary = WithGaps & {
  /** The number of commands with a record: live commands, and ended ones within retention. */
  readonly trackedCommands: number;
  /** The number of live commands that are past their connect deadline or their deadline and not settled yet. */
  readonly dueCommands: number;
  readonly sampledOldestDeadline: number | null;
  readonly sampledOldestQueuedAgeMs: number | null;
  readonly sampleSize: number;
  /**
   * The length of the command stream that an earlier system left in the same Redis, and the number of its pending
   * commands. Null where there is none to read, as in direct mode.
   */
  readonly legacyCommandStreamDepth: number | null;
  readonly pendingCommandDepth: number | null;
};

/** An admission scope that holds reservations now. */
export type CapacityScope = {
  readonly scopeId: string;
  readonly reservedCommands: number;
  readonly oldestDeadline: number | null;
  /** The commands that hold the reservations, ordered by deadline; at most SCOPE_HOLDERS. */
  readonly holders: readonly (CommandKey & { readonly deadline: number })[];
};

/** A scope and the number of its reservations. `userId`: the user of one of them, from whom the policy derives it. */
export type ReservedScope = Pick<CapacityScope, 'scopeId' | 'reservedCommands'> & { readonly userId: string };

export type DeliveryFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly stage: Stage | null;
  readonly outcome: Outcome | null;
  /** The command must have ended in one of these ways; null: any stage and any outcome. */
  readonly outcomes: readonly Outcome[] | null;
  readonly nodeId: string | null;
  readonly action: string | null;
  /** The context that the command names. */
  readonly contextId: string | null;
  /** The code of the error that the command ended with; null: any or none. */
  readonly code: string | null;
  readonly clientType: ClientType | null;
  /** The labels that the target's connection must have now, all of them; null: any or none. */
  readonly labels: readonly Label[] | null;
  /** The bounds of the time of admission, both exclusive; epoch milliseconds. */
  readonly admittedAfter: number | null;
  readonly admittedBefore: number | null;
  /** See `hasIdOrTrace`. */
  readonly idOrTrace: string | null;
  /** The only actions whose commands the requester may see. Absent: all. */
  readonly seen?: ActionPatterns;
} & CallerFilter;

/** Matches every command. */
export const ANY_COMMAND: DeliveryFilter = {
  userId: null,
  clientId: null,
  stage: null,
  outcome: null,
  outcomes: null,
  nodeId: null,
  action: null,
  contextId: null,
  code: null,
  clientType: null,
  labels: null,
  admittedAfter: null,
  admittedBefore: null,
  idOrTrace: null,
  caller: null,
  callerKind: null,
};

/**
 * The orders of command listings. `key`: by user, client and command. `newest`: latest admission first; commands of one
 * millisecond in a fixed order.
 */
export const COMMAND_ORDERS = ['key', 'newest'] as const;
export type CommandOrder = (typeof COMMAND_ORDERS)[number];

/** A page of commands. The default order is `key`. A position is valid only for the order in which it was returned. */
export type CommandPage = PageRequest & { readonly order?: CommandOrder | undefined };

/**
 * Observation of delivery: records and counts, never a payload. Observing creates, acquires, renews and releases
 * nothing.
 */
export interface DeliveryInspector {
  summary(): MaybePromise<DeliverySummary>;
  /** Lists the scopes that have reservations, ordered by scope. */
  scopes(page: PageRequest): MaybePromise<Scan<CapacityScope>>;
  /** Returns one scope per id, in the order of the ids; null for a scope without reservations. */
  getScopes(scopeIds: readonly string[]): MaybePromise<readonly (CapacityScope | null)[]>;
  /** Returns the scopes that have reservations, in no particular order: all of them, or as many as SCAN_BUDGET. */
  reservedScopes(): MaybePromise<readonly ReservedScope[]>;
  /**
   * Returns the clients with the most live commands, most first, then in order of user and client; at most `first`.
   * Reads at most SCAN_BUDGET reservations. `complete`: whether it read all of them.
   */
  busiest(first: number): MaybePromise<Leading<Busy>>;
  /**
   * Lists tracked commands. In the order `newest`, commands admitted after the first page appear on no later page. A
   * page is cut after SCAN_BUDGET rows. It may have as many rows as that, unlike the pages of other stores.
   */
  list(filter: DeliveryFilter, page: CommandPage): MaybePromise<Scan<Command>>;
}
