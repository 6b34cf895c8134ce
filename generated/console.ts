/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
/** Which acts to include. An act must match every member that is given. */
export type AuditFilter = {
  /** Only this action. */
  action?: OperatorAction | null | undefined;
  /** Only acts after this time, exclusive. */
  afterTime?: string | null | undefined;
  /** Only acts before this time, exclusive. */
  beforeTime?: string | null | undefined;
  /** Only acts that concern this user. Omitted: a user gets acts that concern it, an administrator gets all. */
  userId?: string | null | undefined;
  /** Only acts of this administrator, as `admin:<name>`. */
  who?: string | null | undefined;
};

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

/** What clients are chosen and ordered by. */
export type ClientMeasure =
  /** Those with the most commands that have not ended, most first. Such a client need not be connected. */
  | 'BACKLOG'
  /** Those that reconnected most in the last hour, most first. */
  | 'RECONNECTS'
  /** Those whose connection is forgotten next: lost ones, the one lost longest ago first, then those whose link is up, the one that was silent for longest first. */
  | 'SILENCE';

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

/** Which events to send. An event must match every member that is given. */
export type CommandEventFilter = {
  /** Only commands that invoke this action. */
  action?: string | null | undefined;
  /** Only commands for this client. */
  clientId?: string | null | undefined;
  /** Only commands whose client was a program of this kind at admission. */
  clientType?: ClientType | null | undefined;
  /** Only ENDED and LATE, of commands that ended in one of these ways. */
  outcomes?: Array<Outcome> | null | undefined;
  /** Only commands for clients of this user. Omitted: a user gets its own, an administrator gets all. */
  userId?: string | null | undefined;
};

/** What happened to a command. */
export type CommandEventStage =
  /** The client confirmed that it received the command. */
  | 'ACKNOWLEDGED'
  /** The relay admitted the command. */
  | 'ADMITTED'
  /** The node began to write the command to the client’s socket. */
  | 'DISPATCHED'
  /** The command ended; `record.outcome` says how. */
  | 'ENDED'
  /** An end was reported after the command had ended, or by an instance that the command was not written to. */
  | 'LATE';

/** What happened to a connection. */
export type ConnectionChange =
  /** The client changed the actions that it advertises. */
  | 'ACTIONS_CHANGED'
  /** A client connected. */
  | 'CONNECTED'
  /** The link went down. */
  | 'DISCONNECTED'
  /** A new instance of the client replaced the previous one. */
  | 'REPLACED'
  /** The same instance of the client connected again. */
  | 'RESUMED'
  /** The client has been silent for 45 seconds. */
  | 'STALE';

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

/** A code, and what the person decides. */
export type DecideEnrolmentInput = {
  /** The client that it shall be. Omitted: one that is made of its name. */
  clientId?: string | null | undefined;
  /** What the person decides. */
  decision: EnrolmentChoice;
  /** The code that the device shows. */
  userCode: string;
  /** The user to whom the device shall belong. A user may omit it, and may name no other one. */
  userId?: string | null | undefined;
};

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

/** Where a relay keeps what outlives its process. */
export type DurabilityKind =
  /** In the data directory of this relay. */
  | 'DIRECTORY'
  /** Nowhere: a restart forgets everything. */
  | 'MEMORY'
  /** In the store that all nodes share. */
  | 'STORE';

/** What a person decides. */
export type EnrolmentChoice =
  /** The device becomes a client of the user. */
  | 'CONFIRM'
  /** The device gets nothing. */
  | 'DENY';

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

/** What failures are grouped by. */
export type FailureKey =
  /** The action. */
  | 'ACTION'
  /** The target client, with its user. */
  | 'CLIENT'
  /** The code of the error that they ended with. */
  | 'CODE'
  /** The node of the target’s link. */
  | 'NODE';

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

/** A command for one client. Its deadline is the time of its admission plus `connectWithinMs` and `respondWithinMs`. */
export type InvokeActionInput = {
  /** The name of the action to run. */
  action: string;
  /** The id of the target client. */
  clientId: string;
  /** The caller’s own id for the command, which makes the call safe to repeat: the same request attaches to the command or replays its outcome, and a different request is a conflict. Omitted: the relay generates one. */
  commandId?: string | null | undefined;
  /** How long the command may wait for its client to connect, 0 to 300000 milliseconds. With 0, the call is refused if the client is not connected. */
  connectWithinMs?: number;
  /** The id of the client’s context, such as a tab, in which the command may run, and in no other. The call is refused with `context_gone` if the client does not report it. Omitted: the client chooses. */
  contextId?: string | null | undefined;
  /** The id of the client instance that must be live. Omitted: any instance. */
  instanceId?: string | null | undefined;
  /** The action’s arguments, a JSON object. Omitted: none. */
  params?: unknown;
  /** The caller’s span id, retained with every message of the command. Omitted: as for `traceId`. */
  parentSpanId?: string | null | undefined;
  /** How long the client may take, 1000 to 300000 milliseconds. */
  respondWithinMs?: number;
  /** The caller’s trace id, retained with every message of the command. If neither this nor `parentSpanId` is given, the HTTP headers `traceparent` and `tracestate` (W3C Trace Context) apply; without them there is none. */
  traceId?: string | null | undefined;
  /** The id of the user that the target client belongs to. */
  userId: string;
  /** What the call waits for. */
  waitFor?: WaitStage;
};

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

/** What an administrator did, or a user who paused or resumed. */
export type OperatorAction =
  /** Cancelled a command that another caller had invoked. */
  | 'CANCEL'
  /** Closed a client’s link. */
  | 'DISCONNECT'
  /** Drained a node. */
  | 'DRAIN'
  /** Decided whether a device is enrolled. */
  | 'ENROL'
  /** Paused calls. */
  | 'PAUSE'
  /** Read payloads by an argument of a listing. */
  | 'PAYLOAD'
  /** Gave a device another name. */
  | 'RENAME'
  /** Ended a pause. */
  | 'RESUME'
  /** Revealed one payload and gave the reason. */
  | 'REVEAL'
  /** Revoked tokens. */
  | 'REVOKE';

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

/** Who set a pause. */
export type PauseAuthorKind =
  /** An administrator. */
  | 'ADMIN'
  /** The client itself: the person at it said stop. */
  | 'CLIENT'
  /** The user whose clients it covers. */
  | 'USER';

/** Which calls to pause, why, and until when. */
export type PauseCallsInput = {
  /** Which calls to pause. */
  cover: PauseCoverInput;
  /** What to do with commands that were not dispatched. Default: keep them. */
  queued?: PauseQueued | null | undefined;
  /** Why: 1 to 256 characters. Callers that are refused, and the audit, show it. */
  reason: string;
  /** What to do with commands that run. Default: leave them. */
  running?: PauseRunning | null | undefined;
  /** When the pause ends by itself. Omitted: when somebody resumes. */
  until?: string | null | undefined;
};

/** Which calls to pause: those that match every member. Give at least one, or `all`. A user covers its own clients alone. */
export type PauseCoverInput = {
  /** Only calls of such actions. A pattern with `*`, of 1 to 256 characters. */
  action?: string | null | undefined;
  /** All calls; of a user: all calls of its clients. */
  all?: boolean | null | undefined;
  /** Only calls of callers with such a name. A pattern with `*`, of 1 to 256 characters. */
  caller?: string | null | undefined;
  /** Only calls of this kind of callers: `MCP` are agents. */
  callerKind?: CommandCallerKind | null | undefined;
  /** Only calls of this client. An administrator names `userId`, too. */
  clientId?: string | null | undefined;
  /** Only calls of programs with such a name, as agents give it. A pattern with `*`, of 1 to 256 characters. */
  label?: string | null | undefined;
  /** Only calls of the clients of this user. A user may omit it. */
  userId?: string | null | undefined;
};

/** What a pause does with commands that were not dispatched. */
export type PauseQueued =
  /** They are cancelled: nothing ran. */
  | 'CANCEL'
  /** They wait until the pause ends, and may expire: nothing ran. */
  | 'KEEP';

/** What a pause does with commands that run. */
export type PauseRunning =
  /** Their clients are asked to cancel them. */
  | 'CANCEL'
  /** They run on. */
  | 'LEAVE';

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

/** Who decides in a layer. */
export type PreflightAskedOf =
  /** The client, once it has the command. The relay does not know the answer before. */
  | 'CLIENT'
  /** The relay. */
  | 'RELAY';

/** A layer that an invocation passes, in the order in which they are asked. */
export type PreflightLayerName =
  /** A connected client must advertise the action. */
  | 'ACTION'
  /** The relay checks the user that the client belongs to. */
  | 'ADDRESS'
  /** The admission scope, the client’s queue and the user’s shares must have room. */
  | 'CAPACITY'
  /** A person at the client decides. */
  | 'CLIENT_APPROVAL'
  /** The client checks the arguments. */
  | 'CLIENT_ARGUMENTS'
  /** The client’s own authorizer decides. */
  | 'CLIENT_AUTHORIZER'
  /** The client runs some actions one at a time. */
  | 'CLIENT_LEASE'
  /** The command id must not belong to a different request. */
  | 'CONFLICT'
  /** The relay checks the token. */
  | 'IDENTITY'
  /** The relay checks the input. */
  | 'INPUT'
  /** No pause may cover the call. */
  | 'PAUSE'
  /** A named context must be one that the client reports. */
  | 'PLACE'
  /** The central policy decides. */
  | 'POLICY'
  /** The rate rule of the policy that counts the call, if there is one, must allow another one. */
  | 'RATE'
  /** The node must not be draining. */
  | 'RELAY'
  /** The relay checks the scope `invoke`. */
  | 'SCOPE'
  /** The store of large payloads must have room for the params. */
  | 'STORAGE'
  /** The client must be connected, with the named instance, or the call must allow time to connect. */
  | 'TARGET'
  /** The caller’s share of waits must have room. */
  | 'WAITS';

/** The answer of a preflight. */
export type PreflightVerdict =
  /** It would not refuse. */
  | 'PASS'
  /** It would refuse. */
  | 'REFUSE'
  /** It was not asked: an earlier layer decides, or it does not apply. */
  | 'SKIPPED'
  /** The relay cannot tell without doing it. */
  | 'UNKNOWN';

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

/** The layer of the relay that refused a request. */
export type RefusedBy =
  /** The address names nothing that the requester may reach. */
  | 'ADDRESS'
  /** An argument is invalid. */
  | 'ARGUMENTS'
  /** A limit on capacity, rate or storage is reached. */
  | 'CAPACITY'
  /** The command id was used for a different request. */
  | 'CONFLICT'
  /** A pause covers the call. */
  | 'PAUSE'
  /** The client does not report the named context, or knows no places. */
  | 'PLACE'
  /** The central policy denies the invocation. */
  | 'POLICY'
  /** This node does not do it now, or at all. */
  | 'RELAY'
  /** The rules of the site deny the request. */
  | 'SITE'
  /** The target client is not connected, has another instance than the requested one, or does not advertise the action. */
  | 'TARGET'
  /** The token does not allow it. */
  | 'TOKEN';

/** Which payload to reveal, and why. */
export type RevealPayloadInput = {
  /** The client’s id. */
  clientId?: string | null | undefined;
  /** The command’s id. */
  commandId?: string | null | undefined;
  /** The field `id` of a Message; or, together with `commandId`, its field `messageId`. */
  messageId?: string | null | undefined;
  /** The reason, for the audit: 8 to 256 characters. The user can read it. */
  reason: string;
  /** What to reveal. */
  subject: RevealSubject;
  /** The id of the user that the payload belongs to. */
  userId: string;
};

