/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
/** Which windows to include. A window must match every member that is given. */
export type BrowserWindowFilter = {
  /** Only windows of this client. */
  clientId?: string | null | undefined;
  /** Only windows of clients of this kind. */
  clientType?: ClientType | null | undefined;
  /** Only windows with this ownership. */
  ownership?: Ownership | null | undefined;
  /** Only windows with this status. */
  status?: WindowStatus | null | undefined;
  /** Only rows of this user. Omitted: a user gets its own rows, an administrator gets all. */
  userId?: string | null | undefined;
};

/** Which command to cancel, and why. */
export type CancelCommandInput = {
  /** The id of the target client. */
  clientId: string;
  /** The command’s id. */
  commandId: string;
  /** The reason, for the record and the client: at most 256 characters. Omitted: none. */
  reason?: string | null | undefined;
  /** The id of the user that the target client belongs to. */
  userId: string;
};

/** The result of a requested cancellation. */
export type CancelState =
  /** The command had not been written to its client and never will be. */
  | 'CANCELLED'
  /** The client was asked to stop the command. It may have run already. */
  | 'REQUESTED'
  /** The command had ended already. */
  | 'TOO_LATE';

/** What kind of program a client is. */
export type ClientType =
  /** A browser: an extension or a page. */
  | 'BROWSER'
  /** A console program. */
  | 'CONSOLE'
  /** A mobile app. */
  | 'MOBILE'
  /** A web app. */
  | 'WEB';

/** What kind of requester invoked a command, or waits for it. */
export type CommandCallerKind =
  /** An administrator. */
  | 'ADMIN'
  /** A viewer of a site, through a grant of the session’s owner. */
  | 'GRANT'
  /** An agent, over MCP, in the name of a user. */
  | 'MCP'
  /** A user, for one of their own clients. */
  | 'USER';

/** Whether a client is reachable. */
export type ConnectionStatus =
  /** Its link is up, and the client was heard from within the last 45 seconds. */
  | 'CONNECTED'
  /** Its link is down, or the client has been silent for 60 seconds. */
  | 'DISCONNECTED'
  /** Its link is up, but the client has been silent for 45 seconds. */
  | 'STALE';

/** Which contexts to include. A context must match every member that is given. */
export type ContextFilter = {
  /** Only contexts of this client. */
  clientId?: string | null | undefined;
  /** Only contexts of clients of this kind. */
  clientType?: ClientType | null | undefined;
  /** Only contexts with this ownership. */
  ownership?: Ownership | null | undefined;
  /** Only contexts with this status. */
  status?: ContextStatus | null | undefined;
  /** Only rows of this user. Omitted: a user gets its own rows, an administrator gets all. */
  userId?: string | null | undefined;
  /** Only contexts in this browser window. */
  windowId?: string | null | undefined;
};

/** The status of an execution context. */
export type ContextStatus =
  /** Its client reports it as active. */
  | 'ACTIVE'
  /** Its client reports it as closed. */
  | 'CLOSED'
  /** Its client reports it as idle. */
  | 'IDLE'
  /** It was last reported as active or idle, but its client’s link is down or silent: nothing newer is known. */
  | 'STALE';

/** The source of a window’s worker counts. */
export type CountsFrom =
  /** The relay counts the contexts that the client reports now. */
  | 'CONTEXTS'
  /** The counts that the client reported with the window. They are used when it reports no contexts. */
  | 'SNAPSHOT';

/** Which commands to list. A command must match every member that is given. */
export type DeliveryFilter = {
  /** Only commands that invoke this action. */
  action?: string | null | undefined;
  /** Only commands admitted after this time, exclusive. */
  admittedAfter?: string | null | undefined;
  /** Only commands admitted before this time, exclusive. */
  admittedBefore?: string | null | undefined;
  /** Only commands invoked by this caller: the name of an administrator, the id of a user, the id of a grant, or the name of an agent’s program. */
  caller?: string | null | undefined;
  /** Only commands invoked by a caller of this kind. */
  callerKind?: CommandCallerKind | null | undefined;
  /** Only commands for this client. */
  clientId?: string | null | undefined;
  /** Only commands whose client was a program of this kind at admission. */
  clientType?: ClientType | null | undefined;
  /** Only commands that ended with an error of this code, at most 64 characters. */
  code?: string | null | undefined;
  /** Only commands that name this context. */
  contextId?: string | null | undefined;
  /** Only commands with this id, with an id that ends with this text of at least 8 characters, or with this trace id: at most 256 characters. */
  idOrTrace?: string | null | undefined;
  /** Only with all of these labels, each `key=value`: at most 8, each at most 256 characters. Labels are the texts, numbers and booleans at the top level of a client’s metadata and in its member `labels`. The labels are those of the client’s connection now: commands of a client without one never match. */
  labels?: Array<string> | null | undefined;
  /** Only commands whose target’s link is or was on this node. */
  nodeId?: string | null | undefined;
  /** Only commands with this outcome. Refused together with a stage other than TERMINAL. */
  outcome?: Outcome | null | undefined;
  /** Only commands that ended in one of these ways. */
  outcomes?: Array<Outcome> | null | undefined;
  /** Only commands at exactly this stage. */
  stage?: Stage | null | undefined;
  /** Only commands for clients of this user. */
  userId?: string | null | undefined;
};

