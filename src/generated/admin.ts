/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
/** Which windows to show; each member narrows. */
export type BrowserWindowFilter = {
  /** Only those of this client. */
  clientId?: string | null | undefined;
  /** Only those of clients of this kind. */
  clientType?: ClientType | null | undefined;
  /** Only those of this ownership. */
  ownership?: Ownership | null | undefined;
  /** Only those with this status. */
  status?: WindowStatus | null | undefined;
  /** Only this user’s; omitted, a user’s own and an administrator’s all. */
  userId?: string | null | undefined;
};

/** What kind of program a client is. */
export type ClientType =
  /** A browser, by an extension or a page. */
  | 'BROWSER'
  /** A program on a console. */
  | 'CONSOLE'
  /** A mobile app. */
  | 'MOBILE'
  /** A web app. */
  | 'WEB';

/** Whether a client is reachable. */
export type ConnectionStatus =
  /** Its link is up and it answers in time. */
  | 'CONNECTED'
  /** Its link is down, or it has been silent for 60 seconds. */
  | 'DISCONNECTED'
  /** Its link is up, but it has been silent for 45 seconds. */
  | 'STALE';

/** Which contexts to show; each member narrows. */
export type ContextFilter = {
  /** Only those of this client. */
  clientId?: string | null | undefined;
  /** Only those of clients of this kind. */
  clientType?: ClientType | null | undefined;
  /** Only those of this ownership. */
  ownership?: Ownership | null | undefined;
  /** Only those with this status. */
  status?: ContextStatus | null | undefined;
  /** Only this user’s; omitted, a user’s own and an administrator’s all. */
  userId?: string | null | undefined;
  /** Only those in this browser window. */
  windowId?: string | null | undefined;
};

/** How an execution context stands. */
export type ContextStatus =
  /** Its client reports it as active. */
  | 'ACTIVE'
  /** Its client reports it as closed. */
  | 'CLOSED'
  /** Its client reports it as idle. */
  | 'IDLE'
  /** It was reported and not closed, but the link of its client is down or silent: nothing newer is known. */
  | 'STALE';

/** Where the counts of a window come from. */
export type CountsFrom =
  /** They are derived from the contexts that the client reports now. */
  | 'CONTEXTS'
  /** They are the client’s own, as stored with the window: it reports no contexts. */
  | 'SNAPSHOT';

/** Which commands to list; each member narrows. */
export type DeliveryFilter = {
  /** Those admitted after this time, exclusive. */
  admittedAfter?: string | null | undefined;
  /** This target. */
  clientId?: string | null | undefined;
  /** Those whose target’s link is, or was, on this node. */
  nodeId?: string | null | undefined;
  /** Those that ended so. With a stage other than TERMINAL it is refused. */
  outcome?: Outcome | null | undefined;
  /** Those that have come just so far. */
  stage?: Stage | null | undefined;
  /** Targets of this user. */
  userId?: string | null | undefined;
};

/** Why a link went down. */
export type DisconnectCause =
  /** The client did not take what was sent. */
  | 'BACK_PRESSURE'
  /** The client closed it. */
  | 'CLIENT_CLOSED'
  /** The client was silent for 60 seconds. */
  | 'HEARTBEAT_LOST'
  /** Its node was stopped in order. */
  | 'NODE_DRAINED'
  /** Its node went silent. */
  | 'NODE_LOST'
  /** An operator closed it. */
  | 'OPERATOR'
  /** Too many frames were not understood. */
  | 'PROTOCOL_ERROR'
  /** Another link of the same client took its place. */
  | 'REPLACED'
  /** Its token expired and was not renewed. */
  | 'TOKEN_EXPIRED';

/** Where a part of an answer was observed. */
export type EvidenceSource =
  /** The advertisements of connected clients. */
  | 'ACTIONS'
  /** The registry of connections. */
  | 'CONNECTIONS'
  /** The reported execution contexts. */
  | 'CONTEXTS'
  /** The records of delivery. */
  | 'DELIVERY'
  /** The retained messages. */
  | 'MESSAGES'
  /** The callers that still wait. */
  | 'PENDING_RPCS'
  /** The registered sites. */
  | 'SITES'
  /** The streams of retained history. */
  | 'STREAMS'
  /** The reported browser windows. */
  | 'WINDOWS';

/** What is proven about execution; never that an effect outside the client is complete. */
export type ExecutionEvidence =
  /** It may have run. */
  | 'MAY_HAVE_RUN'
  /** No socket write began. */
  | 'NOT_WRITTEN'
  /** The client said that it refused before running it. */
  | 'REFUSED_BY_CLIENT'
  /** The client reported how it ended. */
  | 'REPORTED_BY_CLIENT';

/** How a client answers pings, derived on reading. */
export type HeartbeatIndicator =
  /** A whole ping went unanswered. */
  | 'LATE'
  /** The client no longer counts as connected. */
  | 'MISSED'
  /** The last ping was answered in time. */
  | 'OK';