/** What to reveal. */
export type RevealSubject =
  /** The params of a command. Needs `clientId` and `commandId`. */
  | 'COMMAND_PARAMS'
  /** The result of a command. Needs `clientId` and `commandId`. */
  | 'COMMAND_RESULT'
  /** The payload of a retained message. Needs `messageId`. */
  | 'MESSAGE';

/** Which tokens to revoke: those that match every member that is given; at least one. */
export type RevokeInput = {
  /** Only links of this client of the user. */
  clientId?: string | null | undefined;
  /** Only tokens that were issued before this time. Omitted without `tokenId`: before now. */
  issuedBefore?: string | null | undefined;
  /** Why: 1 to 256 characters. */
  reason: string;
  /** Only the token with this id (`jti`). */
  tokenId?: string | null | undefined;
  /** Only tokens of this user. A user may omit it, and may name no other one. */
  userId?: string | null | undefined;
};

/** What a user’s token allows. */
export type Scope =
  /** Connect clients of the user. */
  | 'CONNECT'
  /** Host sites of the user and ingest events. */
  | 'HOST'
  /** Read the user’s own data and invoke actions of its clients. */
  | 'INVOKE'
  /** Call actions of the user’s clients as an agent, over MCP, and nothing else. */
  | 'MCP';

/** Whether a session can be used; derived when it is read. */
export type SessionState =
  /** The host is connected: events flow and actions can be invoked. */
  | 'ACTIVE'
  /** The session was closed, or its site was removed. */
  | 'CLOSED'
  /** The session’s time ran out. */
  | 'EXPIRED'
  /** The host is not connected: nothing can be invoked. Viewers stay subscribed. */
  | 'SUSPENDED';

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

/** The kind of requester. */
export type ViewerKind =
  /** An administrator. */
  | 'ADMIN'
  /** A user. */
  | 'USER';

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

export type ActionSampleQueryVariables = Exact<{
  name?: string | null | undefined;
}>;