/** Why a link went down. */
export type DisconnectCause =
  /** The client did not read what the relay sent. */
  | 'BACK_PRESSURE'
  /** The client closed it: it announced that it leaves, or it sent a close frame. */
  | 'CLIENT_CLOSED'
  /** Its socket failed with another error. */
  | 'ERROR'
  /** The client was silent for 60 seconds. */
  | 'HEARTBEAT_LOST'
  /** Its socket ended without a close frame. */
  | 'LOST'
  /** Its node drained or shut down. */
  | 'NODE_DRAINED'
  /** Its node stopped reporting and lost its lease. */
  | 'NODE_LOST'
  /** An operator closed it. */
  | 'OPERATOR'
  /** The client sent too many invalid frames. */
  | 'PROTOCOL_ERROR'
  /** A newer link of the same client replaced it. */
  | 'REPLACED'
  /** Its socket was reset by the client’s side. */
  | 'RESET'
  /** The link’s token expired and was not renewed. */
  | 'TOKEN_EXPIRED';

/** The state of a requested disconnection. */
export type DisconnectState =
  /** The link is closed. */
  | 'CLOSED'
  /** The link’s node was asked to close it and has not confirmed that yet. */
  | 'REQUESTED';

/** A source of an answer. */
export type EvidenceSource =
  /** The advertisements of connected clients. */
  | 'ACTIONS'
  /** The audit of what administrators did. */
  | 'AUDIT'
  /** The registry of connections. */
  | 'CONNECTIONS'
  /** The reported execution contexts. */
  | 'CONTEXTS'
  /** The delivery records. */
  | 'DELIVERY'
  /** The devices that are enrolled. */
  | 'DEVICES'
  /** The retained messages. */
  | 'MESSAGES'
  /** What the nodes counted and measured. */
  | 'METRICS'
  /** The callers that still wait. */
  | 'PENDING_RPCS'
  /** The tokens that are revoked. */
  | 'REVOCATIONS'
  /** The registered sites. */
  | 'SITES'
  /** The streams of retained messages. */
  | 'STREAMS'
  /** The reported browser windows. */
  | 'WINDOWS';

/** What is proven about execution. It is never proof that an effect outside the client is complete. */
export type ExecutionEvidence =
  /** The command may have run. */
  | 'MAY_HAVE_RUN'
  /** No socket write began. */
  | 'NOT_WRITTEN'
  /** The client reported that it refused the command before running it. */
  | 'REFUSED_BY_CLIENT'
  /** The client reported how the command ended. */
  | 'REPORTED_BY_CLIENT';

/** How a client answers pings; derived when it is read. */
export type HeartbeatIndicator =
  /** The client did not answer its last ping. */
  | 'LATE'
  /** The client’s status is not `connected`. */
  | 'MISSED'
  /** The last ping was answered in time. */
  | 'OK';

/** Why a source contributed less than it could have. */
export type IncompleteReason =
  /** The relay restarted, and clients that were connected before may still report again. */
  | 'AWAITING_REPORTS'
  /** Rows were dropped before their retention time was over, for lack of space. */
  | 'EVICTED'
  /** The answer’s bound was reached. */
  | 'LIMIT_REACHED'
  /** A node has not reported for 5 seconds. The answer shows its links as it last reported them. */
  | 'NODE_SILENT'
  /** The backend cannot tell. */
  | 'NOT_SUPPORTED'
  /** The store did not answer. */
  | 'STORE_UNAVAILABLE';

/** What a retained message records. */
export type MessageKind =
  /** A cancellation was requested. */
  | 'CANCEL'
  /** A command was admitted. */
  | 'COMMAND'
  /** A command ended without a result. */
  | 'ERROR'
  /** An event was ingested. */
  | 'EVENT'
  /** An end was reported after the command had ended, or by another instance than the command’s own. It is evidence and resolves nothing. */
  | 'LATE_RESULT'
  /** A client link ended, and no newer link of the client had taken over. Only in the stream `<user>/links`. */
  | 'LINK_CLOSED'
  /** A client link opened. Only in the stream `<user>/links`. */
  | 'LINK_OPENED'
  /** A newer link of the same client took over from a link that was up. Only in the stream `<user>/links`. */
  | 'LINK_REPLACED'
  /** A client reported progress. At most one such row per second is kept for a command. */
  | 'PROGRESS'
  /** The relay had been away, and started on its data directory. Its message id names the time of the last record before. `error` says how the relay had ended; null: it was stopped in order. Only in the stream `<user>/links` of users whose clients were connected in the last minute before. */
  | 'RELAY_AWAY'
  /** A client reported a result. */
  | 'RESULT';