/** Why a source contributed less than it holds. */
export type IncompleteReason =
  /** Rows were dropped early for lack of room. */
  | 'EVICTED'
  /** The bound of the answer was reached. */
  | 'LIMIT_REACHED'
  /** A node has not reported for 5 seconds: what is shown of its links is what it last said. */
  | 'NODE_SILENT'
  /** This backend cannot tell. */
  | 'NOT_SUPPORTED'
  /** The store did not answer. */
  | 'STORE_UNAVAILABLE';

/** What a retained message says. */
export type MessageKind =
  /** A cancellation was asked for. */
  | 'CANCEL'
  /** A command was admitted. */
  | 'COMMAND'
  /** A command ended without a result. */
  | 'ERROR'
  /** An event was ingested. */
  | 'EVENT'
  /** An end was reported after the command had ended, or by another instance: evidence that resolves nothing. */
  | 'LATE_RESULT'
  /** A client reported progress; at most one row a second is kept per command. */
  | 'PROGRESS'
  /** A client reported a result. */
  | 'RESULT';

/** In which order messages are listed. */
export type MessageOrder =
  /** The newest first. What is retained after the first page was read is on none of the next pages. */
  | 'NEWEST_FIRST'
  /** In the order retained. */
  | 'OLDEST_FIRST';

/** How this deployment keeps its state. */
export type Mode =
  /** One process, in its memory. */
  | 'DIRECT'
  /** Several processes over one store. */
  | 'SHARED';

/** How a command ended. None of these speaks of effects outside the client. */
export type Outcome =
  /** It was cancelled before dispatch, or the client reported that it stopped. */
  | 'CANCELLED'
  /** The client reported a result. */
  | 'COMPLETED'
  /** Its time ran out before dispatch: no socket write began. */
  | 'EXPIRED'
  /** The client reported an error, its own refusal included. */
  | 'FAILED'
  /** It was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came. */
  | 'OUTCOME_UNKNOWN';

/** Whose an execution context or window is. */
export type Ownership =
  /** The user’s own. */
  | 'USER_OWNED'
  /** One that was set up to do work. */
  | 'WORKER';

/** What `payload` shows, and why not more. */
export type PayloadState =
  /** It was kept apart and its time is over. */
  | 'EXPIRED'
  /** It is shown. */
  | 'INCLUDED'
  /** There is no payload. */
  | 'NONE'
  /** There is a payload; it was not asked for, or the answer holds 16 MiB of payloads that are kept apart: ask for fewer messages. */
  | 'REDACTED'
  /** It is shown, out of the store for large payloads. */
  | 'SPILLED_INCLUDED'
  /** It was to be kept apart and cannot be read: it could not be stored, or was lost or damaged. Its size and digest are what is left. */
  | 'UNAVAILABLE';

/** Which waits to show; each member narrows. */
export type PendingRpcFilter = {
  /** Callers that wait on this node. */
  callerNodeId?: string | null | undefined;
  /** The instance believed live: a wait that expects another is reported with its mismatch. */
  checkInstance?: string | null | undefined;
  /** This target. */
  clientId?: string | null | undefined;
  /** Waits at least this old, milliseconds. */
  minAgeMs?: number | null | undefined;
  /** Targets whose link is on this node. */
  nodeId?: string | null | undefined;
  /** Targets of this user; omitted, a user’s own and an administrator’s all. */
  userId?: string | null | undefined;
};

/** How far a command has come. */
export type Stage =
  /** The client said that it has it. */
  | 'ACKNOWLEDGED'
  /** It is on record; its client is not connected. */
  | 'ADMITTED'
  /** Writing it to the client’s socket was begun. That proves neither receipt nor execution. */
  | 'DISPATCHED'
  /** It is queued for the link of its client. */
  | 'QUEUED'
  /** It ended; `outcome` says how. */
  | 'TERMINAL';

/** What a call waits for. Waiting is not running: a wait that ends leaves the command as it is. */
export type WaitStage =
  /** That its client said that it has it. */
  | 'ACKNOWLEDGED'
  /** That the command is on record. */
  | 'ADMITTED'
  /** That it ended. */
  | 'COMPLETED';

/** How a browser window stands. */
export type WindowStatus =
  /** Its client reports it as closed. */
  | 'CLOSED'
  /** Its client reports it as open. */
  | 'OPEN'
  /** It was reported and not closed, but the link of its client is down or silent: nothing newer is known. */
  | 'STALE';

export type CommandFileQueryVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
}>;