export type ActionSampleQuery = { actions: { complete: boolean, items: Array<{ userId: string, clientId: string, action: { name: string, summary: string | null, version: string | null } }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type ActionCallsQueryVariables = Exact<{
  filter?: DeliveryFilter | null | undefined;
}>;


export type ActionCallsQuery = { delivery: { latest: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, measured: { nodes: Array<{ outcome: Outcome | null, durationMs: number | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } } };

export type ActionPermissionsQueryVariables = Exact<{
  userId: string;
  actions: Array<string> | string;
}>;


export type ActionPermissionsQuery = { actionPermissions: Array<{ action: string, callers: Array<{ kind: CommandCallerKind, verdict: PreflightVerdict, message: string }> }> };

export type AgentCallsQueryVariables = Exact<{ [key: string]: never; }>;


export type AgentCallsQuery = { commands: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type ActionDetailsQueryVariables = Exact<{
  userId: string;
  clientId: string;
}>;


export type ActionDetailsQuery = { connection: { actions: { items: Array<{ name: string, version: string | null, description: string | null, schema: unknown, checksArguments: boolean | null, guards: { approval: boolean | null, lease: boolean | null } | null, effects: { readOnly: boolean | null, destructive: boolean | null, idempotent: boolean | null, openWorld: boolean | null } | null }> } } | null };

export type ActionsOfUserQueryVariables = Exact<{
  userId: string;
}>;


export type ActionsOfUserQuery = { connections: { nodes: Array<{ userId: string, clientId: string, actions: { items: Array<{ name: string, summary: string | null, version: string | null }> } }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type InvokeTargetQueryVariables = Exact<{
  userId: string;
  clientId: string;
}>;


export type InvokeTargetQuery = { connection: { knowsPlaces: boolean, contexts: { nodes: Array<{ contextId: string, title: string | null, status: ContextStatus }> }, actions: { items: Array<{ name: string, summary: string | null, schema: unknown }> } } | null };

export type InvokeMutationVariables = Exact<{
  input: InvokeActionInput;
}>;


export type InvokeMutation = { invokeAction:
    | { __typename: 'InvokeActionOutcome', outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, error: { code: string, message: string } | null }
    | { __typename: 'InvokeActionPending', outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, error: { code: string, message: string } | null }
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
   };

export type AwaitCallMutationVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
  withinMs: number;
}>;


export type AwaitCallMutation = { awaitCommand:
    | { __typename: 'InvokeActionOutcome', outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, error: { code: string, message: string } | null }
    | { __typename: 'InvokeActionPending', outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, error: { code: string, message: string } | null }
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
   };

export type CallStagesQueryVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
}>;


export type CallStagesQuery = { command: { delivery: { admittedAt: string, queuedAt: string | null, dispatchedAt: string | null, acknowledgedAt: string | null, terminalAt: string | null, outcome: Outcome | null } | null } | null };

export type PreflightQueryVariables = Exact<{
  input: InvokeActionInput;
}>;


export type PreflightQuery = { preflightInvocation: { wouldAdmit: PreflightVerdict, asOf: string, firstRefusal: { code: RefusalCode | null, message: string } | null, layers: Array<{ layer: PreflightLayerName, verdict: PreflightVerdict, message: string, askedOf: PreflightAskedOf }> } };

export type AuditQueryVariables = Exact<{
  filter?: AuditFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type AuditQuery = { auditEvents: { nodes: Array<{ id: string, at: string, who: string, action: OperatorAction, reason: string | null, outcome: string | null, node: string, requestId: string | null, subject: { userId: string | null, clientId: string | null, commandId: string | null, messageId: string | null, nodeId: string | null, stream: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type ActsPartFragment = { nodes: Array<{ id: string, at: string, who: string, action: OperatorAction, reason: string | null, outcome: string | null, node: string, requestId: string | null, subject: { userId: string | null, clientId: string | null, commandId: string | null, messageId: string | null, nodeId: string | null, stream: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } };

export type AuditRowFragment = { id: string, at: string, who: string, action: OperatorAction, reason: string | null, outcome: string | null, node: string, requestId: string | null, subject: { userId: string | null, clientId: string | null, commandId: string | null, messageId: string | null, nodeId: string | null, stream: string | null } };

export type AuditCheckQueryVariables = Exact<{ [key: string]: never; }>;


export type AuditCheckQuery = { auditCheck: { rows: number, fault: string | null, unchecked: number, asOf: string } };

export type CallsQueryVariables = Exact<{
  filter?: DeliveryFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type CallsQuery = { commands: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type BulkCallsQueryVariables = Exact<{
  filter?: DeliveryFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type BulkCallsQuery = { commands: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } } };

export type CallPageQueryVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
}>;


export type CallPageQuery = { command: { userId: string, clientId: string, commandId: string, action: string, outcome: Outcome | null, resultExpired: boolean, error: { code: string, message: string } | null, delivery: { dispatchedAt: string | null, acknowledgedAt: string | null, attempts: number, contextId: string | null, boundInstanceId: string | null, cancelRequestedAt: string | null, recoveredFromNodeId: string | null, userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null, waiters: Array<{ rpcId: string, userId: string, clientId: string, commandId: string, action: string, stage: Stage, waitFor: WaitStage, createdAt: string, timesOutAt: string, connectDeadline: string, nodeId: string | null, callerNodeId: string, caller: { kind: CommandCallerKind, name: string, program: string | null }, instanceMismatch: { observedAt: string } | null }>, sightings: Array<{ messageId: string, count: number }>, connection: { userId: string, clientId: string, clientType: ClientType, instanceId: string, nodeId: string, status: ConnectionStatus, heartbeat: HeartbeatIndicator, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, inFlight: number, queued: number, actionNames: Array<string> } | null, history: { nodes: Array<{ messageId: string, stream: string, traceId: string | null, id: string, at: string, kind: MessageKind, payloadBytes: number, payloadState: PayloadState, error: { message: string } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } } | null };

export type CallUpdatesSubscriptionVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
  revealReason?: string | null | undefined;
  isRevealed?: boolean | null | undefined;
}>;


export type CallUpdatesSubscription = { commandUpdates: { at: string, stage: Stage, outcome: Outcome | null, isProgress: boolean, progressNumber: number | null, progress?: unknown, missed: number } };

export type CancelCallMutationVariables = Exact<{
  input: CancelCommandInput;
}>;


export type CancelCallMutation = { cancelCommand:
    | { __typename: 'CancelReceipt', state: CancelState }
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
   };

export type CallEventsSubscriptionVariables = Exact<{
  filter?: CommandEventFilter | null | undefined;
}>;


export type CallEventsSubscription = { commandEvents: { stage: CommandEventStage, missed: number, record: { userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } } } };

export type FindCommandsQueryVariables = Exact<{
  idOrTrace: string;
  after?: string | null | undefined;
}>;


export type FindCommandsQuery = { findCommands: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } } };

export type FailuresQueryVariables = Exact<{
  filter?: DeliveryFilter | null | undefined;
  by: Array<FailureKey> | FailureKey;
  first: number;
}>;


export type FailuresQuery = { delivery: { failures: { groupCount: number, count: number, groups: Array<{ action: string | null, code: string | null, userId: string | null, clientId: string | null, nodeId: string | null, count: number, share: number, last: { userId: string, clientId: string, commandId: string, admittedAt: string } }>, outcomes: Array<{ outcome: Outcome, count: number }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } } };

export type WaitsQueryVariables = Exact<{
  filter?: PendingRpcFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type WaitsQuery = { pendingRpcs: { completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> }, nodes: Array<{ rpcId: string, userId: string, clientId: string, commandId: string, action: string, stage: Stage, waitFor: WaitStage, createdAt: string, timesOutAt: string, connectDeadline: string, nodeId: string | null, callerNodeId: string, caller: { kind: CommandCallerKind, name: string, program: string | null }, instanceMismatch: { observedAt: string } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } }, pendingRpcCount: { count: number } };

export type ClientsQueryVariables = Exact<{
  userId?: string | null | undefined;
  nodeId?: string | null | undefined;
  status?: ConnectionStatus | null | undefined;
  clientType?: ClientType | null | undefined;
  action?: string | null | undefined;
  text?: string | null | undefined;
  labels?: Array<string> | string | null | undefined;
  onSilentNodes?: boolean | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type ClientsQuery = { connections: { nodes: Array<{ pendingRpcCount: number, reconnectsLastHour: number, userId: string, clientId: string, clientType: ClientType, instanceId: string, nodeId: string, status: ConnectionStatus, heartbeat: HeartbeatIndicator, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, inFlight: number, queued: number, actionNames: Array<string> }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type ClientChangesSubscriptionVariables = Exact<{
  userId?: string | null | undefined;
}>;


export type ClientChangesSubscription = { connectionEvents: { change: ConnectionChange, missed: number, connection: { userId: string, clientId: string, clientType: ClientType, instanceId: string, nodeId: string, status: ConnectionStatus, heartbeat: HeartbeatIndicator, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, inFlight: number, queued: number, actionNames: Array<string> } } };

export type ClientPageQueryVariables = Exact<{
  userId: string;
  clientId: string;
}>;


export type ClientPageQuery = { connection: { metadata: unknown, reconnectsLastHour: number, userId: string, clientId: string, clientType: ClientType, instanceId: string, nodeId: string, status: ConnectionStatus, heartbeat: HeartbeatIndicator, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, inFlight: number, queued: number, actionNames: Array<string>, predecessors: Array<{ instanceId: string, replacedAt: string, cause: DisconnectCause }>, actions: { items: Array<{ name: string, summary: string | null, version: string | null }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, pendingRpcs: { nodes: Array<{ rpcId: string, userId: string, clientId: string, commandId: string, action: string, stage: Stage, waitFor: WaitStage, createdAt: string, timesOutAt: string, connectDeadline: string, nodeId: string | null, callerNodeId: string, caller: { kind: CommandCallerKind, name: string, program: string | null }, instanceMismatch: { observedAt: string } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } }, contexts: { nodes: Array<{ userId: string, clientId: string, contextId: string, windowId: string | null, status: ContextStatus, ownership: Ownership, taskId: string | null, taskAssignedAt: string | null, title: string | null, reportedAt: string, command: { commandId: string, action: string, delivery: { admittedAt: string, outcome: Outcome | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null } | null }> } } | null };

export type TopClientsQueryVariables = Exact<{
  by: ClientMeasure;
}>;


export type TopClientsQuery = { topClients: { complete: boolean, items: Array<{ userId: string, clientId: string, queued: number, inFlight: number, pendingRpcCount: number, reconnectsLastHour: number, connection: { clientType: ClientType, status: ConnectionStatus, nodeId: string, lastSeenAt: string, disconnectCause: DisconnectCause | null } | null }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type BacklogCountQueryVariables = Exact<{ [key: string]: never; }>;


export type BacklogCountQuery = { topClients: { items: Array<{ clientId: string }> } };

export type DisconnectClientMutationVariables = Exact<{
  userId: string;
  clientId: string;
  reason?: string | null | undefined;
}>;


export type DisconnectClientMutation = { disconnectClient:
    | { __typename: 'DisconnectReceipt', state: DisconnectState }
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
   };

export type ClientNamesQueryVariables = Exact<{
  userId?: string | null | undefined;
  nodeId?: string | null | undefined;
  text?: string | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type ClientNamesQuery = { connections: { nodes: Array<{ userId: string, clientId: string, status: ConnectionStatus }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } } };

export type ContextsQueryVariables = Exact<{
  filter?: ContextFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type ContextsQuery = { contexts: { nodes: Array<{ userId: string, clientId: string, contextId: string, windowId: string | null, status: ContextStatus, ownership: Ownership, taskId: string | null, taskAssignedAt: string | null, title: string | null, reportedAt: string, command: { commandId: string, action: string, delivery: { admittedAt: string, outcome: Outcome | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, contextCount: { count: number } };

export type PlacePageQueryVariables = Exact<{
  userId: string;
  clientId: string;
  contextId: string;
  calls?: DeliveryFilter | null | undefined;
}>;


export type PlacePageQuery = { context: { metadata: unknown, userId: string, clientId: string, contextId: string, windowId: string | null, status: ContextStatus, ownership: Ownership, taskId: string | null, taskAssignedAt: string | null, title: string | null, reportedAt: string, command: { commandId: string, action: string, delivery: { admittedAt: string, outcome: Outcome | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null } | null } | null, commands: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type WindowsQueryVariables = Exact<{
  filter?: BrowserWindowFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type WindowsQuery = { browserWindows: { nodes: Array<{ userId: string, clientId: string, windowId: string, type: string, status: WindowStatus, ownership: Ownership, focused: boolean, incognito: boolean, tabCount: number, workerCount: number, idleCount: number, busyCount: number, capacity: number | null, draining: boolean, reportedAt: string }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, browserWindowCount: { count: number } };

export type DevicesQueryVariables = Exact<{
  userId?: string | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type DevicesQuery = { devices: { nodes: Array<{ userId: string, clientId: string, name: string, clientType: ClientType, actions: Array<string> | null, enrolledAt: string, enrolledBy: string, usedAt: string | null, revoked: boolean, connection: { status: ConnectionStatus, nodeId: string } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type LookUpEnrolmentMutationVariables = Exact<{
  userCode: string;
}>;


export type LookUpEnrolmentMutation = { lookUpEnrolment:
    | { __typename: 'OpenEnrolment', name: string, clientType: ClientType, actions: Array<string> | null, network: string, at: string, expiresAt: string }
    | { __typename: 'Refusal', retryAfterMs: number | null, by: RefusedBy, code: RefusalCode, message: string }
   };

export type DecideEnrolmentMutationVariables = Exact<{
  input: DecideEnrolmentInput;
}>;


export type DecideEnrolmentMutation = { decideEnrolment:
    | { __typename: 'EnrolmentDecision', device: { userId: string, clientId: string, name: string } | null }
    | { __typename: 'Refusal', retryAfterMs: number | null, by: RefusedBy, code: RefusalCode, message: string }
   };

export type RenameDeviceMutationVariables = Exact<{
  userId: string;
  clientId: string;
  deviceName: string;
}>;


export type RenameDeviceMutation = { renameDevice:
    | { __typename: 'Device' }
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
   };

export type RemoveDeviceMutationVariables = Exact<{
  userId: string;
  clientId: string;
  reason?: string | null | undefined;
}>;


export type RemoveDeviceMutation = { removeDevice:
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
    | { __typename: 'RevocationReceipt', links: number, sockets: number, cancelled: number, nodes: Array<string>, silent: Array<string> }
   };

export type RevocationsQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type RevocationsQuery = { revocations: { nodes: Array<{ revocationId: string, userId: string | null, clientId: string | null, tokenId: string | null, issuedBefore: string | null, reason: string, who: string, at: string, expiresAt: string }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type RevokeTokensMutationVariables = Exact<{
  input: RevokeInput;
}>;


export type RevokeTokensMutation = { revoke:
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
    | { __typename: 'RevocationReceipt', links: number, sockets: number, cancelled: number, nodes: Array<string>, silent: Array<string> }
   };

export type DeviceRowFragment = { userId: string, clientId: string, name: string, clientType: ClientType, actions: Array<string> | null, enrolledAt: string, enrolledBy: string, usedAt: string | null, revoked: boolean, connection: { status: ConnectionStatus, nodeId: string } | null };

export type CodeRefusalPartFragment = { retryAfterMs: number | null, by: RefusedBy, code: RefusalCode, message: string };

export type RevocationRowFragment = { revocationId: string, userId: string | null, clientId: string | null, tokenId: string | null, issuedBefore: string | null, reason: string, who: string, at: string, expiresAt: string };

export type RevocationReceiptPartFragment = { links: number, sockets: number, cancelled: number, nodes: Array<string>, silent: Array<string> };

export type CompletenessPartFragment = { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> };

export type PageInfoPartFragment = { endCursor: string | null, hasNextPage: boolean };

export type CallsPartFragment = { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } };

export type WaitsPartFragment = { nodes: Array<{ rpcId: string, userId: string, clientId: string, commandId: string, action: string, stage: Stage, waitFor: WaitStage, createdAt: string, timesOutAt: string, connectDeadline: string, nodeId: string | null, callerNodeId: string, caller: { kind: CommandCallerKind, name: string, program: string | null }, instanceMismatch: { observedAt: string } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } };

export type StreamsPartFragment = { nodes: Array<{ key: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } };

export type WaitCountsFragment = { pendingRpcCount: { count: number }, longWaits: { count: number } };

export type NodeRowFragment = { nodeId: string, stale: boolean, draining: boolean, updatedAt: string, startedAt: string | null, links: number, connectionWaiters: number, unfinishedCommands: number };

export type RefusalPartFragment = { by: RefusedBy, code: RefusalCode, message: string };

export type ClientRowFragment = { userId: string, clientId: string, clientType: ClientType, instanceId: string, nodeId: string, status: ConnectionStatus, heartbeat: HeartbeatIndicator, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, inFlight: number, queued: number, actionNames: Array<string> };

export type WaitRowFragment = { rpcId: string, userId: string, clientId: string, commandId: string, action: string, stage: Stage, waitFor: WaitStage, createdAt: string, timesOutAt: string, connectDeadline: string, nodeId: string | null, callerNodeId: string, caller: { kind: CommandCallerKind, name: string, program: string | null }, instanceMismatch: { observedAt: string } | null };

export type CallerPartFragment = { kind: CommandCallerKind, name: string, program: string | null };

export type CallRowFragment = { userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } };

export type RankedRowFragment = { userId: string, clientId: string, queued: number, inFlight: number, pendingRpcCount: number, reconnectsLastHour: number, connection: { clientType: ClientType, status: ConnectionStatus, nodeId: string, lastSeenAt: string, disconnectCause: DisconnectCause | null } | null };

type InvocationPart_InvokeActionOutcome_Fragment = { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, error: { code: string, message: string } | null };

type InvocationPart_InvokeActionPending_Fragment = { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, error: { code: string, message: string } | null };

export type InvocationPartFragment =
  | InvocationPart_InvokeActionOutcome_Fragment
  | InvocationPart_InvokeActionPending_Fragment
;

export type MessageRowFragment = { id: string, at: string, kind: MessageKind, payloadBytes: number, payloadState: PayloadState, error: { message: string } | null };

export type LinkRowFragment = { id: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, error: { message: string } | null, link: { epoch: number, nodeId: string, cause: DisconnectCause | null, openMs: number | null, previousInstanceId: string | null } | null };

export type StreamRowFragment = { key: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null };

export type WindowRowFragment = { userId: string, clientId: string, windowId: string, type: string, status: WindowStatus, ownership: Ownership, focused: boolean, incognito: boolean, tabCount: number, workerCount: number, idleCount: number, busyCount: number, capacity: number | null, draining: boolean, reportedAt: string };

export type ContextRowFragment = { userId: string, clientId: string, contextId: string, windowId: string | null, status: ContextStatus, ownership: Ownership, taskId: string | null, taskAssignedAt: string | null, title: string | null, reportedAt: string, command: { commandId: string, action: string, delivery: { admittedAt: string, outcome: Outcome | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null } | null };

export type SiteRowFragment = { siteId: string, owner: string | null, title: string | null, mode: string, clientId: string | null, hostConnected: boolean, eventNames: Array<string>, actions: Array<string>, registeredAt: string | null, capabilityProfile: { actionInvocation: boolean, sharing: boolean } };

export type ViewerQueryVariables = Exact<{ [key: string]: never; }>;


export type ViewerQuery = { viewer: { kind: ViewerKind, name: string | null, userId: string | null, scopes: Array<Scope>, expiresAt: string | null, nodeId: string, mode: Mode }, server: { traceUrl: string | null } };

export type ShellQueryVariables = Exact<{
  isAdmin: boolean;
}>;


export type ShellQuery = { delivery?: { nodes: { nodes: Array<{ nodeId: string, stale: boolean, draining: boolean, updatedAt: string, startedAt: string | null, links: number, connectionWaiters: number, unfinishedCommands: number }> } }, pendingRpcCount: { count: number }, longWaits: { count: number } };

export type SearchOfAdminQueryVariables = Exact<{
  text: string;
}>;


export type SearchOfAdminQuery = { users: { nodes: Array<{ userId: string }> }, actions: { items: Array<{ action: { name: string } }> } };

export type SearchOfUserQueryVariables = Exact<{ [key: string]: never; }>;


export type SearchOfUserQuery = { connections: { nodes: Array<{ actionNames: Array<string> }> } };

export type StreamsQueryVariables = Exact<{
  userId: string;
  prefix?: string | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type StreamsQuery = { streams: { nodes: Array<{ key: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type NewestStreamsQueryVariables = Exact<{ [key: string]: never; }>;


export type NewestStreamsQuery = { users: { nodes: Array<{ userId: string, streams: { nodes: Array<{ key: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type MessagesQueryVariables = Exact<{
  stream: string;
  kinds?: Array<MessageKind> | MessageKind | null | undefined;
  afterTime?: string | null | undefined;
  beforeTime?: string | null | undefined;
  order: MessageOrder;
  first: number;
  after?: string | null | undefined;
}>;


export type MessagesQuery = { messages: { nodes: Array<{ commandId: string | null, id: string, kind: MessageKind, at: string, clientId: string | null, instanceId: string | null, payloadBytes: number, payloadState: PayloadState, error: { message: string } | null, link: { epoch: number, nodeId: string, cause: DisconnectCause | null, openMs: number | null, previousInstanceId: string | null } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type RevealMessageQueryVariables = Exact<{
  id: string;
}>;


export type RevealMessageQuery = { node:
    | { payloadState: PayloadState, payload: unknown }
    | Record<PropertyKey, never>
   | null };

export type RevealResultQueryVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
}>;


export type RevealResultQuery = { command: { result: unknown } | null };

export type RevealPayloadMutationVariables = Exact<{
  input: RevealPayloadInput;
}>;


export type RevealPayloadMutation = { revealPayload:
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
    | { __typename: 'RevealedPayload', value: unknown }
   };

export type NodesQueryVariables = Exact<{ [key: string]: never; }>;


export type NodesQuery = { server: { durability: { kind: DurabilityKind, sync: string | null, bytes: number | null, full: boolean, snapshotAt: string | null, away: { since: string, clean: boolean, lost: boolean } | null } | null }, delivery: { nodes: { nodes: Array<{ version: string | null, policyDigest: string | null, policyFault: string | null, memoryBytes: number | null, eventLoopDelayMs: number | null, mailboxListenerAlive: boolean, reconciliationAlive: boolean, nodeId: string, stale: boolean, draining: boolean, updatedAt: string, startedAt: string | null, links: number, connectionWaiters: number, unfinishedCommands: number, counters: Array<{ name: string, value: number }> }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } } };

export type DrainNodeMutationVariables = Exact<{
  nodeId: string;
  withinMs: number;
  reason?: string | null | undefined;
}>;


export type DrainNodeMutation = { drainNode:
    | { __typename: 'DispatcherNode' }
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
   };

export type CapacityQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type CapacityQuery = { delivery: { summary: { trackedCommands: number, dueCommands: number, sampleSize: number, sampledOldestQueuedAgeMs: number | null }, tenants: { nodes: Array<{ scopeId: string, reservedCommands: number, limit: number | null, oldestDeadline: string | null, holders: Array<{ userId: string, clientId: string, commandId: string }> }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } } };

export type DedupQueryVariables = Exact<{
  windowSeconds: number;
}>;


export type DedupQuery = { dedup: { backend: { implementation: string, namespace: string | null, ttlSeconds: number }, stats: { seen: number, unique: number, duplicates: number, exact: boolean, grainSeconds: number, liveKeys: number | null } } };

export type OverviewQueryVariables = Exact<{ [key: string]: never; }>;


export type OverviewQuery = { delivery: { summary: { sampleSize: number, sampledOldestQueuedAgeMs: number | null }, nodes: { nodes: Array<{ version: string | null, nodeId: string, stale: boolean, draining: boolean, updatedAt: string, startedAt: string | null, links: number, connectionWaiters: number, unfinishedCommands: number }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, tenants: { nodes: Array<{ scopeId: string, reservedCommands: number, limit: number | null }> } }, pendingRpcs: { nodes: Array<{ rpcId: string, userId: string, clientId: string, commandId: string, action: string, stage: Stage, waitFor: WaitStage, createdAt: string, timesOutAt: string, connectDeadline: string, nodeId: string | null, callerNodeId: string, caller: { kind: CommandCallerKind, name: string, program: string | null }, instanceMismatch: { observedAt: string } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } }, topClients: { items: Array<{ userId: string, clientId: string, queued: number, inFlight: number, pendingRpcCount: number, reconnectsLastHour: number, connection: { clientType: ClientType, status: ConnectionStatus, nodeId: string, lastSeenAt: string, disconnectCause: DisconnectCause | null } | null }> }, pendingRpcCount: { count: number }, longWaits: { count: number } };

export type OverviewSeriesQueryVariables = Exact<{
  names: Array<string> | string;
  windowSeconds: number;
  stepSeconds?: number | null | undefined;
}>;


export type OverviewSeriesQuery = { series: { items: Array<{ name: string, label: string | null, from: string, stepSeconds: number, points: Array<number | null> }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, whole: { items: Array<{ name: string, label: string | null, points: Array<number | null> }> } };

export type PausesQueryVariables = Exact<{
  first: number;
}>;


export type PausesQuery = { pauses: { nodes: Array<{ pauseId: string, userId: string | null, clientId: string | null, callerKind: CommandCallerKind | null, caller: string | null, action: string | null, label: string | null, reason: string, since: string, until: string | null, by: { kind: PauseAuthorKind, name: string } }>, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type PauseReachQueryVariables = Exact<{
  cover: PauseCoverInput;
}>;


export type PauseReachQuery = { pauseReach: { clients: number, queued: number, running: number } };

export type PauseCallsMutationVariables = Exact<{
  input: PauseCallsInput;
}>;


export type PauseCallsMutation = { pauseCalls:
    | { __typename: 'PauseReceipt', cancelled: number, asked: number, partial: boolean, silent: Array<string> }
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
   };

export type ResumeCallsMutationVariables = Exact<{
  pauseId: string;
}>;


export type ResumeCallsMutation = { resumeCalls:
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
    | { __typename: 'ResumeReceipt', partial: boolean, silent: Array<string> }
   };

export type PauseRowFragment = { pauseId: string, userId: string | null, clientId: string | null, callerKind: CommandCallerKind | null, caller: string | null, action: string | null, label: string | null, reason: string, since: string, until: string | null, by: { kind: PauseAuthorKind, name: string } };

export type SitesQueryVariables = Exact<{
  userId?: string | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type SitesQuery = { sites: { nodes: Array<{ siteId: string, owner: string | null, title: string | null, mode: string, clientId: string | null, hostConnected: boolean, eventNames: Array<string>, actions: Array<string>, registeredAt: string | null, sessions: { nodes: Array<{ state: SessionState }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } } | null, capabilityProfile: { actionInvocation: boolean, sharing: boolean } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type SitePageQueryVariables = Exact<{
  owner: string;
  siteId: string;
}>;


export type SitePageQuery = { site: { siteId: string, owner: string | null, title: string | null, mode: string, clientId: string | null, hostConnected: boolean, eventNames: Array<string>, actions: Array<string>, registeredAt: string | null, sessions: { nodes: Array<{ sessionId: string, state: SessionState, openedAt: string, expiresAt: string, subscribers: number | null, grants: Array<{ grantId: string, actions: Array<string> | null, events: Array<string> | null, share: boolean, expiresAt: string, revokedAt: string | null, parentId: string | null }> | null }> } | null, capabilityProfile: { actionInvocation: boolean, sharing: boolean } } | null };

export type CloseSessionMutationVariables = Exact<{
  sessionId: string;
}>;


export type CloseSessionMutation = { closeSiteSession:
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
    | { __typename: 'SiteSession' }
   };

export type RevokeGrantMutationVariables = Exact<{
  sessionId: string;
  grantId: string;
}>;


export type RevokeGrantMutation = { revokeGrant:
    | { __typename: 'Refusal', by: RefusedBy, code: RefusalCode, message: string }
    | { __typename: 'RevokedGrants' }
   };

export type UsersQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type UsersQuery = { users: { nodes: Array<{ userId: string, connectionCount: number, streamCount: number, pendingRpcCount: number }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type UserTimeLineQueryVariables = Exact<{
  userId: string;
  to?: DeliveryFilter | null | undefined;
  by?: DeliveryFilter | null | undefined;
  acts?: AuditFilter | null | undefined;
  first: number;
}>;


export type UserTimeLineQuery = { to: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, by: { nodes: Array<{ userId: string, clientId: string, commandId: string, action: string, stage: Stage, outcome: Outcome | null, reason: string | null, execution: ExecutionEvidence, admittedAt: string, terminalAt: string | null, durationMs: number | null, code: string | null, message: string | null, queuedAt: string | null, connectDeadline: string, deadline: string, nodeId: string | null, scopeId: string, lateResults: number, lastProvenStage: Stage, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, acts: { nodes: Array<{ id: string, at: string, who: string, action: OperatorAction, reason: string | null, outcome: string | null, node: string, requestId: string | null, subject: { userId: string | null, clientId: string | null, commandId: string | null, messageId: string | null, nodeId: string | null, stream: string | null } }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } }, streams: { nodes: Array<{ key: string, suffix: string, messageCount: number | null, firstAt: string | null, lastAt: string | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean }, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> } } };

export type UserPageQueryVariables = Exact<{
  userId: string;
}>;


export type UserPageQuery = { user: { userId: string, connectionCount: number, streamCount: number, pendingRpcCount: number, completeness: { complete: boolean, sources: Array<{ nodeId: string | null, observed: number, limit: number | null, complete: boolean, reason: IncompleteReason | null }> }, connections: { nodes: Array<{ userId: string, clientId: string, clientType: ClientType, instanceId: string, nodeId: string, status: ConnectionStatus, heartbeat: HeartbeatIndicator, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, disconnectCause: DisconnectCause | null, inFlight: number, queued: number, actionNames: Array<string> }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } }, pendingRpcs: { nodes: Array<{ rpcId: string, userId: string, clientId: string, commandId: string, action: string, stage: Stage, waitFor: WaitStage, createdAt: string, timesOutAt: string, connectDeadline: string, nodeId: string | null, callerNodeId: string, caller: { kind: CommandCallerKind, name: string, program: string | null }, instanceMismatch: { observedAt: string } | null }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } }, browserWindows: { nodes: Array<{ userId: string, clientId: string, windowId: string, type: string, status: WindowStatus, ownership: Ownership, focused: boolean, incognito: boolean, tabCount: number, workerCount: number, idleCount: number, busyCount: number, capacity: number | null, draining: boolean, reportedAt: string }>, pageInfo: { endCursor: string | null, hasNextPage: boolean } }, workers: { idle: Array<{ userId: string, clientId: string, contextId: string, windowId: string | null, status: ContextStatus, ownership: Ownership, taskId: string | null, taskAssignedAt: string | null, title: string | null, reportedAt: string, command: { commandId: string, action: string, delivery: { admittedAt: string, outcome: Outcome | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null } | null }>, assigned: Array<{ userId: string, clientId: string, contextId: string, windowId: string | null, status: ContextStatus, ownership: Ownership, taskId: string | null, taskAssignedAt: string | null, title: string | null, reportedAt: string, command: { commandId: string, action: string, delivery: { admittedAt: string, outcome: Outcome | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null } | null }> }, sites: { nodes: Array<{ siteId: string, title: string | null, hostConnected: boolean }> } } | null };

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
export const AuditRowFragmentDoc = new TypedDocumentString(`
    fragment AuditRow on AuditEvent {
  id
  at
  who
  action
  reason
  outcome
  node
  requestId
  subject {
    userId
    clientId
    commandId
    messageId
    nodeId
    stream
  }
}
    `, {"fragmentName":"AuditRow"}) as unknown as TypedDocumentString<AuditRowFragment, unknown>;
export const PageInfoPartFragmentDoc = new TypedDocumentString(`
    fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
    `, {"fragmentName":"PageInfoPart"}) as unknown as TypedDocumentString<PageInfoPartFragment, unknown>;
export const CompletenessPartFragmentDoc = new TypedDocumentString(`
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
    `, {"fragmentName":"CompletenessPart"}) as unknown as TypedDocumentString<CompletenessPartFragment, unknown>;
export const ActsPartFragmentDoc = new TypedDocumentString(`
    fragment ActsPart on AuditEventConnection {
  nodes {
    ...AuditRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
    fragment AuditRow on AuditEvent {
  id
  at
  who
  action
  reason
  outcome
  node
  requestId
  subject {
    userId
    clientId
    commandId
    messageId
    nodeId
    stream
  }
}
fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`, {"fragmentName":"ActsPart"}) as unknown as TypedDocumentString<ActsPartFragment, unknown>;
export const DeviceRowFragmentDoc = new TypedDocumentString(`
    fragment DeviceRow on Device {
  userId
  clientId
  name
  clientType
  actions
  enrolledAt
  enrolledBy
  usedAt
  revoked
  connection {
    status
    nodeId
  }
}
    `, {"fragmentName":"DeviceRow"}) as unknown as TypedDocumentString<DeviceRowFragment, unknown>;
export const RefusalPartFragmentDoc = new TypedDocumentString(`
    fragment RefusalPart on Refusal {
  by
  code
  message
}
    `, {"fragmentName":"RefusalPart"}) as unknown as TypedDocumentString<RefusalPartFragment, unknown>;
export const CodeRefusalPartFragmentDoc = new TypedDocumentString(`
    fragment CodeRefusalPart on Refusal {
  ...RefusalPart
  retryAfterMs
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`, {"fragmentName":"CodeRefusalPart"}) as unknown as TypedDocumentString<CodeRefusalPartFragment, unknown>;
export const RevocationRowFragmentDoc = new TypedDocumentString(`
    fragment RevocationRow on Revocation {
  revocationId
  userId
  clientId
  tokenId
  issuedBefore
  reason
  who
  at
  expiresAt
}
    `, {"fragmentName":"RevocationRow"}) as unknown as TypedDocumentString<RevocationRowFragment, unknown>;
export const RevocationReceiptPartFragmentDoc = new TypedDocumentString(`
    fragment RevocationReceiptPart on RevocationReceipt {
  links
  sockets
  cancelled
  nodes
  silent
}
    `, {"fragmentName":"RevocationReceiptPart"}) as unknown as TypedDocumentString<RevocationReceiptPartFragment, unknown>;
export const CallerPartFragmentDoc = new TypedDocumentString(`
    fragment CallerPart on CommandCaller {
  kind
  name
  program
}
    `, {"fragmentName":"CallerPart"}) as unknown as TypedDocumentString<CallerPartFragment, unknown>;
export const CallRowFragmentDoc = new TypedDocumentString(`
    fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}
    fragment CallerPart on CommandCaller {
  kind
  name
  program
}`, {"fragmentName":"CallRow"}) as unknown as TypedDocumentString<CallRowFragment, unknown>;
export const CallsPartFragmentDoc = new TypedDocumentString(`
    fragment CallsPart on DeliveryRecordConnection {
  nodes {
    ...CallRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}`, {"fragmentName":"CallsPart"}) as unknown as TypedDocumentString<CallsPartFragment, unknown>;
export const WaitRowFragmentDoc = new TypedDocumentString(`
    fragment WaitRow on PendingRpc {
  rpcId
  userId
  clientId
  commandId
  action
  stage
  waitFor
  caller {
    ...CallerPart
  }
  createdAt
  timesOutAt
  connectDeadline
  nodeId
  callerNodeId
  instanceMismatch {
    observedAt
  }
}
    fragment CallerPart on CommandCaller {
  kind
  name
  program
}`, {"fragmentName":"WaitRow"}) as unknown as TypedDocumentString<WaitRowFragment, unknown>;
export const WaitsPartFragmentDoc = new TypedDocumentString(`
    fragment WaitsPart on PendingRpcConnection {
  nodes {
    ...WaitRow
  }
  pageInfo {
    ...PageInfoPart
  }
}
    fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment WaitRow on PendingRpc {
  rpcId
  userId
  clientId
  commandId
  action
  stage
  waitFor
  caller {
    ...CallerPart
  }
  createdAt
  timesOutAt
  connectDeadline
  nodeId
  callerNodeId
  instanceMismatch {
    observedAt
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}`, {"fragmentName":"WaitsPart"}) as unknown as TypedDocumentString<WaitsPartFragment, unknown>;
export const StreamRowFragmentDoc = new TypedDocumentString(`
    fragment StreamRow on Stream {
  key
  suffix
  messageCount
  firstAt
  lastAt
}
    `, {"fragmentName":"StreamRow"}) as unknown as TypedDocumentString<StreamRowFragment, unknown>;
export const StreamsPartFragmentDoc = new TypedDocumentString(`
    fragment StreamsPart on StreamConnection {
  nodes {
    ...StreamRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment StreamRow on Stream {
  key
  suffix
  messageCount
  firstAt
  lastAt
}`, {"fragmentName":"StreamsPart"}) as unknown as TypedDocumentString<StreamsPartFragment, unknown>;
export const WaitCountsFragmentDoc = new TypedDocumentString(`
    fragment WaitCounts on Query {
  pendingRpcCount {
    count
  }
  longWaits: pendingRpcCount(filter: { minAgeMs: 60000 }) {
    count
  }
}
    `, {"fragmentName":"WaitCounts"}) as unknown as TypedDocumentString<WaitCountsFragment, unknown>;
export const NodeRowFragmentDoc = new TypedDocumentString(`
    fragment NodeRow on DispatcherNode {
  nodeId
  stale
  draining
  updatedAt
  startedAt
  links
  connectionWaiters
  unfinishedCommands
}
    `, {"fragmentName":"NodeRow"}) as unknown as TypedDocumentString<NodeRowFragment, unknown>;
export const ClientRowFragmentDoc = new TypedDocumentString(`
    fragment ClientRow on ConnectionSnapshot {
  userId
  clientId
  clientType
  instanceId
  nodeId
  status
  heartbeat
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  inFlight
  queued
  actionNames
}
    `, {"fragmentName":"ClientRow"}) as unknown as TypedDocumentString<ClientRowFragment, unknown>;
export const RankedRowFragmentDoc = new TypedDocumentString(`
    fragment RankedRow on SampledClient {
  userId
  clientId
  queued
  inFlight
  pendingRpcCount
  reconnectsLastHour
  connection {
    clientType
    status
    nodeId
    lastSeenAt
    disconnectCause
  }
}
    `, {"fragmentName":"RankedRow"}) as unknown as TypedDocumentString<RankedRowFragment, unknown>;
export const InvocationPartFragmentDoc = new TypedDocumentString(`
    fragment InvocationPart on Invocation {
  outcome
  stage
  execution
  error {
    code
    message
  }
  result
}
    `, {"fragmentName":"InvocationPart"}) as unknown as TypedDocumentString<InvocationPartFragment, unknown>;
export const MessageRowFragmentDoc = new TypedDocumentString(`
    fragment MessageRow on Message {
  id
  at
  kind
  payloadBytes
  payloadState
  error {
    message
  }
}
    `, {"fragmentName":"MessageRow"}) as unknown as TypedDocumentString<MessageRowFragment, unknown>;
export const LinkRowFragmentDoc = new TypedDocumentString(`
    fragment LinkRow on Message {
  id
  kind
  at
  clientId
  instanceId
  error {
    message
  }
  link {
    epoch
    nodeId
    cause
    openMs
    previousInstanceId
  }
}
    `, {"fragmentName":"LinkRow"}) as unknown as TypedDocumentString<LinkRowFragment, unknown>;
export const WindowRowFragmentDoc = new TypedDocumentString(`
    fragment WindowRow on BrowserWindow {
  userId
  clientId
  windowId
  type
  status
  ownership
  focused
  incognito
  tabCount
  workerCount
  idleCount
  busyCount
  capacity
  draining
  reportedAt
}
    `, {"fragmentName":"WindowRow"}) as unknown as TypedDocumentString<WindowRowFragment, unknown>;
export const ContextRowFragmentDoc = new TypedDocumentString(`
    fragment ContextRow on ExecutionContext {
  userId
  clientId
  contextId
  windowId
  status
  ownership
  taskId
  taskAssignedAt
  title
  reportedAt
  command {
    commandId
    action
    delivery {
      admittedAt
      outcome
      caller {
        ...CallerPart
      }
    }
  }
}
    fragment CallerPart on CommandCaller {
  kind
  name
  program
}`, {"fragmentName":"ContextRow"}) as unknown as TypedDocumentString<ContextRowFragment, unknown>;
export const SiteRowFragmentDoc = new TypedDocumentString(`
    fragment SiteRow on Site {
  siteId
  owner
  title
  mode
  clientId
  hostConnected
  eventNames
  actions
  registeredAt
  capabilityProfile {
    actionInvocation
    sharing
  }
}
    `, {"fragmentName":"SiteRow"}) as unknown as TypedDocumentString<SiteRowFragment, unknown>;
export const PauseRowFragmentDoc = new TypedDocumentString(`
    fragment PauseRow on Pause {
  pauseId
  userId
  clientId
  callerKind
  caller
  action
  label
  reason
  by {
    kind
    name
  }
  since
  until
}
    `, {"fragmentName":"PauseRow"}) as unknown as TypedDocumentString<PauseRowFragment, unknown>;
export const ActionSampleDocument = new TypedDocumentString(`
    query ActionSample($name: String) {
  actions(name: $name) {
    complete
    items {
      userId
      clientId
      action {
        name
        summary
        version
      }
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}`) as unknown as TypedDocumentString<ActionSampleQuery, ActionSampleQueryVariables>;
export const ActionCallsDocument = new TypedDocumentString(`
    query ActionCalls($filter: DeliveryFilter) {
  delivery {
    latest: commands(filter: $filter, order: NEWEST, first: 10) {
      ...CallsPart
    }
    measured: commands(filter: $filter, order: NEWEST, first: 1000) {
      nodes {
        outcome
        durationMs
      }
      pageInfo {
        ...PageInfoPart
      }
      completeness {
        ...CompletenessPart
      }
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment CallsPart on DeliveryRecordConnection {
  nodes {
    ...CallRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}`) as unknown as TypedDocumentString<ActionCallsQuery, ActionCallsQueryVariables>;
export const ActionPermissionsDocument = new TypedDocumentString(`
    query ActionPermissions($userId: ID!, $actions: [String!]!) {
  actionPermissions(userId: $userId, actions: $actions) {
    action
    callers {
      kind
      verdict
      message
    }
  }
}
    `) as unknown as TypedDocumentString<ActionPermissionsQuery, ActionPermissionsQueryVariables>;
export const AgentCallsDocument = new TypedDocumentString(`
    query AgentCalls {
  commands(filter: { callerKind: MCP }, order: NEWEST, first: 500) {
    ...CallsPart
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment CallsPart on DeliveryRecordConnection {
  nodes {
    ...CallRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}`) as unknown as TypedDocumentString<AgentCallsQuery, AgentCallsQueryVariables>;
export const ActionDetailsDocument = new TypedDocumentString(`
    query ActionDetails($userId: ID!, $clientId: ID!) {
  connection(userId: $userId, clientId: $clientId) {
    actions {
      items {
        name
        version
        description
        schema
        checksArguments
        guards {
          approval
          lease
        }
        effects {
          readOnly
          destructive
          idempotent
          openWorld
        }
      }
    }
  }
}
    `) as unknown as TypedDocumentString<ActionDetailsQuery, ActionDetailsQueryVariables>;
export const ActionsOfUserDocument = new TypedDocumentString(`
    query ActionsOfUser($userId: ID!) {
  connections(userId: $userId, first: 20) {
    nodes {
      userId
      clientId
      actions {
        items {
          name
          summary
          version
        }
      }
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}`) as unknown as TypedDocumentString<ActionsOfUserQuery, ActionsOfUserQueryVariables>;
export const InvokeTargetDocument = new TypedDocumentString(`
    query InvokeTarget($userId: ID!, $clientId: ID!) {
  connection(userId: $userId, clientId: $clientId) {
    knowsPlaces
    contexts(first: 100) {
      nodes {
        contextId
        title
        status
      }
    }
    actions {
      items {
        name
        summary
        schema
      }
    }
  }
}
    `) as unknown as TypedDocumentString<InvokeTargetQuery, InvokeTargetQueryVariables>;
export const InvokeDocument = new TypedDocumentString(`
    mutation Invoke($input: InvokeActionInput!) {
  invokeAction(input: $input) {
    __typename
    ...InvocationPart
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}
fragment InvocationPart on Invocation {
  outcome
  stage
  execution
  error {
    code
    message
  }
  result
}`) as unknown as TypedDocumentString<InvokeMutation, InvokeMutationVariables>;
export const AwaitCallDocument = new TypedDocumentString(`
    mutation AwaitCall($userId: ID!, $clientId: ID!, $commandId: ID!, $withinMs: Int!) {
  awaitCommand(
    userId: $userId
    clientId: $clientId
    commandId: $commandId
    withinMs: $withinMs
  ) {
    __typename
    ...InvocationPart
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}
fragment InvocationPart on Invocation {
  outcome
  stage
  execution
  error {
    code
    message
  }
  result
}`) as unknown as TypedDocumentString<AwaitCallMutation, AwaitCallMutationVariables>;
export const CallStagesDocument = new TypedDocumentString(`
    query CallStages($userId: ID!, $clientId: ID!, $commandId: ID!) {
  command(userId: $userId, clientId: $clientId, commandId: $commandId) {
    delivery {
      admittedAt
      queuedAt
      dispatchedAt
      acknowledgedAt
      terminalAt
      outcome
    }
  }
}
    `) as unknown as TypedDocumentString<CallStagesQuery, CallStagesQueryVariables>;
export const PreflightDocument = new TypedDocumentString(`
    query Preflight($input: InvokeActionInput!) {
  preflightInvocation(input: $input) {
    wouldAdmit
    asOf
    firstRefusal {
      code
      message
    }
    layers {
      layer
      verdict
      message
      askedOf
    }
  }
}
    `) as unknown as TypedDocumentString<PreflightQuery, PreflightQueryVariables>;
export const AuditDocument = new TypedDocumentString(`
    query Audit($filter: AuditFilter, $first: Int!, $after: String) {
  auditEvents(filter: $filter, first: $first, after: $after) {
    ...ActsPart
  }
}
    fragment ActsPart on AuditEventConnection {
  nodes {
    ...AuditRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment AuditRow on AuditEvent {
  id
  at
  who
  action
  reason
  outcome
  node
  requestId
  subject {
    userId
    clientId
    commandId
    messageId
    nodeId
    stream
  }
}
fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<AuditQuery, AuditQueryVariables>;
export const AuditCheckDocument = new TypedDocumentString(`
    query AuditCheck {
  auditCheck {
    rows
    fault
    unchecked
    asOf
  }
}
    `) as unknown as TypedDocumentString<AuditCheckQuery, AuditCheckQueryVariables>;
export const CallsDocument = new TypedDocumentString(`
    query Calls($filter: DeliveryFilter, $first: Int!, $after: String) {
  commands(filter: $filter, order: NEWEST, first: $first, after: $after) {
    ...CallsPart
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment CallsPart on DeliveryRecordConnection {
  nodes {
    ...CallRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}`) as unknown as TypedDocumentString<CallsQuery, CallsQueryVariables>;
export const BulkCallsDocument = new TypedDocumentString(`
    query BulkCalls($filter: DeliveryFilter, $first: Int!, $after: String) {
  commands(filter: $filter, first: $first, after: $after) {
    nodes {
      userId
      clientId
      commandId
      action
    }
    pageInfo {
      ...PageInfoPart
    }
  }
}
    fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<BulkCallsQuery, BulkCallsQueryVariables>;
export const CallPageDocument = new TypedDocumentString(`
    query CallPage($userId: ID!, $clientId: ID!, $commandId: ID!) {
  command(userId: $userId, clientId: $clientId, commandId: $commandId) {
    userId
    clientId
    commandId
    action
    outcome
    resultExpired
    error {
      code
      message
    }
    delivery {
      ...CallRow
      dispatchedAt
      acknowledgedAt
      attempts
      contextId
      boundInstanceId
      cancelRequestedAt
      recoveredFromNodeId
    }
    waiters {
      ...WaitRow
    }
    sightings {
      messageId
      count
    }
    connection {
      ...ClientRow
    }
    history(first: 50) {
      nodes {
        ...MessageRow
        messageId
        stream
        traceId
      }
      pageInfo {
        ...PageInfoPart
      }
      completeness {
        ...CompletenessPart
      }
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment ClientRow on ConnectionSnapshot {
  userId
  clientId
  clientType
  instanceId
  nodeId
  status
  heartbeat
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  inFlight
  queued
  actionNames
}
fragment WaitRow on PendingRpc {
  rpcId
  userId
  clientId
  commandId
  action
  stage
  waitFor
  caller {
    ...CallerPart
  }
  createdAt
  timesOutAt
  connectDeadline
  nodeId
  callerNodeId
  instanceMismatch {
    observedAt
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}
fragment MessageRow on Message {
  id
  at
  kind
  payloadBytes
  payloadState
  error {
    message
  }
}`) as unknown as TypedDocumentString<CallPageQuery, CallPageQueryVariables>;
export const CallUpdatesDocument = new TypedDocumentString(`
    subscription CallUpdates($userId: ID!, $clientId: ID!, $commandId: ID!, $revealReason: String, $isRevealed: Boolean = false) {
  commandUpdates(
    userId: $userId
    clientId: $clientId
    commandId: $commandId
    revealReason: $revealReason
  ) {
    at
    stage
    outcome
    isProgress
    progressNumber
    progress @include(if: $isRevealed)
    missed
  }
}
    `) as unknown as TypedDocumentString<CallUpdatesSubscription, CallUpdatesSubscriptionVariables>;
export const CancelCallDocument = new TypedDocumentString(`
    mutation CancelCall($input: CancelCommandInput!) {
  cancelCommand(input: $input) {
    __typename
    ... on CancelReceipt {
      state
    }
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<CancelCallMutation, CancelCallMutationVariables>;
export const CallEventsDocument = new TypedDocumentString(`
    subscription CallEvents($filter: CommandEventFilter) {
  commandEvents(filter: $filter) {
    stage
    missed
    record {
      ...CallRow
    }
  }
}
    fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}`) as unknown as TypedDocumentString<CallEventsSubscription, CallEventsSubscriptionVariables>;
export const FindCommandsDocument = new TypedDocumentString(`
    query FindCommands($idOrTrace: ID!, $after: String) {
  findCommands(idOrTrace: $idOrTrace, first: 12, after: $after) {
    nodes {
      userId
      clientId
      commandId
      action
      stage
      outcome
    }
    pageInfo {
      ...PageInfoPart
    }
  }
}
    fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<FindCommandsQuery, FindCommandsQueryVariables>;
export const FailuresDocument = new TypedDocumentString(`
    query Failures($filter: DeliveryFilter, $by: [FailureKey!]!, $first: Int!) {
  delivery {
    failures(filter: $filter, by: $by, first: $first) {
      groups {
        action
        code
        userId
        clientId
        nodeId
        count
        share
        last {
          userId
          clientId
          commandId
          admittedAt
        }
      }
      groupCount
      count
      outcomes {
        outcome
        count
      }
      completeness {
        ...CompletenessPart
      }
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}`) as unknown as TypedDocumentString<FailuresQuery, FailuresQueryVariables>;
export const WaitsDocument = new TypedDocumentString(`
    query Waits($filter: PendingRpcFilter, $first: Int!, $after: String) {
  pendingRpcs(filter: $filter, first: $first, after: $after) {
    ...WaitsPart
    completeness {
      ...CompletenessPart
    }
  }
  pendingRpcCount(filter: $filter) {
    count
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment WaitsPart on PendingRpcConnection {
  nodes {
    ...WaitRow
  }
  pageInfo {
    ...PageInfoPart
  }
}
fragment WaitRow on PendingRpc {
  rpcId
  userId
  clientId
  commandId
  action
  stage
  waitFor
  caller {
    ...CallerPart
  }
  createdAt
  timesOutAt
  connectDeadline
  nodeId
  callerNodeId
  instanceMismatch {
    observedAt
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}`) as unknown as TypedDocumentString<WaitsQuery, WaitsQueryVariables>;
export const ClientsDocument = new TypedDocumentString(`
    query Clients($userId: ID, $nodeId: ID, $status: ConnectionStatus, $clientType: ClientType, $action: String, $text: String, $labels: [String!], $onSilentNodes: Boolean, $first: Int!, $after: String) {
  connections(
    userId: $userId
    nodeId: $nodeId
    status: $status
    clientType: $clientType
    action: $action
    text: $text
    labels: $labels
    onSilentNodes: $onSilentNodes
    first: $first
    after: $after
  ) {
    nodes {
      ...ClientRow
      pendingRpcCount
      reconnectsLastHour
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment ClientRow on ConnectionSnapshot {
  userId
  clientId
  clientType
  instanceId
  nodeId
  status
  heartbeat
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  inFlight
  queued
  actionNames
}`) as unknown as TypedDocumentString<ClientsQuery, ClientsQueryVariables>;
export const ClientChangesDocument = new TypedDocumentString(`
    subscription ClientChanges($userId: ID) {
  connectionEvents(userId: $userId) {
    change
    missed
    connection {
      ...ClientRow
    }
  }
}
    fragment ClientRow on ConnectionSnapshot {
  userId
  clientId
  clientType
  instanceId
  nodeId
  status
  heartbeat
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  inFlight
  queued
  actionNames
}`) as unknown as TypedDocumentString<ClientChangesSubscription, ClientChangesSubscriptionVariables>;
export const ClientPageDocument = new TypedDocumentString(`
    query ClientPage($userId: ID!, $clientId: ID!) {
  connection(userId: $userId, clientId: $clientId) {
    ...ClientRow
    metadata
    reconnectsLastHour
    predecessors {
      instanceId
      replacedAt
      cause
    }
    actions {
      items {
        name
        summary
        version
      }
      completeness {
        ...CompletenessPart
      }
    }
    pendingRpcs(first: 20) {
      ...WaitsPart
    }
    contexts(first: 20) {
      nodes {
        ...ContextRow
      }
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment WaitsPart on PendingRpcConnection {
  nodes {
    ...WaitRow
  }
  pageInfo {
    ...PageInfoPart
  }
}
fragment ClientRow on ConnectionSnapshot {
  userId
  clientId
  clientType
  instanceId
  nodeId
  status
  heartbeat
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  inFlight
  queued
  actionNames
}
fragment WaitRow on PendingRpc {
  rpcId
  userId
  clientId
  commandId
  action
  stage
  waitFor
  caller {
    ...CallerPart
  }
  createdAt
  timesOutAt
  connectDeadline
  nodeId
  callerNodeId
  instanceMismatch {
    observedAt
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment ContextRow on ExecutionContext {
  userId
  clientId
  contextId
  windowId
  status
  ownership
  taskId
  taskAssignedAt
  title
  reportedAt
  command {
    commandId
    action
    delivery {
      admittedAt
      outcome
      caller {
        ...CallerPart
      }
    }
  }
}`) as unknown as TypedDocumentString<ClientPageQuery, ClientPageQueryVariables>;
export const TopClientsDocument = new TypedDocumentString(`
    query TopClients($by: ClientMeasure!) {
  topClients(by: $by, first: 100) {
    items {
      ...RankedRow
    }
    complete
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment RankedRow on SampledClient {
  userId
  clientId
  queued
  inFlight
  pendingRpcCount
  reconnectsLastHour
  connection {
    clientType
    status
    nodeId
    lastSeenAt
    disconnectCause
  }
}`) as unknown as TypedDocumentString<TopClientsQuery, TopClientsQueryVariables>;
export const BacklogCountDocument = new TypedDocumentString(`
    query BacklogCount {
  topClients(by: BACKLOG, first: 100) {
    items {
      clientId
    }
  }
}
    `) as unknown as TypedDocumentString<BacklogCountQuery, BacklogCountQueryVariables>;
export const DisconnectClientDocument = new TypedDocumentString(`
    mutation DisconnectClient($userId: ID!, $clientId: ID!, $reason: String) {
  disconnectClient(userId: $userId, clientId: $clientId, reason: $reason) {
    __typename
    ... on DisconnectReceipt {
      state
    }
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<DisconnectClientMutation, DisconnectClientMutationVariables>;
export const ClientNamesDocument = new TypedDocumentString(`
    query ClientNames($userId: ID, $nodeId: ID, $text: String, $first: Int!, $after: String) {
  connections(
    userId: $userId
    nodeId: $nodeId
    text: $text
    first: $first
    after: $after
  ) {
    nodes {
      userId
      clientId
      status
    }
    pageInfo {
      ...PageInfoPart
    }
  }
}
    fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<ClientNamesQuery, ClientNamesQueryVariables>;
export const ContextsDocument = new TypedDocumentString(`
    query Contexts($filter: ContextFilter, $first: Int!, $after: String) {
  contexts(filter: $filter, first: $first, after: $after) {
    nodes {
      ...ContextRow
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
  contextCount(filter: $filter) {
    count
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment ContextRow on ExecutionContext {
  userId
  clientId
  contextId
  windowId
  status
  ownership
  taskId
  taskAssignedAt
  title
  reportedAt
  command {
    commandId
    action
    delivery {
      admittedAt
      outcome
      caller {
        ...CallerPart
      }
    }
  }
}`) as unknown as TypedDocumentString<ContextsQuery, ContextsQueryVariables>;
export const PlacePageDocument = new TypedDocumentString(`
    query PlacePage($userId: ID!, $clientId: ID!, $contextId: ID!, $calls: DeliveryFilter) {
  context(userId: $userId, clientId: $clientId, contextId: $contextId) {
    ...ContextRow
    metadata
  }
  commands(filter: $calls, order: NEWEST, first: 20) {
    ...CallsPart
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment CallsPart on DeliveryRecordConnection {
  nodes {
    ...CallRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}
fragment ContextRow on ExecutionContext {
  userId
  clientId
  contextId
  windowId
  status
  ownership
  taskId
  taskAssignedAt
  title
  reportedAt
  command {
    commandId
    action
    delivery {
      admittedAt
      outcome
      caller {
        ...CallerPart
      }
    }
  }
}`) as unknown as TypedDocumentString<PlacePageQuery, PlacePageQueryVariables>;
export const WindowsDocument = new TypedDocumentString(`
    query Windows($filter: BrowserWindowFilter, $first: Int!, $after: String) {
  browserWindows(filter: $filter, first: $first, after: $after) {
    nodes {
      ...WindowRow
    }
    completeness {
      ...CompletenessPart
    }
  }
  browserWindowCount(filter: $filter) {
    count
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment WindowRow on BrowserWindow {
  userId
  clientId
  windowId
  type
  status
  ownership
  focused
  incognito
  tabCount
  workerCount
  idleCount
  busyCount
  capacity
  draining
  reportedAt
}`) as unknown as TypedDocumentString<WindowsQuery, WindowsQueryVariables>;
export const DevicesDocument = new TypedDocumentString(`
    query Devices($userId: ID, $first: Int!, $after: String) {
  devices(userId: $userId, first: $first, after: $after) {
    nodes {
      ...DeviceRow
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment DeviceRow on Device {
  userId
  clientId
  name
  clientType
  actions
  enrolledAt
  enrolledBy
  usedAt
  revoked
  connection {
    status
    nodeId
  }
}
fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<DevicesQuery, DevicesQueryVariables>;
export const LookUpEnrolmentDocument = new TypedDocumentString(`
    mutation LookUpEnrolment($userCode: String!) {
  lookUpEnrolment(userCode: $userCode) {
    __typename
    ... on OpenEnrolment {
      name
      clientType
      actions
      network
      at
      expiresAt
    }
    ...CodeRefusalPart
  }
}
    fragment CodeRefusalPart on Refusal {
  ...RefusalPart
  retryAfterMs
}
fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<LookUpEnrolmentMutation, LookUpEnrolmentMutationVariables>;
export const DecideEnrolmentDocument = new TypedDocumentString(`
    mutation DecideEnrolment($input: DecideEnrolmentInput!) {
  decideEnrolment(input: $input) {
    __typename
    ... on EnrolmentDecision {
      device {
        userId
        clientId
        name
      }
    }
    ...CodeRefusalPart
  }
}
    fragment CodeRefusalPart on Refusal {
  ...RefusalPart
  retryAfterMs
}
fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<DecideEnrolmentMutation, DecideEnrolmentMutationVariables>;
export const RenameDeviceDocument = new TypedDocumentString(`
    mutation RenameDevice($userId: ID!, $clientId: ID!, $deviceName: String!) {
  renameDevice(userId: $userId, clientId: $clientId, deviceName: $deviceName) {
    __typename
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<RenameDeviceMutation, RenameDeviceMutationVariables>;
export const RemoveDeviceDocument = new TypedDocumentString(`
    mutation RemoveDevice($userId: ID!, $clientId: ID!, $reason: String) {
  removeDevice(userId: $userId, clientId: $clientId, reason: $reason) {
    __typename
    ...RevocationReceiptPart
    ...RefusalPart
  }
}
    fragment RevocationReceiptPart on RevocationReceipt {
  links
  sockets
  cancelled
  nodes
  silent
}
fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<RemoveDeviceMutation, RemoveDeviceMutationVariables>;
export const RevocationsDocument = new TypedDocumentString(`
    query Revocations($first: Int!, $after: String) {
  revocations(first: $first, after: $after) {
    nodes {
      ...RevocationRow
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment RevocationRow on Revocation {
  revocationId
  userId
  clientId
  tokenId
  issuedBefore
  reason
  who
  at
  expiresAt
}
fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<RevocationsQuery, RevocationsQueryVariables>;
export const RevokeTokensDocument = new TypedDocumentString(`
    mutation RevokeTokens($input: RevokeInput!) {
  revoke(input: $input) {
    __typename
    ...RevocationReceiptPart
    ...RefusalPart
  }
}
    fragment RevocationReceiptPart on RevocationReceipt {
  links
  sockets
  cancelled
  nodes
  silent
}
fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<RevokeTokensMutation, RevokeTokensMutationVariables>;
export const ViewerDocument = new TypedDocumentString(`
    query Viewer {
  viewer {
    kind
    name
    userId
    scopes
    expiresAt
    nodeId
    mode
  }
  server {
    traceUrl
  }
}
    `) as unknown as TypedDocumentString<ViewerQuery, ViewerQueryVariables>;
export const ShellDocument = new TypedDocumentString(`
    query Shell($isAdmin: Boolean!) {
  ...WaitCounts
  delivery @include(if: $isAdmin) {
    nodes(first: 100) {
      nodes {
        ...NodeRow
      }
    }
  }
}
    fragment WaitCounts on Query {
  pendingRpcCount {
    count
  }
  longWaits: pendingRpcCount(filter: { minAgeMs: 60000 }) {
    count
  }
}
fragment NodeRow on DispatcherNode {
  nodeId
  stale
  draining
  updatedAt
  startedAt
  links
  connectionWaiters
  unfinishedCommands
}`) as unknown as TypedDocumentString<ShellQuery, ShellQueryVariables>;
export const SearchOfAdminDocument = new TypedDocumentString(`
    query SearchOfAdmin($text: String!) {
  users(text: $text, first: 4) {
    nodes {
      userId
    }
  }
  actions(text: $text) {
    items {
      action {
        name
      }
    }
  }
}
    `) as unknown as TypedDocumentString<SearchOfAdminQuery, SearchOfAdminQueryVariables>;
export const SearchOfUserDocument = new TypedDocumentString(`
    query SearchOfUser {
  connections(first: 50) {
    nodes {
      actionNames
    }
  }
}
    `) as unknown as TypedDocumentString<SearchOfUserQuery, SearchOfUserQueryVariables>;
export const StreamsDocument = new TypedDocumentString(`
    query Streams($userId: ID!, $prefix: String, $first: Int!, $after: String) {
  streams(userId: $userId, prefix: $prefix, first: $first, after: $after) {
    ...StreamsPart
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment StreamsPart on StreamConnection {
  nodes {
    ...StreamRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment StreamRow on Stream {
  key
  suffix
  messageCount
  firstAt
  lastAt
}`) as unknown as TypedDocumentString<StreamsQuery, StreamsQueryVariables>;
export const NewestStreamsDocument = new TypedDocumentString(`
    query NewestStreams {
  users(first: 50) {
    nodes {
      userId
      streams(first: 20) {
        ...StreamsPart
      }
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment StreamsPart on StreamConnection {
  nodes {
    ...StreamRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment StreamRow on Stream {
  key
  suffix
  messageCount
  firstAt
  lastAt
}`) as unknown as TypedDocumentString<NewestStreamsQuery, NewestStreamsQueryVariables>;
export const MessagesDocument = new TypedDocumentString(`
    query Messages($stream: String!, $kinds: [MessageKind!], $afterTime: DateTime, $beforeTime: DateTime, $order: MessageOrder!, $first: Int!, $after: String) {
  messages(
    stream: $stream
    kinds: $kinds
    afterTime: $afterTime
    beforeTime: $beforeTime
    order: $order
    first: $first
    after: $after
  ) {
    nodes {
      ...LinkRow
      ...MessageRow
      commandId
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment MessageRow on Message {
  id
  at
  kind
  payloadBytes
  payloadState
  error {
    message
  }
}
fragment LinkRow on Message {
  id
  kind
  at
  clientId
  instanceId
  error {
    message
  }
  link {
    epoch
    nodeId
    cause
    openMs
    previousInstanceId
  }
}`) as unknown as TypedDocumentString<MessagesQuery, MessagesQueryVariables>;
export const RevealMessageDocument = new TypedDocumentString(`
    query RevealMessage($id: ID!) {
  node(id: $id) {
    ... on Message {
      payloadState(include: true)
      payload(include: true)
    }
  }
}
    `) as unknown as TypedDocumentString<RevealMessageQuery, RevealMessageQueryVariables>;
export const RevealResultDocument = new TypedDocumentString(`
    query RevealResult($userId: ID!, $clientId: ID!, $commandId: ID!) {
  command(userId: $userId, clientId: $clientId, commandId: $commandId) {
    result(reveal: true)
  }
}
    `) as unknown as TypedDocumentString<RevealResultQuery, RevealResultQueryVariables>;
export const RevealPayloadDocument = new TypedDocumentString(`
    mutation RevealPayload($input: RevealPayloadInput!) {
  revealPayload(input: $input) {
    __typename
    ... on RevealedPayload {
      value
    }
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<RevealPayloadMutation, RevealPayloadMutationVariables>;
export const NodesDocument = new TypedDocumentString(`
    query Nodes {
  server {
    durability {
      kind
      sync
      bytes
      full
      snapshotAt
      away {
        since
        clean
        lost
      }
    }
  }
  delivery {
    nodes(first: 100) {
      nodes {
        ...NodeRow
        version
        policyDigest
        policyFault
        memoryBytes
        eventLoopDelayMs
        mailboxListenerAlive
        reconciliationAlive
        counters {
          name
          value
        }
      }
      completeness {
        ...CompletenessPart
      }
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment NodeRow on DispatcherNode {
  nodeId
  stale
  draining
  updatedAt
  startedAt
  links
  connectionWaiters
  unfinishedCommands
}`) as unknown as TypedDocumentString<NodesQuery, NodesQueryVariables>;
export const DrainNodeDocument = new TypedDocumentString(`
    mutation DrainNode($nodeId: ID!, $withinMs: Int!, $reason: String) {
  drainNode(nodeId: $nodeId, withinMs: $withinMs, reason: $reason) {
    __typename
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<DrainNodeMutation, DrainNodeMutationVariables>;
export const CapacityDocument = new TypedDocumentString(`
    query Capacity($first: Int!, $after: String) {
  delivery {
    summary {
      trackedCommands
      dueCommands
      sampleSize
      sampledOldestQueuedAgeMs
    }
    tenants(first: $first, after: $after) {
      nodes {
        scopeId
        reservedCommands
        limit
        oldestDeadline
        holders {
          userId
          clientId
          commandId
        }
      }
      pageInfo {
        ...PageInfoPart
      }
      completeness {
        ...CompletenessPart
      }
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<CapacityQuery, CapacityQueryVariables>;
export const DedupDocument = new TypedDocumentString(`
    query Dedup($windowSeconds: Int!) {
  dedup {
    backend {
      implementation
      namespace
      ttlSeconds
    }
    stats(windowSeconds: $windowSeconds) {
      seen
      unique
      duplicates
      exact
      grainSeconds
      liveKeys
    }
  }
}
    `) as unknown as TypedDocumentString<DedupQuery, DedupQueryVariables>;
export const OverviewDocument = new TypedDocumentString(`
    query Overview {
  delivery {
    summary {
      sampleSize
      sampledOldestQueuedAgeMs
    }
    nodes(first: 100) {
      nodes {
        ...NodeRow
        version
      }
      completeness {
        ...CompletenessPart
      }
    }
    tenants(first: 100) {
      nodes {
        scopeId
        reservedCommands
        limit
      }
    }
  }
  ...WaitCounts
  pendingRpcs(first: 5) {
    ...WaitsPart
  }
  topClients(by: RECONNECTS, first: 5) {
    items {
      ...RankedRow
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment WaitsPart on PendingRpcConnection {
  nodes {
    ...WaitRow
  }
  pageInfo {
    ...PageInfoPart
  }
}
fragment WaitCounts on Query {
  pendingRpcCount {
    count
  }
  longWaits: pendingRpcCount(filter: { minAgeMs: 60000 }) {
    count
  }
}
fragment NodeRow on DispatcherNode {
  nodeId
  stale
  draining
  updatedAt
  startedAt
  links
  connectionWaiters
  unfinishedCommands
}
fragment WaitRow on PendingRpc {
  rpcId
  userId
  clientId
  commandId
  action
  stage
  waitFor
  caller {
    ...CallerPart
  }
  createdAt
  timesOutAt
  connectDeadline
  nodeId
  callerNodeId
  instanceMismatch {
    observedAt
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment RankedRow on SampledClient {
  userId
  clientId
  queued
  inFlight
  pendingRpcCount
  reconnectsLastHour
  connection {
    clientType
    status
    nodeId
    lastSeenAt
    disconnectCause
  }
}`) as unknown as TypedDocumentString<OverviewQuery, OverviewQueryVariables>;
export const OverviewSeriesDocument = new TypedDocumentString(`
    query OverviewSeries($names: [String!]!, $windowSeconds: Int!, $stepSeconds: Int) {
  series(names: $names, windowSeconds: $windowSeconds, stepSeconds: $stepSeconds) {
    items {
      name
      label
      from
      stepSeconds
      points
    }
    completeness {
      ...CompletenessPart
    }
  }
  whole: series(
    names: ["command_p50", "command_p99"]
    windowSeconds: $windowSeconds
    stepSeconds: $windowSeconds
  ) {
    items {
      name
      label
      points
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}`) as unknown as TypedDocumentString<OverviewSeriesQuery, OverviewSeriesQueryVariables>;
export const PausesDocument = new TypedDocumentString(`
    query Pauses($first: Int!) {
  pauses(first: $first) {
    nodes {
      ...PauseRow
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PauseRow on Pause {
  pauseId
  userId
  clientId
  callerKind
  caller
  action
  label
  reason
  by {
    kind
    name
  }
  since
  until
}`) as unknown as TypedDocumentString<PausesQuery, PausesQueryVariables>;
export const PauseReachDocument = new TypedDocumentString(`
    query PauseReach($cover: PauseCoverInput!) {
  pauseReach(cover: $cover) {
    clients
    queued
    running
  }
}
    `) as unknown as TypedDocumentString<PauseReachQuery, PauseReachQueryVariables>;
export const PauseCallsDocument = new TypedDocumentString(`
    mutation PauseCalls($input: PauseCallsInput!) {
  pauseCalls(input: $input) {
    __typename
    ... on PauseReceipt {
      cancelled
      asked
      partial
      silent
    }
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<PauseCallsMutation, PauseCallsMutationVariables>;
export const ResumeCallsDocument = new TypedDocumentString(`
    mutation ResumeCalls($pauseId: ID!) {
  resumeCalls(pauseId: $pauseId) {
    __typename
    ... on ResumeReceipt {
      partial
      silent
    }
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<ResumeCallsMutation, ResumeCallsMutationVariables>;
export const SitesDocument = new TypedDocumentString(`
    query Sites($userId: ID, $first: Int!, $after: String) {
  sites(userId: $userId, first: $first, after: $after) {
    nodes {
      ...SiteRow
      sessions(first: 5) {
        nodes {
          state
        }
        pageInfo {
          ...PageInfoPart
        }
      }
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment SiteRow on Site {
  siteId
  owner
  title
  mode
  clientId
  hostConnected
  eventNames
  actions
  registeredAt
  capabilityProfile {
    actionInvocation
    sharing
  }
}`) as unknown as TypedDocumentString<SitesQuery, SitesQueryVariables>;
export const SitePageDocument = new TypedDocumentString(`
    query SitePage($owner: ID!, $siteId: ID!) {
  site(owner: $owner, siteId: $siteId) {
    ...SiteRow
    sessions(first: 20) {
      nodes {
        sessionId
        state
        openedAt
        expiresAt
        subscribers
        grants {
          grantId
          actions
          events
          share
          expiresAt
          revokedAt
          parentId
        }
      }
    }
  }
}
    fragment SiteRow on Site {
  siteId
  owner
  title
  mode
  clientId
  hostConnected
  eventNames
  actions
  registeredAt
  capabilityProfile {
    actionInvocation
    sharing
  }
}`) as unknown as TypedDocumentString<SitePageQuery, SitePageQueryVariables>;
export const CloseSessionDocument = new TypedDocumentString(`
    mutation CloseSession($sessionId: ID!) {
  closeSiteSession(sessionId: $sessionId) {
    __typename
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<CloseSessionMutation, CloseSessionMutationVariables>;
export const RevokeGrantDocument = new TypedDocumentString(`
    mutation RevokeGrant($sessionId: ID!, $grantId: ID!) {
  revokeGrant(sessionId: $sessionId, grantId: $grantId) {
    __typename
    ...RefusalPart
  }
}
    fragment RefusalPart on Refusal {
  by
  code
  message
}`) as unknown as TypedDocumentString<RevokeGrantMutation, RevokeGrantMutationVariables>;
export const UsersDocument = new TypedDocumentString(`
    query Users($first: Int!, $after: String) {
  users(first: $first, after: $after) {
    nodes {
      userId
      connectionCount
      streamCount
      pendingRpcCount
    }
    pageInfo {
      ...PageInfoPart
    }
    completeness {
      ...CompletenessPart
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}`) as unknown as TypedDocumentString<UsersQuery, UsersQueryVariables>;
export const UserTimeLineDocument = new TypedDocumentString(`
    query UserTimeLine($userId: ID!, $to: DeliveryFilter, $by: DeliveryFilter, $acts: AuditFilter, $first: Int!) {
  to: commands(filter: $to, order: NEWEST, first: $first) {
    ...CallsPart
  }
  by: commands(filter: $by, order: NEWEST, first: $first) {
    ...CallsPart
  }
  acts: auditEvents(filter: $acts, first: $first) {
    ...ActsPart
  }
  streams(userId: $userId, first: 100) {
    ...StreamsPart
  }
}
    fragment ActsPart on AuditEventConnection {
  nodes {
    ...AuditRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment AuditRow on AuditEvent {
  id
  at
  who
  action
  reason
  outcome
  node
  requestId
  subject {
    userId
    clientId
    commandId
    messageId
    nodeId
    stream
  }
}
fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment CallsPart on DeliveryRecordConnection {
  nodes {
    ...CallRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment StreamsPart on StreamConnection {
  nodes {
    ...StreamRow
  }
  pageInfo {
    ...PageInfoPart
  }
  completeness {
    ...CompletenessPart
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment CallRow on DeliveryRecord {
  userId
  clientId
  commandId
  action
  caller {
    ...CallerPart
  }
  stage
  outcome
  reason
  execution
  admittedAt
  terminalAt
  durationMs
  code
  message
  queuedAt
  connectDeadline
  deadline
  nodeId
  scopeId
  lateResults
  lastProvenStage
}
fragment StreamRow on Stream {
  key
  suffix
  messageCount
  firstAt
  lastAt
}`) as unknown as TypedDocumentString<UserTimeLineQuery, UserTimeLineQueryVariables>;
export const UserPageDocument = new TypedDocumentString(`
    query UserPage($userId: ID!) {
  user(userId: $userId) {
    userId
    connectionCount
    streamCount
    pendingRpcCount
    completeness {
      ...CompletenessPart
    }
    connections(first: 20) {
      nodes {
        ...ClientRow
      }
      pageInfo {
        ...PageInfoPart
      }
    }
    pendingRpcs(first: 10) {
      ...WaitsPart
    }
    browserWindows(first: 10) {
      nodes {
        ...WindowRow
      }
      pageInfo {
        ...PageInfoPart
      }
    }
    workers(first: 20) {
      idle {
        ...ContextRow
      }
      assigned {
        ...ContextRow
      }
    }
    sites(first: 10) {
      nodes {
        siteId
        title
        hostConnected
      }
    }
  }
}
    fragment CompletenessPart on Completeness {
  complete
  sources {
    nodeId
    observed
    limit
    complete
    reason
  }
}
fragment PageInfoPart on PageInfo {
  endCursor
  hasNextPage
}
fragment WaitsPart on PendingRpcConnection {
  nodes {
    ...WaitRow
  }
  pageInfo {
    ...PageInfoPart
  }
}
fragment ClientRow on ConnectionSnapshot {
  userId
  clientId
  clientType
  instanceId
  nodeId
  status
  heartbeat
  connectedAt
  lastSeenAt
  disconnectedAt
  disconnectCause
  inFlight
  queued
  actionNames
}
fragment WaitRow on PendingRpc {
  rpcId
  userId
  clientId
  commandId
  action
  stage
  waitFor
  caller {
    ...CallerPart
  }
  createdAt
  timesOutAt
  connectDeadline
  nodeId
  callerNodeId
  instanceMismatch {
    observedAt
  }
}
fragment CallerPart on CommandCaller {
  kind
  name
  program
}
fragment WindowRow on BrowserWindow {
  userId
  clientId
  windowId
  type
  status
  ownership
  focused
  incognito
  tabCount
  workerCount
  idleCount
  busyCount
  capacity
  draining
  reportedAt
}
fragment ContextRow on ExecutionContext {
  userId
  clientId
  contextId
  windowId
  status
  ownership
  taskId
  taskAssignedAt
  title
  reportedAt
  command {
    commandId
    action
    delivery {
      admittedAt
      outcome
      caller {
        ...CallerPart
      }
    }
  }
}`) as unknown as TypedDocumentString<UserPageQuery, UserPageQueryVariables>;