/** The order in which messages are listed. */
export type MessageOrder =
  /** Newest first. Messages that are retained after the first page was read appear on no later page. */
  | 'NEWEST_FIRST'
  /** Oldest first: the order in which messages were retained. */
  | 'OLDEST_FIRST';

/** How this deployment keeps its state. */
export type Mode =
  /** One process keeps everything in memory. */
  | 'DIRECT'
  /** Several processes share one store. */
  | 'SHARED';

/** How a command ended. No outcome proves anything about effects outside the client. */
export type Outcome =
  /** The command was cancelled before dispatch, or the client reported that it stopped. */
  | 'CANCELLED'
  /** The client reported a result. */
  | 'COMPLETED'
  /** The command’s time ran out before dispatch: no socket write began. */
  | 'EXPIRED'
  /** The client reported an error or refused the command. */
  | 'FAILED'
  /** The command was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came. */
  | 'OUTCOME_UNKNOWN';

/** Whether an execution context or window is for the user or for work. */
export type Ownership =
  /** The user’s own use. */
  | 'USER_OWNED'
  /** Work: it was set up to run tasks. */
  | 'WORKER';

/** What `payload` shows, or why it shows nothing. */
export type PayloadState =
  /** The payload was in the store for large payloads and has expired. */
  | 'EXPIRED'
  /** The payload is shown. */
  | 'INCLUDED'
  /** There is no payload. */
  | 'NONE'
  /** There is a payload, but it was not requested, or the answer already holds 16 MiB of payloads from the store for large payloads: request fewer messages. */
  | 'REDACTED'
  /** The payload is shown; it was read from the store for large payloads. */
  | 'SPILLED_INCLUDED'
  /** The payload belongs in the store for large payloads and cannot be read: it could not be stored, or it was lost or damaged. Only its size and digest are known. */
  | 'UNAVAILABLE';

/** Which waits to include. A wait must match every member that is given. */
export type PendingRpcFilter = {
  /** Only waits of this caller: the name of an administrator, the id of a user, the id of a grant, or the name of an agent’s program. */
  caller?: string | null | undefined;
  /** Only waits of a caller of this kind. */
  callerKind?: CommandCallerKind | null | undefined;
  /** Only waits of callers on this node. */
  callerNodeId?: string | null | undefined;
  /** The id of the instance that the requester believes to be live. A wait that expects another one is reported with `instanceMismatch`. */
  checkInstance?: string | null | undefined;
  /** Only waits whose target is this client. */
  clientId?: string | null | undefined;
  /** Only waits on commands that name this context. */
  contextId?: string | null | undefined;
  /** Only waits that are at least this old, 0 to 86400000 milliseconds. */
  minAgeMs?: number | null | undefined;
  /** Only waits whose target’s link is on this node. */
  nodeId?: string | null | undefined;
  /** Only waits whose target belongs to this user. Omitted: a user gets waits on its own clients, an administrator gets all. */
  userId?: string | null | undefined;
};