export type CommandFileQuery = { command: { userId: string, clientId: string, commandId: string, action: string, outcome: Outcome | null, error: { code: string, message: string } | null, delivery: { userId: string, clientId: string, commandId: string, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null } | null, waiters: Array<{ rpcId: string, commandId: string, userId: string, clientId: string, action: string, waitFor: WaitStage, expectedInstanceId: string | null, nodeId: string | null, callerNodeId: string, createdAt: string, timesOutAt: string, ageMs: number, stage: Stage, instanceMismatch: { expectedInstanceId: string, observedInstanceId: string | null, observedAt: string } | null }>, sightings: Array<{ messageId: string, count: number, firstSeenAt: string, lastSeenAt: string }>, connection: { userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> } | null, history: { nextCursor: string | null, nodes: Array<{ id: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } | null };

export type ObservationFragment = { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> };

export type ConnectionsQueryVariables = Exact<{
  userId?: string | null | undefined;
  nodeId?: string | null | undefined;
  status?: ConnectionStatus | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type ConnectionsQuery = { connections: { nextCursor: string | null, nodes: Array<{ userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type ActionsQueryVariables = Exact<{
  userId: string;
  clientId: string;
}>;


export type ActionsQuery = { connection: { actions: { items: Array<{ name: string, summary: string | null, description: string | null, version: string | null, checksArguments: boolean | null, schema: unknown, metadata: unknown }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } | null };

export type ActionSampleQueryVariables = Exact<{
  name?: string | null | undefined;
}>;


export type ActionSampleQuery = { actions: { complete: boolean, items: Array<{ userId: string, clientId: string, instanceId: string, action: { name: string, summary: string | null, description: string | null, version: string | null, checksArguments: boolean | null, schema: unknown, metadata: unknown } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type AdvertisementRowFragment = { name: string, summary: string | null, description: string | null, version: string | null, checksArguments: boolean | null, schema: unknown, metadata: unknown };

export type ConnectionRowFragment = { userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> };

export type ContextsQueryVariables = Exact<{
  filter?: ContextFilter | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type ContextsQuery = { contexts: { nextCursor: string | null, nodes: Array<{ id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type ContextCountQueryVariables = Exact<{
  filter?: ContextFilter | null | undefined;
}>;


export type ContextCountQuery = { contextCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WindowsQueryVariables = Exact<{
  filter?: BrowserWindowFilter | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type WindowsQuery = { browserWindows: { nextCursor: string | null, nodes: Array<{ id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, tabCount: number, capacity: number | null, draining: boolean, status: WindowStatus, workerCount: number, idleCount: number, busyCount: number, countsFrom: CountsFrom, reportedAt: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WindowCountQueryVariables = Exact<{
  filter?: BrowserWindowFilter | null | undefined;
}>;


export type WindowCountQuery = { browserWindowCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WindowQueryVariables = Exact<{
  userId: string;
  windowId: string;
}>;


export type WindowQuery = { browserWindow: { id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, tabCount: number, capacity: number | null, draining: boolean, status: WindowStatus, workerCount: number, idleCount: number, busyCount: number, countsFrom: CountsFrom, reportedAt: string } | null };

export type WorkersQueryVariables = Exact<{
  userId: string;
  clientType?: ClientType | null | undefined;
  first?: number;
}>;


export type WorkersQuery = { workers: { idle: Array<{ id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string }>, assigned: Array<{ id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type AvailableWorkersQueryVariables = Exact<{
  userId: string;
  clientType?: ClientType | null | undefined;
  first?: number;
}>;


export type AvailableWorkersQuery = { workers: { available: { items: Array<{ id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type WorkersOfTaskQueryVariables = Exact<{
  userId: string;
  taskId: string;
  first?: number;
}>;


export type WorkersOfTaskQuery = { workers: { forTask: { items: Array<{ id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type ContextRowFragment = { id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string };

export type WindowRowFragment = { id: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, tabCount: number, capacity: number | null, draining: boolean, status: WindowStatus, workerCount: number, idleCount: number, busyCount: number, countsFrom: CountsFrom, reportedAt: string };

export type DedupQueryVariables = Exact<{
  windowSeconds?: number;
}>;


export type DedupQuery = { dedup: { stats: { windowSeconds: number, seen: number, unique: number, duplicates: number, exact: boolean, grainSeconds: number, liveKeys: number | null }, backend: { implementation: string, ttlSeconds: number, namespace: string | null } } };

export type DeliverySummaryQueryVariables = Exact<{ [key: string]: never; }>;


export type DeliverySummaryQuery = { delivery: { summary: { trackedCommands: number, dueCommands: number, sampledOldestDeadline: string | null, sampledOldestQueuedAgeMs: number | null, sampleSize: number, legacyCommandStreamDepth: number | null, pendingCommandDepth: number | null, mode: Mode, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type DeliveryNodesQueryVariables = Exact<{
  after?: string | null | undefined;
  first?: number;
}>;


export type DeliveryNodesQuery = { delivery: { nodes: { nextCursor: string | null, nodes: Array<{ nodeId: string, mailboxListenerAlive: boolean, reconciliationAlive: boolean, activeDrainers: number, connectionWaiters: number, links: number, unfinishedCommands: number, updatedAt: string, stale: boolean, draining: boolean, counters: Array<{ name: string, value: number }> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type DeliveryTenantsQueryVariables = Exact<{
  after?: string | null | undefined;
  first?: number;
}>;


export type DeliveryTenantsQuery = { delivery: { tenants: { nextCursor: string | null, nodes: Array<{ scopeId: string, reservedCommands: number, limit: number | null, oldestDeadline: string | null, holders: Array<{ userId: string, clientId: string, commandId: string, deadline: string }> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type DeliveryCommandsQueryVariables = Exact<{
  filter?: DeliveryFilter | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type DeliveryCommandsQuery = { delivery: { commands: { nextCursor: string | null, nodes: Array<{ userId: string, clientId: string, commandId: string, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type DeliveryStatusQueryVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
}>;


export type DeliveryStatusQuery = { delivery: { status: { userId: string, clientId: string, commandId: string, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null } | null } };

export type DeliveryRowFragment = { userId: string, clientId: string, commandId: string, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null };

export type StreamsQueryVariables = Exact<{
  userId: string;
  prefix?: string | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type StreamsQuery = { streams: { nextCursor: string | null, nodes: Array<{ key: string, userId: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type MessagesQueryVariables = Exact<{
  stream: string;
  afterTime?: string | null | undefined;
  beforeTime?: string | null | undefined;
  kinds?: Array<MessageKind> | MessageKind | null | undefined;
  includePayload?: boolean;
  order?: MessageOrder;
  after?: string | null | undefined;
  first?: number;
}>;


export type MessagesQuery = { messages: { nextCursor: string | null, nodes: Array<{ payload: unknown, payloadState: PayloadState, id: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type CommandMessagesQueryVariables = Exact<{
  userId: string;
  commandId: string;
  includePayload?: boolean;
  order?: MessageOrder;
  after?: string | null | undefined;
  first?: number;
}>;


export type CommandMessagesQuery = { commandHistory: { nextCursor: string | null, nodes: Array<{ payload: unknown, payloadState: PayloadState, id: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type RawMessagesQueryVariables = Exact<{
  stream?: string | null | undefined;
  valuesOnly?: boolean;
  limit?: number;
}>;


export type RawMessagesQuery = { rawMessages: { items: Array<unknown>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type StreamRowFragment = { key: string, userId: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null };

export type MessageRowFragment = { id: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, error: { code: string, message: string } | null };

export type PendingQueryVariables = Exact<{
  filter?: PendingRpcFilter | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type PendingQuery = { pendingRpcs: { nextCursor: string | null, nodes: Array<{ rpcId: string, commandId: string, userId: string, clientId: string, action: string, waitFor: WaitStage, expectedInstanceId: string | null, nodeId: string | null, callerNodeId: string, createdAt: string, timesOutAt: string, ageMs: number, stage: Stage, instanceMismatch: { expectedInstanceId: string, observedInstanceId: string | null, observedAt: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type PendingCountQueryVariables = Exact<{
  filter?: PendingRpcFilter | null | undefined;
}>;


export type PendingCountQuery = { pendingRpcCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type PendingCountByNodeQueryVariables = Exact<{
  filter?: PendingRpcFilter | null | undefined;
}>;


export type PendingCountByNodeQuery = { pendingRpcCountByNode: { items: Array<{ nodeId: string | null, count: number }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WaiterRowFragment = { rpcId: string, commandId: string, userId: string, clientId: string, action: string, waitFor: WaitStage, expectedInstanceId: string | null, nodeId: string | null, callerNodeId: string, createdAt: string, timesOutAt: string, ageMs: number, stage: Stage, instanceMismatch: { expectedInstanceId: string, observedInstanceId: string | null, observedAt: string } | null };

export type UsersQueryVariables = Exact<{
  after?: string | null | undefined;
  first?: number;
}>;


export type UsersQuery = { users: { nextCursor: string | null, nodes: Array<{ id: string, connectionCount: number, streamCount: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type UserQueryVariables = Exact<{
  id: string;
}>;


export type UserQuery = { user: { id: string, connectionCount: number, streamCount: number, pendingRpcCount: number, connections: { nextCursor: string | null, nodes: Array<{ userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> }> }, streams: { nextCursor: string | null, nodes: Array<{ key: string, userId: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null }> }, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } | null };

export class TypedDocumentString<TResult, TVariables>
  extends String
  implements DocumentTypeDecoration<TResult, TVariables>
{
  __apiType?: NonNullable<DocumentTypeDecoration<TResult, TVariables>['__apiType']>;
  private value: string;
  public __meta__?: Record<string, any> | undefined;

  constructor(value: string, __meta__?: Record<string, any> | undefined) {
    super(value);
    this.value = value;
    this.__meta__ = __meta__;
  }

  override toString(): string & DocumentTypeDecoration<TResult, TVariables> {
    return this.value;
  }
}
export const ObservationFragmentDoc = new TypedDocumentString(`
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
    `, {"fragmentName":"Observation"}) as unknown as TypedDocumentString<ObservationFragment, unknown>;
export const AdvertisementRowFragmentDoc = new TypedDocumentString(`
    fragment AdvertisementRow on ActionAdvertisement {
  name
  summary
  description
  version
  checksArguments
  schema
  metadata
}
    `, {"fragmentName":"AdvertisementRow"}) as unknown as TypedDocumentString<AdvertisementRowFragment, unknown>;
export const ConnectionRowFragmentDoc = new TypedDocumentString(`
    fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  heartbeat
  recentlyReplaced
  replacedInstanceId
  predecessors {
    instanceId
    nodeId
    replacedAt
    cause
  }
  actionNames
  queued
  inFlight
}
    `, {"fragmentName":"ConnectionRow"}) as unknown as TypedDocumentString<ConnectionRowFragment, unknown>;
export const ContextRowFragmentDoc = new TypedDocumentString(`
    fragment ContextRow on ExecutionContext {
  id
  userId
  clientId
  instanceId
  clientType
  status
  ownership
  windowId
  taskId
  taskAssignedAt
  title
  metadata
  reportedAt
}
    `, {"fragmentName":"ContextRow"}) as unknown as TypedDocumentString<ContextRowFragment, unknown>;
export const WindowRowFragmentDoc = new TypedDocumentString(`
    fragment WindowRow on BrowserWindow {
  id
  userId
  clientId
  instanceId
  clientType
  ownership
  focused
  type
  state
  incognito
  tabCount
  capacity
  draining
  status
  workerCount
  idleCount
  busyCount
  countsFrom
  reportedAt
}
    `, {"fragmentName":"WindowRow"}) as unknown as TypedDocumentString<WindowRowFragment, unknown>;
export const DeliveryRowFragmentDoc = new TypedDocumentString(`
    fragment DeliveryRow on DeliveryRecord {
  userId
  clientId
  commandId
  scopeId
  stage
  outcome
  lastProvenStage
  execution
  attempts
  admittedAt
  queuedAt
  dispatchedAt
  acknowledgedAt
  terminalAt
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
}
    `, {"fragmentName":"DeliveryRow"}) as unknown as TypedDocumentString<DeliveryRowFragment, unknown>;
export const StreamRowFragmentDoc = new TypedDocumentString(`
    fragment StreamRow on Stream {
  key
  userId
  suffix
  messageCount
  firstAt
  lastAt
}
    `, {"fragmentName":"StreamRow"}) as unknown as TypedDocumentString<StreamRowFragment, unknown>;
export const MessageRowFragmentDoc = new TypedDocumentString(`
    fragment MessageRow on Message {
  id
  stream
  kind
  at
  clientId
  instanceId
  commandId
  traceId
  parentSpanId
  payloadBytes
  payloadSha256
  error {
    code
    message
  }
}
    `, {"fragmentName":"MessageRow"}) as unknown as TypedDocumentString<MessageRowFragment, unknown>;
export const WaiterRowFragmentDoc = new TypedDocumentString(`
    fragment WaiterRow on PendingRpc {
  rpcId
  commandId
  userId
  clientId
  action
  waitFor
  expectedInstanceId
  nodeId
  callerNodeId
  createdAt
  timesOutAt
  ageMs
  instanceMismatch {
    expectedInstanceId
    observedInstanceId
    observedAt
  }
  stage
}
    `, {"fragmentName":"WaiterRow"}) as unknown as TypedDocumentString<WaiterRowFragment, unknown>;
export const CommandFileDocument = new TypedDocumentString(`
    query CommandFile($userId: ID!, $clientId: ID!, $commandId: ID!) {
  command(userId: $userId, clientId: $clientId, commandId: $commandId) {
    userId
    clientId
    commandId
    action
    outcome
    error {
      code
      message
    }
    delivery {
      ...DeliveryRow
    }
    waiters {
      ...WaiterRow
    }
    sightings {
      messageId
      count
      firstSeenAt
      lastSeenAt
    }
    connection {
      ...ConnectionRow
    }
    history(first: 100) {
      nodes {
        ...MessageRow
      }
      nextCursor
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  heartbeat
  recentlyReplaced
  replacedInstanceId
  predecessors {
    instanceId
    nodeId
    replacedAt
    cause
  }
  actionNames
  queued
  inFlight
}
fragment DeliveryRow on DeliveryRecord {
  userId
  clientId
  commandId
  scopeId
  stage
  outcome
  lastProvenStage
  execution
  attempts
  admittedAt
  queuedAt
  dispatchedAt
  acknowledgedAt
  terminalAt
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
}
fragment MessageRow on Message {
  id
  stream
  kind
  at
  clientId
  instanceId
  commandId
  traceId
  parentSpanId
  payloadBytes
  payloadSha256
  error {
    code
    message
  }
}
fragment WaiterRow on PendingRpc {
  rpcId
  commandId
  userId
  clientId
  action
  waitFor
  expectedInstanceId
  nodeId
  callerNodeId
  createdAt
  timesOutAt
  ageMs
  instanceMismatch {
    expectedInstanceId
    observedInstanceId
    observedAt
  }
  stage
}`) as unknown as TypedDocumentString<CommandFileQuery, CommandFileQueryVariables>;
export const ConnectionsDocument = new TypedDocumentString(`
    query Connections($userId: ID, $nodeId: ID, $status: ConnectionStatus, $after: String, $first: Int! = 100) {
  connections(
    userId: $userId
    nodeId: $nodeId
    status: $status
    after: $after
    first: $first
  ) {
    nodes {
      ...ConnectionRow
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  heartbeat
  recentlyReplaced
  replacedInstanceId
  predecessors {
    instanceId
    nodeId
    replacedAt
    cause
  }
  actionNames
  queued
  inFlight
}`) as unknown as TypedDocumentString<ConnectionsQuery, ConnectionsQueryVariables>;
export const ActionsDocument = new TypedDocumentString(`
    query Actions($userId: ID!, $clientId: ID!) {
  connection(userId: $userId, clientId: $clientId) {
    actions {
      items {
        ...AdvertisementRow
      }
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment AdvertisementRow on ActionAdvertisement {
  name
  summary
  description
  version
  checksArguments
  schema
  metadata
}`) as unknown as TypedDocumentString<ActionsQuery, ActionsQueryVariables>;
export const ActionSampleDocument = new TypedDocumentString(`
    query ActionSample($name: String) {
  actions(name: $name) {
    items {
      userId
      clientId
      instanceId
      action {
        ...AdvertisementRow
      }
    }
    complete
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment AdvertisementRow on ActionAdvertisement {
  name
  summary
  description
  version
  checksArguments
  schema
  metadata
}`) as unknown as TypedDocumentString<ActionSampleQuery, ActionSampleQueryVariables>;
export const ContextsDocument = new TypedDocumentString(`
    query Contexts($filter: ContextFilter, $after: String, $first: Int! = 100) {
  contexts(filter: $filter, after: $after, first: $first) {
    nodes {
      ...ContextRow
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment ContextRow on ExecutionContext {
  id
  userId
  clientId
  instanceId
  clientType
  status
  ownership
  windowId
  taskId
  taskAssignedAt
  title
  metadata
  reportedAt
}`) as unknown as TypedDocumentString<ContextsQuery, ContextsQueryVariables>;
export const ContextCountDocument = new TypedDocumentString(`
    query ContextCount($filter: ContextFilter) {
  contextCount(filter: $filter) {
    count
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<ContextCountQuery, ContextCountQueryVariables>;
export const WindowsDocument = new TypedDocumentString(`
    query Windows($filter: BrowserWindowFilter, $after: String, $first: Int! = 100) {
  browserWindows(filter: $filter, after: $after, first: $first) {
    nodes {
      ...WindowRow
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment WindowRow on BrowserWindow {
  id
  userId
  clientId
  instanceId
  clientType
  ownership
  focused
  type
  state
  incognito
  tabCount
  capacity
  draining
  status
  workerCount
  idleCount
  busyCount
  countsFrom
  reportedAt
}`) as unknown as TypedDocumentString<WindowsQuery, WindowsQueryVariables>;
export const WindowCountDocument = new TypedDocumentString(`
    query WindowCount($filter: BrowserWindowFilter) {
  browserWindowCount(filter: $filter) {
    count
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<WindowCountQuery, WindowCountQueryVariables>;
export const WindowDocument = new TypedDocumentString(`
    query Window($userId: ID!, $windowId: ID!) {
  browserWindow(userId: $userId, windowId: $windowId) {
    ...WindowRow
  }
}
    fragment WindowRow on BrowserWindow {
  id
  userId
  clientId
  instanceId
  clientType
  ownership
  focused
  type
  state
  incognito
  tabCount
  capacity
  draining
  status
  workerCount
  idleCount
  busyCount
  countsFrom
  reportedAt
}`) as unknown as TypedDocumentString<WindowQuery, WindowQueryVariables>;
export const WorkersDocument = new TypedDocumentString(`
    query Workers($userId: ID!, $clientType: ClientType, $first: Int! = 1000) {
  workers(userId: $userId, clientType: $clientType, first: $first) {
    idle {
      ...ContextRow
    }
    assigned {
      ...ContextRow
    }
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment ContextRow on ExecutionContext {
  id
  userId
  clientId
  instanceId
  clientType
  status
  ownership
  windowId
  taskId
  taskAssignedAt
  title
  metadata
  reportedAt
}`) as unknown as TypedDocumentString<WorkersQuery, WorkersQueryVariables>;
export const AvailableWorkersDocument = new TypedDocumentString(`
    query AvailableWorkers($userId: ID!, $clientType: ClientType, $first: Int! = 1000) {
  workers(userId: $userId, clientType: $clientType, first: $first) {
    available {
      items {
        ...ContextRow
      }
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment ContextRow on ExecutionContext {
  id
  userId
  clientId
  instanceId
  clientType
  status
  ownership
  windowId
  taskId
  taskAssignedAt
  title
  metadata
  reportedAt
}`) as unknown as TypedDocumentString<AvailableWorkersQuery, AvailableWorkersQueryVariables>;
export const WorkersOfTaskDocument = new TypedDocumentString(`
    query WorkersOfTask($userId: ID!, $taskId: ID!, $first: Int! = 1000) {
  workers(userId: $userId, first: $first) {
    forTask(taskId: $taskId) {
      items {
        ...ContextRow
      }
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment ContextRow on ExecutionContext {
  id
  userId
  clientId
  instanceId
  clientType
  status
  ownership
  windowId
  taskId
  taskAssignedAt
  title
  metadata
  reportedAt
}`) as unknown as TypedDocumentString<WorkersOfTaskQuery, WorkersOfTaskQueryVariables>;
export const DedupDocument = new TypedDocumentString(`
    query Dedup($windowSeconds: Int! = 300) {
  dedup {
    stats(windowSeconds: $windowSeconds) {
      windowSeconds
      seen
      unique
      duplicates
      exact
      grainSeconds
      liveKeys
    }
    backend {
      implementation
      ttlSeconds
      namespace
    }
  }
}
    `) as unknown as TypedDocumentString<DedupQuery, DedupQueryVariables>;
export const DeliverySummaryDocument = new TypedDocumentString(`
    query DeliverySummary {
  delivery {
    summary {
      trackedCommands
      dueCommands
      sampledOldestDeadline
      sampledOldestQueuedAgeMs
      sampleSize
      legacyCommandStreamDepth
      pendingCommandDepth
      mode
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<DeliverySummaryQuery, DeliverySummaryQueryVariables>;
export const DeliveryNodesDocument = new TypedDocumentString(`
    query DeliveryNodes($after: String, $first: Int! = 100) {
  delivery {
    nodes(after: $after, first: $first) {
      nodes {
        nodeId
        mailboxListenerAlive
        reconciliationAlive
        activeDrainers
        connectionWaiters
        links
        unfinishedCommands
        updatedAt
        stale
        draining
        counters {
          name
          value
        }
      }
      nextCursor
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<DeliveryNodesQuery, DeliveryNodesQueryVariables>;
export const DeliveryTenantsDocument = new TypedDocumentString(`
    query DeliveryTenants($after: String, $first: Int! = 100) {
  delivery {
    tenants(after: $after, first: $first) {
      nodes {
        scopeId
        reservedCommands
        limit
        oldestDeadline
        holders {
          userId
          clientId
          commandId
          deadline
        }
      }
      nextCursor
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<DeliveryTenantsQuery, DeliveryTenantsQueryVariables>;
export const DeliveryCommandsDocument = new TypedDocumentString(`
    query DeliveryCommands($filter: DeliveryFilter, $after: String, $first: Int! = 100) {
  delivery {
    commands(filter: $filter, after: $after, first: $first) {
      nodes {
        ...DeliveryRow
      }
      nextCursor
      completeness {
        ...Observation
      }
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment DeliveryRow on DeliveryRecord {
  userId
  clientId
  commandId
  scopeId
  stage
  outcome
  lastProvenStage
  execution
  attempts
  admittedAt
  queuedAt
  dispatchedAt
  acknowledgedAt
  terminalAt
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
}`) as unknown as TypedDocumentString<DeliveryCommandsQuery, DeliveryCommandsQueryVariables>;
export const DeliveryStatusDocument = new TypedDocumentString(`
    query DeliveryStatus($userId: ID!, $clientId: ID!, $commandId: ID!) {
  delivery {
    status(userId: $userId, clientId: $clientId, commandId: $commandId) {
      ...DeliveryRow
    }
  }
}
    fragment DeliveryRow on DeliveryRecord {
  userId
  clientId
  commandId
  scopeId
  stage
  outcome
  lastProvenStage
  execution
  attempts
  admittedAt
  queuedAt
  dispatchedAt
  acknowledgedAt
  terminalAt
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
}`) as unknown as TypedDocumentString<DeliveryStatusQuery, DeliveryStatusQueryVariables>;
export const StreamsDocument = new TypedDocumentString(`
    query Streams($userId: ID!, $prefix: String, $after: String, $first: Int! = 100) {
  streams(userId: $userId, prefix: $prefix, after: $after, first: $first) {
    nodes {
      ...StreamRow
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment StreamRow on Stream {
  key
  userId
  suffix
  messageCount
  firstAt
  lastAt
}`) as unknown as TypedDocumentString<StreamsQuery, StreamsQueryVariables>;
export const MessagesDocument = new TypedDocumentString(`
    query Messages($stream: String!, $afterTime: DateTime, $beforeTime: DateTime, $kinds: [MessageKind!], $includePayload: Boolean! = false, $order: MessageOrder! = OLDEST_FIRST, $after: String, $first: Int! = 100) {
  messages(
    stream: $stream
    afterTime: $afterTime
    beforeTime: $beforeTime
    kinds: $kinds
    order: $order
    after: $after
    first: $first
  ) {
    nodes {
      ...MessageRow
      payload(include: $includePayload)
      payloadState(include: $includePayload)
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment MessageRow on Message {
  id
  stream
  kind
  at
  clientId
  instanceId
  commandId
  traceId
  parentSpanId
  payloadBytes
  payloadSha256
  error {
    code
    message
  }
}`) as unknown as TypedDocumentString<MessagesQuery, MessagesQueryVariables>;
export const CommandMessagesDocument = new TypedDocumentString(`
    query CommandMessages($userId: ID!, $commandId: ID!, $includePayload: Boolean! = false, $order: MessageOrder! = OLDEST_FIRST, $after: String, $first: Int! = 100) {
  commandHistory(
    userId: $userId
    commandId: $commandId
    order: $order
    after: $after
    first: $first
  ) {
    nodes {
      ...MessageRow
      payload(include: $includePayload)
      payloadState(include: $includePayload)
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment MessageRow on Message {
  id
  stream
  kind
  at
  clientId
  instanceId
  commandId
  traceId
  parentSpanId
  payloadBytes
  payloadSha256
  error {
    code
    message
  }
}`) as unknown as TypedDocumentString<CommandMessagesQuery, CommandMessagesQueryVariables>;
export const RawMessagesDocument = new TypedDocumentString(`
    query RawMessages($stream: String, $valuesOnly: Boolean! = false, $limit: Int! = 100) {
  rawMessages(stream: $stream, valuesOnly: $valuesOnly, limit: $limit) {
    items
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<RawMessagesQuery, RawMessagesQueryVariables>;
export const PendingDocument = new TypedDocumentString(`
    query Pending($filter: PendingRpcFilter, $after: String, $first: Int! = 100) {
  pendingRpcs(filter: $filter, after: $after, first: $first) {
    nodes {
      ...WaiterRow
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment WaiterRow on PendingRpc {
  rpcId
  commandId
  userId
  clientId
  action
  waitFor
  expectedInstanceId
  nodeId
  callerNodeId
  createdAt
  timesOutAt
  ageMs
  instanceMismatch {
    expectedInstanceId
    observedInstanceId
    observedAt
  }
  stage
}`) as unknown as TypedDocumentString<PendingQuery, PendingQueryVariables>;
export const PendingCountDocument = new TypedDocumentString(`
    query PendingCount($filter: PendingRpcFilter) {
  pendingRpcCount(filter: $filter) {
    count
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<PendingCountQuery, PendingCountQueryVariables>;
export const PendingCountByNodeDocument = new TypedDocumentString(`
    query PendingCountByNode($filter: PendingRpcFilter) {
  pendingRpcCountByNode(filter: $filter) {
    items {
      nodeId
      count
    }
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<PendingCountByNodeQuery, PendingCountByNodeQueryVariables>;
export const UsersDocument = new TypedDocumentString(`
    query Users($after: String, $first: Int! = 100) {
  users(after: $after, first: $first) {
    nodes {
      id
      connectionCount
      streamCount
      completeness {
        ...Observation
      }
    }
    nextCursor
    completeness {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}`) as unknown as TypedDocumentString<UsersQuery, UsersQueryVariables>;
export const UserDocument = new TypedDocumentString(`
    query User($id: ID!) {
  user(id: $id) {
    id
    connectionCount
    streamCount
    pendingRpcCount
    connections(first: 100) {
      nodes {
        ...ConnectionRow
      }
      nextCursor
    }
    streams(first: 100) {
      nodes {
        ...StreamRow
      }
      nextCursor
    }
    completeness: summaryCompleteness(first: 100) {
      ...Observation
    }
  }
}
    fragment Observation on Completeness {
  complete
  sources {
    source
    nodeId
    complete
    observed
    limit
    reason
    asOf
  }
}
fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  heartbeat
  recentlyReplaced
  replacedInstanceId
  predecessors {
    instanceId
    nodeId
    replacedAt
    cause
  }
  actionNames
  queued
  inFlight
}
fragment StreamRow on Stream {
  key
  userId
  suffix
  messageCount
  firstAt
  lastAt
}`) as unknown as TypedDocumentString<UserQuery, UserQueryVariables>;