/** The error codes of the relay. REST, GraphQL and links use the same codes. */
export type RefusalCode =
  /** `action_not_advertised`, HTTP status 404. The client is connected and does not advertise this action. */
  | 'action_not_advertised'
  /** `ambiguous`, HTTP status 409. Several rows fit the request; the message names the parameter that selects one. */
  | 'ambiguous'
  /** `approval_denied`, HTTP status 200. Refused: the command was not approved. */
  | 'approval_denied'
  /** `arguments_invalid`, HTTP status 200. Refused: the params do not match the action’s schema. */
  | 'arguments_invalid'
  /** `audit_unavailable`, HTTP status 503. The audit cannot be written, so what an administrator asked for was not done. */
  | 'audit_unavailable'
  /** `cancelled`, HTTP status 200. The reason in history of a command that was cancelled before it was dispatched. No answer carries it as an error. */
  | 'cancelled'
  /** `capacity_exceeded`, HTTP status 429. A limit is reached: live commands of the scope, waits on the command, rows of a listing. */
  | 'capacity_exceeded'
  /** `client_denied`, HTTP status 200. Refused: the client’s authorizer does not allow it, or the client takes no more commands. */
  | 'client_denied'
  /** `client_timeout`, HTTP status 200. The handler was stopped: it took longer than the client allows, or its deadline passed by the client’s clock. */
  | 'client_timeout'
  /** `command_conflict`, HTTP status 409. The command id is in use for another action, other params, another instance or another context. */
  | 'command_conflict'
  /** `connect_timeout`, HTTP status 504. `expired`: the client did not connect in time. */
  | 'connect_timeout'
  /** `context_gone`, HTTP status 409. The client does not report the context that the call names, or reports it again after it had left. Nothing ran. */
  | 'context_gone'
  /** `context_unsupported`, HTTP status 409. The call names a context, and the client does not know places. Nothing ran. */
  | 'context_unsupported'
  /** `draining`, HTTP status 503. This node shuts down and admits nothing new. */
  | 'draining'
  /** `forbidden`, HTTP status 403. The token does not allow this. */
  | 'forbidden'
  /** `graphql_parse_failed`, HTTP status 400. The text is not a GraphQL document. */
  | 'graphql_parse_failed'
  /** `graphql_validation_failed`, HTTP status 400. The GraphQL document does not fit the schema. */
  | 'graphql_validation_failed'
  /** `handler_failed`, HTTP status 200. The handler failed. */
  | 'handler_failed'
  /** `instance_mismatch`, HTTP status 409. Another instance of the client is connected than the one named. */
  | 'instance_mismatch'
  /** `instance_replaced`, HTTP status 504. Another instance of the client took over. `outcome_unknown` where the command had been dispatched, else `expired`. */
  | 'instance_replaced'
  /** `internal`, HTTP status 500. An error of the relay; the message has the id under which it is logged. */
  | 'internal'
  /** `invalid_argument`, HTTP status 400. A parameter, member or frame is missing or wrong; the message names it. */
  | 'invalid_argument'
  /** `invalid_cursor`, HTTP status 400. The cursor does not belong to this listing, filter or user. Begin again without one. */
  | 'invalid_cursor'
  /** `invalid_user`, HTTP status 400. A user id is not valid. 401 where it is the subject of the token. */
  | 'invalid_user'
  /** `lease_busy`, HTTP status 200. Refused: the action runs one command at a time, and one is running. */
  | 'lease_busy'
  /** `method_not_allowed`, HTTP status 405. The path does not take this HTTP method. */
  | 'method_not_allowed'
  /** `node_lost`, HTTP status 504. The node that held the link stopped. `outcome_unknown` where the command had been dispatched, else `expired`. */
  | 'node_lost'
  /** `not_acceptable`, HTTP status 406. The answer has no form that `accept` allows. */
  | 'not_acceptable'
  /** `not_connected`, HTTP status 409. The client is not connected, or is closing; the call allows no time to connect. */
  | 'not_connected'
  /** `not_found`, HTTP status 404. It does not exist, or the token may not know of it. */
  | 'not_found'
  /** `not_received`, HTTP status 200. `failed`: the command was written, and its client says that it never arrived. Nothing ran. */
  | 'not_received'
  /** `not_supported`, HTTP status 501. The store of this deployment cannot do it. */
  | 'not_supported'
  /** `paused`, HTTP status 409. A pause covers the call: `pausedBy` names who set it, why and until when. Nothing ran. */
  | 'paused'
  /** `payload_too_large`, HTTP status 413. The body or the payload is too large. */
  | 'payload_too_large'
  /** `persisted_query_not_supported`, HTTP status 400. The request names a GraphQL document by its hash only. Send the document. 200 if the answer is `application/json`. */
  | 'persisted_query_not_supported'
  /** `policy_denied`, HTTP status 403. A rule of the relay’s policy refuses this call; the message names the rule. */
  | 'policy_denied'
  /** `queue_full`, HTTP status 429. 1000 commands wait for this client. */
  | 'queue_full'
  /** `queue_timeout`, HTTP status 504. `expired`: the client was connected, but the command was not dispatched before its deadline. */
  | 'queue_timeout'
  /** `rate_limited`, HTTP status 429. Too many calls, requests or frames, or too many bad tokens. */
  | 'rate_limited'
  /** `raw_history_disabled`, HTTP status 403. The relay runs without the raw sample of history. */
  | 'raw_history_disabled'
  /** `reserved_parameter`, HTTP status 400. The params have a member whose name begins with `__cooperative_site_`. */
  | 'reserved_parameter'
  /** `reserved_stream`, HTTP status 400. Only links write the streams below `clients/` and the stream `links`. */
  | 'reserved_stream'
  /** `response_timeout`, HTTP status 504. `outcome_unknown`: dispatched, and no end was reported before the deadline. */
  | 'response_timeout'
  /** `result_expired`, HTTP status 200. The command ended as its outcome says; its result is no longer retained. */
  | 'result_expired'
  /** `result_unavailable`, HTTP status 200. The command ran to its end, and its result cannot be had any more. */
  | 'result_unavailable'
  /** `runtime_disconnected`, HTTP status 503. The host’s runtime has no link to the relay. */
  | 'runtime_disconnected'
  /** `session_inactive`, HTTP status 409. The site session is over, or suspended while its host is away. */
  | 'session_inactive'
  /** `share_exceeded`, HTTP status 429. The user has more than their guaranteed share of something that is scarce now; `share` names it. */
  | 'share_exceeded'
  /** `site_action_denied`, HTTP status 403. The site or the grant does not allow this action. */
  | 'site_action_denied'
  /** `site_capability_denied`, HTTP status 403. The site does not allow invoking actions, or sharing. */
  | 'site_capability_denied'
  /** `site_mode_denied`, HTTP status 403. The site is not a cooperative one. */
  | 'site_mode_denied'
  /** `stale_instance`, HTTP status 409. Events were reported for an instance that is not the client’s present one; or a hello is older than that of the present link. */
  | 'stale_instance'
  /** `store_full`, HTTP status 503. A total of the whole relay is used up; `share` names which. */
  | 'store_full'
  /** `store_lost`, HTTP status 504. The store lost records, so nothing is proven about the command. */
  | 'store_lost'
  /** `store_unavailable`, HTTP status 503. The store does not answer. */
  | 'store_unavailable'
  /** `too_complex`, HTTP status 400. The GraphQL document costs more than is allowed. */
  | 'too_complex'
  /** `too_late`, HTTP status 200. Refused: the time of the command was over before its handler could start. */
  | 'too_late'
  /** `unauthenticated`, HTTP status 401. The token is missing, wrong or expired. Another token may help. */
  | 'unauthenticated'
  /** `unknown_action`, HTTP status 200. Refused: the client has no such action. */
  | 'unknown_action'
  /** `unsupported_media_type`, HTTP status 415. The body is not JSON by its `content-type`. */
  | 'unsupported_media_type';

/** How far a command has come. */
export type Stage =
  /** The client confirmed that it received the command. That does not prove that it ran. */
  | 'ACKNOWLEDGED'
  /** The command is on record and waits for its client to connect. */
  | 'ADMITTED'
  /** The node began to write the command to the client’s socket. That proves neither receipt nor execution. */
  | 'DISPATCHED'
  /** The command is queued for its client’s link. */
  | 'QUEUED'
  /** The command ended; `outcome` says how. */
  | 'TERMINAL';

/** What a call waits for. The end of a wait does not change the command. */
export type WaitStage =
  /** Until the client confirmed that it received the command. */
  | 'ACKNOWLEDGED'
  /** Until the command is on record. */
  | 'ADMITTED'
  /** Until the command ended. */
  | 'COMPLETED';

/** The status of a browser window. */
export type WindowStatus =
  /** Its client reports it as closed. */
  | 'CLOSED'
  /** Its client reports it as open. */
  | 'OPEN'
  /** It was last reported as open, but its client’s link is down or silent: nothing newer is known. */
  | 'STALE';

export type ConnectionsQueryVariables = Exact<{
  userId?: string | null | undefined;
  nodeId?: string | null | undefined;
  status?: ConnectionStatus | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type ConnectionsQuery = { connections: { nextCursor: string | null, nodes: Array<{ userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, knowsPlaces: boolean, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, closeCode: number | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

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

export type ConnectionRowFragment = { userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, knowsPlaces: boolean, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, closeCode: number | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> };

export type UsersQueryVariables = Exact<{
  after?: string | null | undefined;
  first?: number;
}>;


export type UsersQuery = { users: { nextCursor: string | null, nodes: Array<{ userId: string, connectionCount: number, streamCount: number, id: string, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type UserQueryVariables = Exact<{
  id: string;
}>;


export type UserQuery = { user: { userId: string, connectionCount: number, streamCount: number, pendingRpcCount: number, id: string, connections: { nextCursor: string | null, nodes: Array<{ userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, knowsPlaces: boolean, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, closeCode: number | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> }> }, streams: { nextCursor: string | null, nodes: Array<{ key: string, userId: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null }> }, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } | null };

export type ContextsQueryVariables = Exact<{
  filter?: ContextFilter | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type ContextsQuery = { contexts: { nextCursor: string | null, nodes: Array<{ contextId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string, id: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type ContextCountQueryVariables = Exact<{
  filter?: ContextFilter | null | undefined;
}>;


export type ContextCountQuery = { contextCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WindowsQueryVariables = Exact<{
  filter?: BrowserWindowFilter | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type WindowsQuery = { browserWindows: { nextCursor: string | null, nodes: Array<{ windowId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, tabCount: number, capacity: number | null, draining: boolean, status: WindowStatus, workerCount: number, idleCount: number, busyCount: number, countsFrom: CountsFrom, reportedAt: string, id: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WindowCountQueryVariables = Exact<{
  filter?: BrowserWindowFilter | null | undefined;
}>;


export type WindowCountQuery = { browserWindowCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WindowQueryVariables = Exact<{
  userId: string;
  windowId: string;
}>;


export type WindowQuery = { browserWindow: { windowId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, tabCount: number, capacity: number | null, draining: boolean, status: WindowStatus, workerCount: number, idleCount: number, busyCount: number, countsFrom: CountsFrom, reportedAt: string, id: string } | null };

export type WorkersQueryVariables = Exact<{
  userId: string;
  clientType?: ClientType | null | undefined;
  first?: number;
}>;


export type WorkersQuery = { workers: { idle: Array<{ contextId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string, id: string }>, assigned: Array<{ contextId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string, id: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type AvailableWorkersQueryVariables = Exact<{
  userId: string;
  clientType?: ClientType | null | undefined;
  first?: number;
}>;


export type AvailableWorkersQuery = { workers: { available: { items: Array<{ contextId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string, id: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type WorkersOfTaskQueryVariables = Exact<{
  userId: string;
  taskId: string;
  first?: number;
}>;


export type WorkersOfTaskQuery = { workers: { forTask: { items: Array<{ contextId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string, id: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type ContextRowFragment = { contextId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, status: ContextStatus, ownership: Ownership, windowId: string | null, taskId: string | null, taskAssignedAt: string | null, title: string | null, metadata: unknown, reportedAt: string, id: string };

export type WindowRowFragment = { windowId: string, userId: string, clientId: string, instanceId: string, clientType: ClientType, ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, tabCount: number, capacity: number | null, draining: boolean, status: WindowStatus, workerCount: number, idleCount: number, busyCount: number, countsFrom: CountsFrom, reportedAt: string, id: string };

export type CommandFileQueryVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
}>;


export type CommandFileQuery = { command: { userId: string, clientId: string, commandId: string, action: string, outcome: Outcome | null, error: { code: string, message: string } | null, delivery: { userId: string, clientId: string, commandId: string, contextId: string | null, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null, caller: { kind: CommandCallerKind, name: string } } | null, waiters: Array<{ rpcId: string, commandId: string, userId: string, clientId: string, action: string, contextId: string | null, waitFor: WaitStage, expectedInstanceId: string | null, nodeId: string | null, callerNodeId: string, createdAt: string, timesOutAt: string, connectDeadline: string, ageMs: number, stage: Stage, caller: { kind: CommandCallerKind, name: string }, instanceMismatch: { expectedInstanceId: string, observedInstanceId: string | null, observedAt: string } | null }>, sightings: Array<{ messageId: string, count: number, firstSeenAt: string, lastSeenAt: string }>, connection: { userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, knowsPlaces: boolean, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, closeCode: number | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> } | null, history: { nextCursor: string | null, nodes: Array<{ messageId: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, contextId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, id: string, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } | null };

export type PendingQueryVariables = Exact<{
  filter?: PendingRpcFilter | null | undefined;
  after?: string | null | undefined;
  first?: number;
}>;


export type PendingQuery = { pendingRpcs: { nextCursor: string | null, nodes: Array<{ rpcId: string, commandId: string, userId: string, clientId: string, action: string, contextId: string | null, waitFor: WaitStage, expectedInstanceId: string | null, nodeId: string | null, callerNodeId: string, createdAt: string, timesOutAt: string, connectDeadline: string, ageMs: number, stage: Stage, caller: { kind: CommandCallerKind, name: string }, instanceMismatch: { expectedInstanceId: string, observedInstanceId: string | null, observedAt: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type PendingCountQueryVariables = Exact<{
  filter?: PendingRpcFilter | null | undefined;
}>;


export type PendingCountQuery = { pendingRpcCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type PendingCountByNodeQueryVariables = Exact<{
  filter?: PendingRpcFilter | null | undefined;
}>;


export type PendingCountByNodeQuery = { pendingRpcCountByNode: { items: Array<{ nodeId: string | null, count: number }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type WaiterRowFragment = { rpcId: string, commandId: string, userId: string, clientId: string, action: string, contextId: string | null, waitFor: WaitStage, expectedInstanceId: string | null, nodeId: string | null, callerNodeId: string, createdAt: string, timesOutAt: string, connectDeadline: string, ageMs: number, stage: Stage, caller: { kind: CommandCallerKind, name: string }, instanceMismatch: { expectedInstanceId: string, observedInstanceId: string | null, observedAt: string } | null };

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


export type DeliveryCommandsQuery = { delivery: { commands: { nextCursor: string | null, nodes: Array<{ userId: string, clientId: string, commandId: string, contextId: string | null, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null, caller: { kind: CommandCallerKind, name: string } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } } };

export type DeliveryStatusQueryVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
}>;


export type DeliveryStatusQuery = { delivery: { status: { userId: string, clientId: string, commandId: string, contextId: string | null, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null, caller: { kind: CommandCallerKind, name: string } } | null } };

export type DeliveryRowFragment = { userId: string, clientId: string, commandId: string, contextId: string | null, scopeId: string, stage: Stage, outcome: Outcome | null, lastProvenStage: Stage, execution: ExecutionEvidence, attempts: number, admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, boundInstanceId: string | null, recoveredFromNodeId: string | null, cancelRequestedAt: string | null, lateResults: number, firstLateAt: string | null, reason: string | null, caller: { kind: CommandCallerKind, name: string } };

export type CancelMutationVariables = Exact<{
  input: CancelCommandInput;
}>;


export type CancelMutation = { cancelCommand:
    | { __typename: 'CancelReceipt', commandId: string, state: CancelState, outcome: Outcome | null }
    | { __typename: 'Refusal', code: RefusalCode, message: string, retryAfterMs: number | null }
   };

export type DisconnectMutationVariables = Exact<{
  userId: string;
  clientId: string;
  reason?: string | null | undefined;
}>;


export type DisconnectMutation = { disconnectClient:
    | { __typename: 'DisconnectReceipt', state: DisconnectState, connection: { userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, knowsPlaces: boolean, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, closeCode: number | null, heartbeat: HeartbeatIndicator, recentlyReplaced: boolean, replacedInstanceId: string | null, actionNames: Array<string>, queued: number, inFlight: number, predecessors: Array<{ instanceId: string, nodeId: string, replacedAt: string, cause: DisconnectCause }> } }
    | { __typename: 'Refusal', code: RefusalCode, message: string, retryAfterMs: number | null }
   };

export type DrainMutationVariables = Exact<{
  nodeId: string;
  withinMs?: number;
  reason?: string | null | undefined;
}>;


export type DrainMutation = { drainNode:
    | { __typename: 'DispatcherNode', nodeId: string, draining: boolean, links: number, unfinishedCommands: number, connectionWaiters: number, updatedAt: string }
    | { __typename: 'Refusal', code: RefusalCode, message: string, retryAfterMs: number | null }
   };

export type RefusalRowFragment = { code: RefusalCode, message: string, retryAfterMs: number | null };

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


export type MessagesQuery = { messages: { nextCursor: string | null, nodes: Array<{ payload: unknown, payloadState: PayloadState, messageId: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, contextId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, id: string, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type CommandMessagesQueryVariables = Exact<{
  userId: string;
  commandId: string;
  includePayload?: boolean;
  order?: MessageOrder;
  after?: string | null | undefined;
  first?: number;
}>;


export type CommandMessagesQuery = { commandHistory: { nextCursor: string | null, nodes: Array<{ payload: unknown, payloadState: PayloadState, messageId: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, contextId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, id: string, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type RawMessagesQueryVariables = Exact<{
  stream?: string | null | undefined;
  valuesOnly?: boolean;
  limit?: number;
}>;


export type RawMessagesQuery = { rawMessages: { items: Array<unknown>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> } } };

export type StreamRowFragment = { key: string, userId: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null };

export type MessageRowFragment = { messageId: string, stream: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, commandId: string | null, contextId: string | null, traceId: string | null, parentSpanId: string | null, payloadBytes: number, payloadSha256: string | null, id: string, error: { code: string, message: string } | null };

export type DedupQueryVariables = Exact<{
  windowSeconds?: number;
}>;


export type DedupQuery = { dedup: { stats: { windowSeconds: number, seen: number, unique: number, duplicates: number, exact: boolean, grainSeconds: number, liveKeys: number | null }, backend: { implementation: string, ttlSeconds: number, namespace: string | null } } };

export type ObservationFragment = { complete: boolean, sources: Array<{ source: EvidenceSource, nodeId: string | null, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, asOf: string }> };

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
  knowsPlaces
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  closeCode
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
  id: contextId
  contextId
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
  id: windowId
  windowId
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
export const WaiterRowFragmentDoc = new TypedDocumentString(`
    fragment WaiterRow on PendingRpc {
  rpcId
  commandId
  userId
  clientId
  action
  contextId
  waitFor
  caller {
    kind
    name
  }
  expectedInstanceId
  nodeId
  callerNodeId
  createdAt
  timesOutAt
  connectDeadline
  ageMs
  instanceMismatch {
    expectedInstanceId
    observedInstanceId
    observedAt
  }
  stage
}
    `, {"fragmentName":"WaiterRow"}) as unknown as TypedDocumentString<WaiterRowFragment, unknown>;
export const DeliveryRowFragmentDoc = new TypedDocumentString(`
    fragment DeliveryRow on DeliveryRecord {
  userId
  clientId
  commandId
  contextId
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
  connectDeadline
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
  caller {
    kind
    name
  }
}
    `, {"fragmentName":"DeliveryRow"}) as unknown as TypedDocumentString<DeliveryRowFragment, unknown>;
export const RefusalRowFragmentDoc = new TypedDocumentString(`
    fragment RefusalRow on Refusal {
  code
  message
  retryAfterMs
}
    `, {"fragmentName":"RefusalRow"}) as unknown as TypedDocumentString<RefusalRowFragment, unknown>;
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
  id: messageId
  messageId
  stream
  kind
  at
  clientId
  instanceId
  commandId
  contextId
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
    fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  knowsPlaces
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  closeCode
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
    fragment AdvertisementRow on ActionAdvertisement {
  name
  summary
  description
  version
  checksArguments
  schema
  metadata
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
    fragment AdvertisementRow on ActionAdvertisement {
  name
  summary
  description
  version
  checksArguments
  schema
  metadata
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
}`) as unknown as TypedDocumentString<ActionSampleQuery, ActionSampleQueryVariables>;
export const UsersDocument = new TypedDocumentString(`
    query Users($after: String, $first: Int! = 100) {
  users(after: $after, first: $first) {
    nodes {
      id: userId
      userId
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
  user(userId: $id) {
    id: userId
    userId
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
    fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  knowsPlaces
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  closeCode
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
}`) as unknown as TypedDocumentString<UserQuery, UserQueryVariables>;
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
    fragment ContextRow on ExecutionContext {
  id: contextId
  contextId
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
    fragment WindowRow on BrowserWindow {
  id: windowId
  windowId
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
  id: windowId
  windowId
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
    fragment ContextRow on ExecutionContext {
  id: contextId
  contextId
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
    fragment ContextRow on ExecutionContext {
  id: contextId
  contextId
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
    fragment ContextRow on ExecutionContext {
  id: contextId
  contextId
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
}`) as unknown as TypedDocumentString<WorkersOfTaskQuery, WorkersOfTaskQueryVariables>;
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
    fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  knowsPlaces
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  closeCode
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
fragment WaiterRow on PendingRpc {
  rpcId
  commandId
  userId
  clientId
  action
  contextId
  waitFor
  caller {
    kind
    name
  }
  expectedInstanceId
  nodeId
  callerNodeId
  createdAt
  timesOutAt
  connectDeadline
  ageMs
  instanceMismatch {
    expectedInstanceId
    observedInstanceId
    observedAt
  }
  stage
}
fragment DeliveryRow on DeliveryRecord {
  userId
  clientId
  commandId
  contextId
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
  connectDeadline
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
  caller {
    kind
    name
  }
}
fragment MessageRow on Message {
  id: messageId
  messageId
  stream
  kind
  at
  clientId
  instanceId
  commandId
  contextId
  traceId
  parentSpanId
  payloadBytes
  payloadSha256
  error {
    code
    message
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
}`) as unknown as TypedDocumentString<CommandFileQuery, CommandFileQueryVariables>;
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
    fragment WaiterRow on PendingRpc {
  rpcId
  commandId
  userId
  clientId
  action
  contextId
  waitFor
  caller {
    kind
    name
  }
  expectedInstanceId
  nodeId
  callerNodeId
  createdAt
  timesOutAt
  connectDeadline
  ageMs
  instanceMismatch {
    expectedInstanceId
    observedInstanceId
    observedAt
  }
  stage
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
    fragment DeliveryRow on DeliveryRecord {
  userId
  clientId
  commandId
  contextId
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
  connectDeadline
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
  caller {
    kind
    name
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
  contextId
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
  connectDeadline
  deadline
  nodeId
  boundInstanceId
  recoveredFromNodeId
  cancelRequestedAt
  lateResults
  firstLateAt
  reason
  caller {
    kind
    name
  }
}`) as unknown as TypedDocumentString<DeliveryStatusQuery, DeliveryStatusQueryVariables>;
export const CancelDocument = new TypedDocumentString(`
    mutation Cancel($input: CancelCommandInput!) {
  cancelCommand(input: $input) {
    __typename
    ... on CancelReceipt {
      commandId
      state
      outcome
    }
    ... on Refusal {
      ...RefusalRow
    }
  }
}
    fragment RefusalRow on Refusal {
  code
  message
  retryAfterMs
}`) as unknown as TypedDocumentString<CancelMutation, CancelMutationVariables>;
export const DisconnectDocument = new TypedDocumentString(`
    mutation Disconnect($userId: ID!, $clientId: ID!, $reason: String) {
  disconnectClient(userId: $userId, clientId: $clientId, reason: $reason) {
    __typename
    ... on DisconnectReceipt {
      state
      connection {
        ...ConnectionRow
      }
    }
    ... on Refusal {
      ...RefusalRow
    }
  }
}
    fragment ConnectionRow on ConnectionSnapshot {
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  knowsPlaces
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  closeCode
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
fragment RefusalRow on Refusal {
  code
  message
  retryAfterMs
}`) as unknown as TypedDocumentString<DisconnectMutation, DisconnectMutationVariables>;
export const DrainDocument = new TypedDocumentString(`
    mutation Drain($nodeId: ID!, $withinMs: Int! = 10000, $reason: String) {
  drainNode(nodeId: $nodeId, withinMs: $withinMs, reason: $reason) {
    __typename
    ... on DispatcherNode {
      nodeId
      draining
      links
      unfinishedCommands
      connectionWaiters
      updatedAt
    }
    ... on Refusal {
      ...RefusalRow
    }
  }
}
    fragment RefusalRow on Refusal {
  code
  message
  retryAfterMs
}`) as unknown as TypedDocumentString<DrainMutation, DrainMutationVariables>;
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
    fragment StreamRow on Stream {
  key
  userId
  suffix
  messageCount
  firstAt
  lastAt
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
    fragment MessageRow on Message {
  id: messageId
  messageId
  stream
  kind
  at
  clientId
  instanceId
  commandId
  contextId
  traceId
  parentSpanId
  payloadBytes
  payloadSha256
  error {
    code
    message
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
    fragment MessageRow on Message {
  id: messageId
  messageId
  stream
  kind
  at
  clientId
  instanceId
  commandId
  contextId
  traceId
  parentSpanId
  payloadBytes
  payloadSha256
  error {
    code
    message
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