/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
/** What kind of program a client is. */
export type ClientType =
  /** A browser: an extension or a page. */
  | 'browser'
  /** A console program. */
  | 'console'
  /** A mobile app. */
  | 'mobile'
  /** A web app. */
  | 'web';

/** What kind of requester invoked a command, or waits for it. */
export type CommandCallerKind =
  /** An administrator. */
  | 'admin'
  /** A viewer of a site, through a grant of the session’s owner. */
  | 'grant'
  /** An agent, over MCP, in the name of a user. */
  | 'mcp'
  /** A user, for one of their own clients. */
  | 'user';

/** What happened to a command. */
export type CommandEventStage =
  /** The client confirmed that it received the command. */
  | 'acknowledged'
  /** The relay admitted the command. */
  | 'admitted'
  /** The node began to write the command to the client’s socket. */
  | 'dispatched'
  /** The command ended; `record.outcome` says how. */
  | 'ended'
  /** An end was reported after the command had ended, or by an instance that the command was not written to. */
  | 'late';

/** The order of commands. */
export type CommandOrder =
  /** By user, client and command. */
  | 'key'
  /** The latest admission first. Commands of one millisecond have a fixed order. */
  | 'newest';

/** What happened to a connection. */
export type ConnectionChange =
  /** The client changed the actions that it advertises. */
  | 'actions_changed'
  /** A client connected. */
  | 'connected'
  /** The link went down. */
  | 'disconnected'
  /** A new instance of the client replaced the previous one. */
  | 'replaced'
  /** The same instance of the client connected again. */
  | 'resumed'
  /** The client has been silent for 45 seconds. */
  | 'stale';

/** Whether a client is reachable. */
export type ConnectionStatus =
  /** Its link is up, and the client was heard from within the last 45 seconds. */
  | 'connected'
  /** Its link is down, or the client has been silent for 60 seconds. */
  | 'disconnected'
  /** Its link is up, but the client has been silent for 45 seconds. */
  | 'stale';

/** The status of an execution context. */
export type ContextStatus =
  /** Its client reports it as active. */
  | 'active'
  /** Its client reports it as closed. */
  | 'closed'
  /** Its client reports it as idle. */
  | 'idle'
  /** It was last reported as active or idle, but its client’s link is down or silent: nothing newer is known. */
  | 'stale';

/** The source of a window’s worker counts. */
export type CountsFrom =
  /** The relay counts the contexts that the client reports now. */
  | 'contexts'
  /** The counts that the client reported with the window. They are used when it reports no contexts. */
  | 'snapshot';

/** Why a link went down. */
export type DisconnectCause =
  /** The client did not read what the relay sent. */
  | 'back_pressure'
  /** The client closed it: it announced that it leaves, or it sent a close frame. */
  | 'client_closed'
  /** Its socket failed with another error. */
  | 'error'
  /** The client was silent for 60 seconds. */
  | 'heartbeat_lost'
  /** Its socket ended without a close frame. */
  | 'lost'
  /** Its node drained or shut down. */
  | 'node_drained'
  /** Its node stopped reporting and lost its lease. */
  | 'node_lost'
  /** An operator closed it. */
  | 'operator'
  /** The client sent too many invalid frames. */
  | 'protocol_error'
  /** A newer link of the same client replaced it. */
  | 'replaced'
  /** Its socket was reset by the client’s side. */
  | 'reset'
  /** The link’s token expired and was not renewed. */
  | 'token_expired';

/** The state of a requested disconnection. */
export type DisconnectState =
  /** The link is closed. */
  | 'closed'
  /** The link’s node was asked to close it and has not confirmed that yet. */
  | 'requested';

/** A source of an answer. */
export type EvidenceSource =
  /** The advertisements of connected clients. */
  | 'actions'
  /** The audit of what administrators did. */
  | 'audit'
  /** The registry of connections. */
  | 'connections'
  /** The reported execution contexts. */
  | 'contexts'
  /** The delivery records. */
  | 'delivery'
  /** The devices that are enrolled. */
  | 'devices'
  /** The retained messages. */
  | 'messages'
  /** What the nodes counted and measured. */
  | 'metrics'
  /** The callers that still wait. */
  | 'pending_rpcs'
  /** The tokens that are revoked. */
  | 'revocations'
  /** The registered sites. */
  | 'sites'
  /** The streams of retained messages. */
  | 'streams'
  /** The reported browser windows. */
  | 'windows';

/** What is proven about execution. It is never proof that an effect outside the client is complete. */
export type ExecutionEvidence =
  /** The command may have run. */
  | 'may_have_run'
  /** No socket write began. */
  | 'not_written'
  /** The client reported that it refused the command before running it. */
  | 'refused_by_client'
  /** The client reported how the command ended. */
  | 'reported_by_client';

/** What failures are grouped by. */
export type FailureKey =
  /** The action. */
  | 'action'
  /** The target client, with its user. */
  | 'client'
  /** The code of the error that they ended with. */
  | 'code'
  /** The node of the target’s link. */
  | 'node';

/** How a client answers pings; derived when it is read. */
export type HeartbeatIndicator =
  /** The client did not answer its last ping. */
  | 'late'
  /** The client’s status is not `connected`. */
  | 'missed'
  /** The last ping was answered in time. */
  | 'ok';

/** Why a source contributed less than it could have. */
export type IncompleteReason =
  /** The relay restarted, and clients that were connected before may still report again. */
  | 'awaiting_reports'
  /** Rows were dropped before their retention time was over, for lack of space. */
  | 'evicted'
  /** The answer’s bound was reached. */
  | 'limit_reached'
  /** A node has not reported for 5 seconds. The answer shows its links as it last reported them. */
  | 'node_silent'
  /** The backend cannot tell. */
  | 'not_supported'
  /** The store did not answer. */
  | 'store_unavailable';

/** What a retained message records. */
export type MessageKind =
  /** A cancellation was requested. */
  | 'cancel'
  /** A command was admitted. */
  | 'command'
  /** A command ended without a result. */
  | 'error'
  /** An event was ingested. */
  | 'event'
  /** An end was reported after the command had ended, or by another instance than the command’s own. It is evidence and resolves nothing. */
  | 'late_result'
  /** A client link ended, and no newer link of the client had taken over. Only in the stream `<user>/links`. */
  | 'link_closed'
  /** A client link opened. Only in the stream `<user>/links`. */
  | 'link_opened'
  /** A newer link of the same client took over from a link that was up. Only in the stream `<user>/links`. */
  | 'link_replaced'
  /** A client reported progress. At most one such row per second is kept for a command. */
  | 'progress'
  /** The relay had been away, and started on its data directory. Its message id names the time of the last record before. `error` says how the relay had ended; null: it was stopped in order. Only in the stream `<user>/links` of users whose clients were connected in the last minute before. */
  | 'relay_away'
  /** A client reported a result. */
  | 'result';

/** The order in which messages are listed. */
export type MessageOrder =
  /** Newest first. Messages that are retained after the first page was read appear on no later page. */
  | 'newest_first'
  /** Oldest first: the order in which messages were retained. */
  | 'oldest_first';

/** How this deployment keeps its state. */
export type Mode =
  /** One process keeps everything in memory. */
  | 'direct'
  /** Several processes share one store. */
  | 'shared';

/** What an administrator did, or a user who paused or resumed. */
export type OperatorAction =
  /** Cancelled a command that another caller had invoked. */
  | 'cancel'
  /** Closed a client’s link. */
  | 'disconnect'
  /** Drained a node. */
  | 'drain'
  /** Decided whether a device is enrolled. */
  | 'enrol'
  /** Paused calls. */
  | 'pause'
  /** Read payloads by an argument of a listing. */
  | 'payload'
  /** Gave a device another name. */
  | 'rename'
  /** Ended a pause. */
  | 'resume'
  /** Revealed one payload and gave the reason. */
  | 'reveal'
  /** Revoked tokens. */
  | 'revoke';

/** How a command ended. No outcome proves anything about effects outside the client. */
export type Outcome =
  /** The command was cancelled before dispatch, or the client reported that it stopped. */
  | 'cancelled'
  /** The client reported a result. */
  | 'completed'
  /** The command’s time ran out before dispatch: no socket write began. */
  | 'expired'
  /** The client reported an error or refused the command. */
  | 'failed'
  /** The command was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came. */
  | 'outcome_unknown';

/** Whether an execution context or window is for the user or for work. */
export type Ownership =
  /** The user’s own use. */
  | 'user-owned'
  /** Work: it was set up to run tasks. */
  | 'worker';

/** Who set a pause. */
export type PauseAuthorKind =
  /** An administrator. */
  | 'admin'
  /** The client itself: the person at it said stop. */
  | 'client'
  /** The user whose clients it covers. */
  | 'user';

/** What a pause does with commands that were not dispatched. */
export type PauseQueued =
  /** They are cancelled: nothing ran. */
  | 'cancel'
  /** They wait until the pause ends, and may expire: nothing ran. */
  | 'keep';

/** What a pause does with commands that run. */
export type PauseRunning =
  /** Their clients are asked to cancel them. */
  | 'cancel'
  /** They run on. */
  | 'leave';

/** What `payload` shows, or why it shows nothing. */
export type PayloadState =
  /** The payload was in the store for large payloads and has expired. */
  | 'expired'
  /** The payload is shown. */
  | 'included'
  /** There is no payload. */
  | 'none'
  /** There is a payload, but it was not requested, or the answer already holds 16 MiB of payloads from the store for large payloads: request fewer messages. */
  | 'redacted'
  /** The payload is shown; it was read from the store for large payloads. */
  | 'spilled_included'
  /** The payload belongs in the store for large payloads and cannot be read: it could not be stored, or it was lost or damaged. Only its size and digest are known. */
  | 'unavailable';

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
  | 'address'
  /** An argument is invalid. */
  | 'arguments'
  /** A limit on capacity, rate or storage is reached. */
  | 'capacity'
  /** The command id was used for a different request. */
  | 'conflict'
  /** A pause covers the call. */
  | 'pause'
  /** The client does not report the named context, or knows no places. */
  | 'place'
  /** The central policy denies the invocation. */
  | 'policy'
  /** This node does not do it now, or at all. */
  | 'relay'
  /** The rules of the site deny the request. */
  | 'site'
  /** The target client is not connected, has another instance than the requested one, or does not advertise the action. */
  | 'target'
  /** The token does not allow it. */
  | 'token';

/** What to reveal. */
export type RevealSubject =
  /** The params of a command. Needs `clientId` and `commandId`. */
  | 'command_params'
  /** The result of a command. Needs `clientId` and `commandId`. */
  | 'command_result'
  /** The payload of a retained message. Needs `messageId`. */
  | 'message';

/** What a user’s token allows. */
export type Scope =
  /** Connect clients of the user. */
  | 'connect'
  /** Host sites of the user and ingest events. */
  | 'host'
  /** Read the user’s own data and invoke actions of its clients. */
  | 'invoke'
  /** Call actions of the user’s clients as an agent, over MCP, and nothing else. */
  | 'mcp';

/** Whether a session can be used; derived when it is read. */
export type SessionState =
  /** The host is connected: events flow and actions can be invoked. */
  | 'active'
  /** The session was closed, or its site was removed. */
  | 'closed'
  /** The session’s time ran out. */
  | 'expired'
  /** The host is not connected: nothing can be invoked. Viewers stay subscribed. */
  | 'suspended';

/** How far a command has come. */
export type Stage =
  /** The client confirmed that it received the command. That does not prove that it ran. */
  | 'acknowledged'
  /** The command is on record and waits for its client to connect. */
  | 'admitted'
  /** The node began to write the command to the client’s socket. That proves neither receipt nor execution. */
  | 'dispatched'
  /** The command is queued for its client’s link. */
  | 'queued'
  /** The command ended; `outcome` says how. */
  | 'terminal';

/** The kind of requester. */
export type ViewerKind =
  /** An administrator. */
  | 'admin'
  /** A user. */
  | 'user';

/** What a call waits for. The end of a wait does not change the command. */
export type WaitStage =
  /** Until the client confirmed that it received the command. */
  | 'acknowledged'
  /** Until the command is on record. */
  | 'admitted'
  /** Until the command ended. */
  | 'completed';

/** The status of a browser window. */
export type WindowStatus =
  /** Its client reports it as closed. */
  | 'closed'
  /** Its client reports it as open. */
  | 'open'
  /** It was last reported as open, but its client’s link is down or silent: nothing newer is known. */
  | 'stale';

export type GetServerQueryVariables = Exact<{ [key: string]: never; }>;


export type GetServerQuery = { server: { version: string }, viewer: { kind: ViewerKind, scopes: Array<Scope>, user_id: string | null, expires_at: string | null } };

export type GetStatusQueryVariables = Exact<{
  series: Array<string> | string;
  window_seconds: number;
  step_seconds: number;
}>;


export type GetStatusQuery = { server: { version: string, label: string | null, mode: Mode, node_id: string }, delivery: { summary: { due_commands: number }, nodes: { items: Array<{ links: number, stale: boolean, draining: boolean, version: string | null, node_id: string, mailbox_listener_alive: boolean, reconciliation_alive: boolean, active_drainers: number, connection_waiters: number, unfinished_commands: number, updated_at: string, started_at: string | null, memory_bytes: number | null, event_loop_delay_ms: number | null, policy_digest: string | null, policy_fault: string | null, counters: Array<{ name: string, value: number }> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } }, tenants: { items: Array<{ limit: number | null, scope_id: string, reserved_commands: number }> } }, waits: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } }, oldest_wait: { items: Array<{ action: string, user_id: string, client_id: string, command_id: string, age_ms: number }> }, series: { items: Array<{ name: string, label: string | null, points: Array<number | null> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type GetBusyClientsQueryVariables = Exact<{ [key: string]: never; }>;


export type GetBusyClientsQuery = { connections: { items: Array<{ queued: number, user_id: string, client_id: string, client_type: ClientType, node_id: string, in_flight: number }> }, pendingRpcs: { items: Array<{ user_id: string, client_id: string, age_ms: number }> } };

export type GetClientQueryVariables = Exact<{
  user_id: string;
  client_id: string;
}>;


export type GetClientQuery = { connection: { queued: number, status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, in_flight: number, reconnects_last_hour: number, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, knows_places: boolean, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, close_code: number | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string>, predecessors: Array<{ cause: DisconnectCause, instance_id: string, node_id: string, replaced_at: string }> } | null };

export type ListFlappingClientsQueryVariables = Exact<{
  limit?: number;
}>;


export type ListFlappingClientsQuery = { flapping: { complete: boolean, items: Array<{ reconnects: number, user_id: string, client_id: string, connection: { status: ConnectionStatus, disconnect_cause: DisconnectCause | null, last_seen_at: string, node_id: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type WatchClientsSubscriptionVariables = Exact<{
  user_id?: string | null | undefined;
}>;


export type WatchClientsSubscription = { connectionEvents: { at: string, change: ConnectionChange, cause: DisconnectCause | null, missed: number, connection: { status: ConnectionStatus, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, disconnect_cause: DisconnectCause | null } } };

export type ListActionsQueryVariables = Exact<{
  name?: string | null | undefined;
}>;


export type ListActionsQuery = { actions: { complete: boolean, items: Array<{ user_id: string, client_id: string, instance_id: string, action: { name: string, summary: string | null, description: string | null, version: string | null, schema: unknown, metadata: unknown, checks_arguments: boolean | null, guards: { approval: boolean | null, lease: boolean | null } | null, effects: { destructive: boolean | null, idempotent: boolean | null, read_only: boolean | null, open_world: boolean | null } | null } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type GetCallQueryVariables = Exact<{
  user_id: string;
  client_id: string;
  command_id: string;
}>;


export type GetCallQuery = { command: { action: string, outcome: Outcome | null, user_id: string, client_id: string, command_id: string, error: { code: string, message: string } | null, delivery: { action: string, stage: Stage, outcome: Outcome | null, execution: ExecutionEvidence, attempts: number, deadline: string, code: string | null, message: string | null, reason: string | null, user_id: string, client_id: string, command_id: string, context_id: string | null, client_type: ClientType | null, scope_id: string, last_proven_stage: Stage, admitted_at: string, queued_at: string | null, dispatched_at: string | null, acknowledged_at: string | null, terminal_at: string | null, duration_ms: number | null, connect_deadline: string, node_id: string | null, bound_instance_id: string | null, recovered_from_node_id: string | null, cancel_requested_at: string | null, late_results: number, first_late_at: string | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } | null, waiters: Array<{ rpc_id: string, wait_for: WaitStage, age_ms: number, times_out_at: string, caller: { kind: CommandCallerKind, name: string } }>, sightings: Array<{ count: number, message_id: string, first_seen_at: string, last_seen_at: string }>, history: { next_cursor: string | null, items: Array<{ at: string, kind: MessageKind, stream: string, message_id: string, payload_bytes: number, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } } | null };

export type TailCallsSubscriptionVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  action?: string | null | undefined;
  client_type?: ClientType | null | undefined;
  outcomes?: Array<Outcome> | Outcome | null | undefined;
}>;


export type TailCallsSubscription = { commandEvents: { at: string, missed: number, event: CommandEventStage, record: { action: string, stage: Stage, outcome: Outcome | null, execution: ExecutionEvidence, attempts: number, deadline: string, code: string | null, message: string | null, reason: string | null, user_id: string, client_id: string, command_id: string, context_id: string | null, client_type: ClientType | null, scope_id: string, last_proven_stage: Stage, admitted_at: string, queued_at: string | null, dispatched_at: string | null, acknowledged_at: string | null, terminal_at: string | null, duration_ms: number | null, connect_deadline: string, node_id: string | null, bound_instance_id: string | null, recovered_from_node_id: string | null, cancel_requested_at: string | null, late_results: number, first_late_at: string | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } } };

export type RevealPayloadMutationVariables = Exact<{
  user_id: string;
  client_id?: string | null | undefined;
  command_id?: string | null | undefined;
  message_id?: string | null | undefined;
  subject: RevealSubject;
  reason: string;
}>;


export type RevealPayloadMutation = { revealPayload:
    | { by: RefusedBy, code: RefusalCode, message: string, share: string | null, retry_after_ms: number | null, pause: { reason: string, since: string, until: string | null, pause_id: string, by: { kind: PauseAuthorKind, name: string } } | null, errors: Array<{ parameter: string, detail: string }> }
    | { value: unknown, digest: string, expires_at: string }
   };

export type WatchWaitsSubscriptionVariables = Exact<{
  older_than_ms: number;
  user_id?: string | null | undefined;
}>;


export type WatchWaitsSubscription = { pendingRpcAlerts: { at: string, over: boolean, count: number, missed: number, oldest_age_ms: number, oldest: { action: string, stage: Stage, user_id: string, client_id: string, command_id: string, age_ms: number, caller: { kind: CommandCallerKind, name: string } } | null } };

export type FollowMessagesQueryVariables = Exact<{
  stream: string;
  kinds?: Array<MessageKind> | MessageKind | null | undefined;
  after_time?: string | null | undefined;
  order: MessageOrder;
  cursor?: string | null | undefined;
  limit: number;
  include_payload?: boolean;
}>;


export type FollowMessagesQuery = { messages: { items: Array<{ stream: string, kind: MessageKind, at: string, program: string | null, payload: unknown, message_id: string, client_id: string | null, instance_id: string | null, command_id: string | null, context_id: string | null, trace_id: string | null, parent_span_id: string | null, payload_state: PayloadState, payload_bytes: number, payload_sha256: string | null, error: { code: string, message: string } | null, link: { epoch: number, cause: DisconnectCause | null, client_type: ClientType, node_id: string, close_code: number | null, open_ms: number | null, previous_instance_id: string | null } | null }>, page_info: { end_cursor: string | null } } };

export type ListAuditQueryVariables = Exact<{
  user_id?: string | null | undefined;
  who?: string | null | undefined;
  action?: OperatorAction | null | undefined;
  after_time?: string | null | undefined;
  before_time?: string | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListAuditQuery = { auditEvents: { next_cursor: string | null, items: Array<{ id: string, at: string, who: string, action: OperatorAction, outcome: string | null, reason: string | null, node_id: string, request_id: string | null, subject: { stream: string | null, view: string | null, user_id: string | null, client_id: string | null, instance_id: string | null, command_id: string | null, message_id: string | null, node_id: string | null, token_id: string | null } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type ConnectionActionsQueryVariables = Exact<{
  user_id: string;
  client_id: string;
}>;


export type ConnectionActionsQuery = { connection: { actions: { items: Array<{ name: string, summary: string | null, description: string | null, version: string | null, schema: unknown, metadata: unknown, checks_arguments: boolean | null, guards: { approval: boolean | null, lease: boolean | null } | null, effects: { destructive: boolean | null, idempotent: boolean | null, read_only: boolean | null, open_world: boolean | null } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } } | null };

export type AdvertisementFragment = { name: string, summary: string | null, description: string | null, version: string | null, schema: unknown, metadata: unknown, checks_arguments: boolean | null, guards: { approval: boolean | null, lease: boolean | null } | null, effects: { destructive: boolean | null, idempotent: boolean | null, read_only: boolean | null, open_world: boolean | null } | null };

export type ObservedFragment = { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> };

export type ListConnectionsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  node_id?: string | null | undefined;
  status?: ConnectionStatus | null | undefined;
  client_type?: ClientType | null | undefined;
  action?: string | null | undefined;
  text?: string | null | undefined;
  labels?: Array<string> | string | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListConnectionsQuery = { connections: { next_cursor: string | null, items: Array<{ status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, knows_places: boolean, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, close_code: number | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string>, predecessors: Array<{ cause: DisconnectCause, instance_id: string, node_id: string, replaced_at: string }> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type SnapshotFragment = { status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, knows_places: boolean, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, close_code: number | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string>, predecessors: Array<{ cause: DisconnectCause, instance_id: string, node_id: string, replaced_at: string }> };

export type ListContextsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  client_type?: ClientType | null | undefined;
  status?: ContextStatus | null | undefined;
  ownership?: Ownership | null | undefined;
  window_id?: string | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListContextsQuery = { contexts: { next_cursor: string | null, items: Array<{ status: ContextStatus, ownership: Ownership, title: string | null, metadata: unknown, context_id: string, user_id: string, client_id: string, instance_id: string, client_type: ClientType, window_id: string | null, task_id: string | null, task_assigned_at: string | null, reported_at: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type ContextFragment = { status: ContextStatus, ownership: Ownership, title: string | null, metadata: unknown, context_id: string, user_id: string, client_id: string, instance_id: string, client_type: ClientType, window_id: string | null, task_id: string | null, task_assigned_at: string | null, reported_at: string };

export type ListBrowserWindowsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  client_type?: ClientType | null | undefined;
  status?: WindowStatus | null | undefined;
  ownership?: Ownership | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListBrowserWindowsQuery = { browserWindows: { next_cursor: string | null, items: Array<{ ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, capacity: number | null, draining: boolean, status: WindowStatus, window_id: string, user_id: string, client_id: string, instance_id: string, client_type: ClientType, tab_count: number, worker_count: number, idle_count: number, busy_count: number, counts_from: CountsFrom, reported_at: string }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type WindowFragment = { ownership: Ownership, focused: boolean, type: string, state: string, incognito: boolean, capacity: number | null, draining: boolean, status: WindowStatus, window_id: string, user_id: string, client_id: string, instance_id: string, client_type: ClientType, tab_count: number, worker_count: number, idle_count: number, busy_count: number, counts_from: CountsFrom, reported_at: string };

export type ListDeliveryCommandsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  stage?: Stage | null | undefined;
  outcome?: Outcome | null | undefined;
  outcomes?: Array<Outcome> | Outcome | null | undefined;
  node_id?: string | null | undefined;
  action?: string | null | undefined;
  context_id?: string | null | undefined;
  code?: string | null | undefined;
  client_type?: ClientType | null | undefined;
  labels?: Array<string> | string | null | undefined;
  admitted_after?: string | null | undefined;
  admitted_before?: string | null | undefined;
  id_or_trace?: string | null | undefined;
  caller?: string | null | undefined;
  caller_kind?: CommandCallerKind | null | undefined;
  order?: CommandOrder;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListDeliveryCommandsQuery = { delivery: { commands: { next_cursor: string | null, items: Array<{ action: string, stage: Stage, outcome: Outcome | null, execution: ExecutionEvidence, attempts: number, deadline: string, code: string | null, message: string | null, reason: string | null, user_id: string, client_id: string, command_id: string, context_id: string | null, client_type: ClientType | null, scope_id: string, last_proven_stage: Stage, admitted_at: string, queued_at: string | null, dispatched_at: string | null, acknowledged_at: string | null, terminal_at: string | null, duration_ms: number | null, connect_deadline: string, node_id: string | null, bound_instance_id: string | null, recovered_from_node_id: string | null, cancel_requested_at: string | null, late_results: number, first_late_at: string | null, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } } };

export type GroupFailuresQueryVariables = Exact<{
  by?: Array<FailureKey> | FailureKey;
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  outcomes?: Array<Outcome> | Outcome | null | undefined;
  node_id?: string | null | undefined;
  action?: string | null | undefined;
  context_id?: string | null | undefined;
  code?: string | null | undefined;
  admitted_after?: string | null | undefined;
  admitted_before?: string | null | undefined;
  caller?: string | null | undefined;
  caller_kind?: CommandCallerKind | null | undefined;
  limit?: number;
}>;


export type GroupFailuresQuery = { delivery: { failures: { count: number, group_count: number, items: Array<{ action: string | null, code: string | null, count: number, share: number, user_id: string | null, client_id: string | null, node_id: string | null, last: { action: string, stage: Stage, outcome: Outcome | null, execution: ExecutionEvidence, attempts: number, deadline: string, code: string | null, message: string | null, reason: string | null, user_id: string, client_id: string, command_id: string, context_id: string | null, client_type: ClientType | null, scope_id: string, last_proven_stage: Stage, admitted_at: string, queued_at: string | null, dispatched_at: string | null, acknowledged_at: string | null, terminal_at: string | null, duration_ms: number | null, connect_deadline: string, node_id: string | null, bound_instance_id: string | null, recovered_from_node_id: string | null, cancel_requested_at: string | null, late_results: number, first_late_at: string | null, caller: { kind: CommandCallerKind, name: string, program: string | null } } }>, outcomes: Array<{ outcome: Outcome, count: number }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } } };

export type FindCommandsQueryVariables = Exact<{
  id_or_trace: string;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type FindCommandsQuery = { findCommands: { next_cursor: string | null, items: Array<{ action: string, stage: Stage, outcome: Outcome | null, execution: ExecutionEvidence, attempts: number, deadline: string, code: string | null, message: string | null, reason: string | null, user_id: string, client_id: string, command_id: string, context_id: string | null, client_type: ClientType | null, scope_id: string, last_proven_stage: Stage, admitted_at: string, queued_at: string | null, dispatched_at: string | null, acknowledged_at: string | null, terminal_at: string | null, duration_ms: number | null, connect_deadline: string, node_id: string | null, bound_instance_id: string | null, recovered_from_node_id: string | null, cancel_requested_at: string | null, late_results: number, first_late_at: string | null, caller: { kind: CommandCallerKind, name: string, program: string | null } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type DisconnectClientMutationVariables = Exact<{
  user_id: string;
  client_id: string;
  reason?: string | null | undefined;
}>;


export type DisconnectClientMutation = { disconnectClient:
    | { state: DisconnectState, connection: { status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, knows_places: boolean, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, close_code: number | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string>, predecessors: Array<{ cause: DisconnectCause, instance_id: string, node_id: string, replaced_at: string }> } }
    | { by: RefusedBy, code: RefusalCode, message: string, share: string | null, retry_after_ms: number | null, pause: { reason: string, since: string, until: string | null, pause_id: string, by: { kind: PauseAuthorKind, name: string } } | null, errors: Array<{ parameter: string, detail: string }> }
   };

export type DispatcherNodeReportFragment = { links: number, stale: boolean, draining: boolean, version: string | null, node_id: string, mailbox_listener_alive: boolean, reconciliation_alive: boolean, active_drainers: number, connection_waiters: number, unfinished_commands: number, updated_at: string, started_at: string | null, memory_bytes: number | null, event_loop_delay_ms: number | null, policy_digest: string | null, policy_fault: string | null, counters: Array<{ name: string, value: number }> };

export type DeliveryStatusRecordFragment = { action: string, stage: Stage, outcome: Outcome | null, execution: ExecutionEvidence, attempts: number, deadline: string, code: string | null, message: string | null, reason: string | null, user_id: string, client_id: string, command_id: string, context_id: string | null, client_type: ClientType | null, scope_id: string, last_proven_stage: Stage, admitted_at: string, queued_at: string | null, dispatched_at: string | null, acknowledged_at: string | null, terminal_at: string | null, duration_ms: number | null, connect_deadline: string, node_id: string | null, bound_instance_id: string | null, recovered_from_node_id: string | null, cancel_requested_at: string | null, late_results: number, first_late_at: string | null, caller: { kind: CommandCallerKind, name: string, program: string | null } };

export type DeviceShownFragment = { name: string, actions: Array<string> | null, revoked: boolean, user_id: string, client_id: string, client_type: ClientType, key_id: string, enrolled_at: string, enrolled_by: string, used_at: string | null };

export type ListStreamsQueryVariables = Exact<{
  user_id: string;
  prefix?: string | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListStreamsQuery = { streams: { next_cursor: string | null, items: Array<{ suffix: string, stream: string, user_id: string, message_count: number | null, first_at: string | null, last_at: string | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type ListMessagesQueryVariables = Exact<{
  stream: string;
  after_time?: string | null | undefined;
  before_time?: string | null | undefined;
  kinds?: Array<MessageKind> | MessageKind | null | undefined;
  include_payload?: boolean;
  order?: MessageOrder;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListMessagesQuery = { messages: { next_cursor: string | null, items: Array<{ stream: string, kind: MessageKind, at: string, program: string | null, payload: unknown, message_id: string, client_id: string | null, instance_id: string | null, command_id: string | null, context_id: string | null, trace_id: string | null, parent_span_id: string | null, payload_state: PayloadState, payload_bytes: number, payload_sha256: string | null, error: { code: string, message: string } | null, link: { epoch: number, cause: DisconnectCause | null, client_type: ClientType, node_id: string, close_code: number | null, open_ms: number | null, previous_instance_id: string | null } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type StreamSummaryFragment = { suffix: string, stream: string, user_id: string, message_count: number | null, first_at: string | null, last_at: string | null };

export type MessageSummaryFragment = { stream: string, kind: MessageKind, at: string, program: string | null, payload: unknown, message_id: string, client_id: string | null, instance_id: string | null, command_id: string | null, context_id: string | null, trace_id: string | null, parent_span_id: string | null, payload_state: PayloadState, payload_bytes: number, payload_sha256: string | null, error: { code: string, message: string } | null, link: { epoch: number, cause: DisconnectCause | null, client_type: ClientType, node_id: string, close_code: number | null, open_ms: number | null, previous_instance_id: string | null } | null };

export type ListPendingRpcsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  node_id?: string | null | undefined;
  caller_node_id?: string | null | undefined;
  context_id?: string | null | undefined;
  caller?: string | null | undefined;
  caller_kind?: CommandCallerKind | null | undefined;
  min_age_ms?: number | null | undefined;
  check_instance?: string | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListPendingRpcsQuery = { pendingRpcs: { next_cursor: string | null, items: Array<{ action: string, stage: Stage, rpc_id: string, command_id: string, user_id: string, client_id: string, wait_for: WaitStage, expected_instance_id: string | null, context_id: string | null, node_id: string | null, caller_node_id: string, created_at: string, times_out_at: string, connect_deadline: string, age_ms: number, caller: { kind: CommandCallerKind, name: string, program: string | null }, instance_mismatch: { expected_instance_id: string, observed_instance_id: string | null, observed_at: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type CountPendingRpcsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  node_id?: string | null | undefined;
  caller_node_id?: string | null | undefined;
  context_id?: string | null | undefined;
  caller?: string | null | undefined;
  caller_kind?: CommandCallerKind | null | undefined;
  min_age_ms?: number | null | undefined;
}>;


export type CountPendingRpcsQuery = { pendingRpcCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

type Invoked_InvokeActionOutcome_Fragment = { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, last_proven_stage: Stage | null, error: { code: string, message: string } | null };

type Invoked_InvokeActionPending_Fragment = { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, last_proven_stage: Stage | null, error: { code: string, message: string } | null };

export type InvokedFragment =
  | Invoked_InvokeActionOutcome_Fragment
  | Invoked_InvokeActionPending_Fragment
;

export type RefusedFragment = { by: RefusedBy, code: RefusalCode, message: string, share: string | null, retry_after_ms: number | null, pause: { reason: string, since: string, until: string | null, pause_id: string, by: { kind: PauseAuthorKind, name: string } } | null, errors: Array<{ parameter: string, detail: string }> };

export type DeniedFragment = { code: RefusalCode, message: string, share: string | null, retry_after_ms: number | null, errors: Array<{ parameter: string, detail: string }> };

export type PauseShownFragment = { caller: string | null, action: string | null, label: string | null, reason: string, since: string, until: string | null, queued: PauseQueued, running: PauseRunning, pause_id: string, user_id: string | null, client_id: string | null, caller_kind: CommandCallerKind | null, by: { kind: PauseAuthorKind, name: string } };

export type RevocationShownFragment = { reason: string, who: string, at: string, revocation_id: string, user_id: string | null, client_id: string | null, token_id: string | null, issued_before: string | null, expires_at: string };

export type SiteDefinitionFragment = { owner: string | null, mode: string, title: string | null, actions: Array<string>, site_id: string, event_names: Array<string>, client_id: string | null, host_connected: boolean, registered_at: string | null, capability_profile: { sharing: boolean, action_invocation: boolean } };

export type SessionFragment = { state: SessionState, subscribers: number | null, session_id: string, opened_at: string, expires_at: string, site: { owner: string | null, mode: string, title: string | null, actions: Array<string>, site_id: string, event_names: Array<string>, client_id: string | null, host_connected: boolean, registered_at: string | null, capability_profile: { sharing: boolean, action_invocation: boolean } } | null, grant: { events: Array<string> | null, actions: Array<string> | null, share: boolean, grant_id: string, expires_at: string, parent_id: string | null, revoked_at: string | null } | null, grants: Array<{ events: Array<string> | null, actions: Array<string> | null, share: boolean, grant_id: string, expires_at: string, parent_id: string | null, revoked_at: string | null }> | null };

export type GrantShownFragment = { events: Array<string> | null, actions: Array<string> | null, share: boolean, grant_id: string, expires_at: string, parent_id: string | null, revoked_at: string | null };

export type UserSummaryQueryVariables = Exact<{
  user_id: string;
}>;


export type UserSummaryQuery = { user: { user_id: string, connection_count: number, stream_count: number, pending_rpc_count: number, connections: { next_cursor: string | null, items: Array<{ status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, knows_places: boolean, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, close_code: number | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string>, predecessors: Array<{ cause: DisconnectCause, instance_id: string, node_id: string, replaced_at: string }> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } }, streams: { next_cursor: string | null, items: Array<{ suffix: string, stream: string, user_id: string, message_count: number | null, first_at: string | null, last_at: string | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } }, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } | null };

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
export const AdvertisementFragmentDoc = new TypedDocumentString(`
    fragment Advertisement on ActionAdvertisement {
  name
  summary
  description
  version
  checks_arguments: checksArguments
  schema
  metadata
  guards {
    approval
    lease
  }
  effects {
    read_only: readOnly
    destructive
    idempotent
    open_world: openWorld
  }
}
    `, {"fragmentName":"Advertisement"}) as unknown as TypedDocumentString<AdvertisementFragment, unknown>;
export const ObservedFragmentDoc = new TypedDocumentString(`
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
    `, {"fragmentName":"Observed"}) as unknown as TypedDocumentString<ObservedFragment, unknown>;
export const SnapshotFragmentDoc = new TypedDocumentString(`
    fragment Snapshot on ConnectionSnapshot {
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  node_id: nodeId
  status
  client_type: clientType
  knows_places: knowsPlaces
  metadata
  connected_at: connectedAt
  last_seen_at: lastSeenAt
  disconnected_at: disconnectedAt
  disconnect_cause: disconnectCause
  close_code: closeCode
  heartbeat
  recently_replaced: recentlyReplaced
  replaced_instance_id: replacedInstanceId
  predecessors {
    instance_id: instanceId
    node_id: nodeId
    replaced_at: replacedAt
    cause
  }
  action_names: actionNames
}
    `, {"fragmentName":"Snapshot"}) as unknown as TypedDocumentString<SnapshotFragment, unknown>;
export const ContextFragmentDoc = new TypedDocumentString(`
    fragment Context on ExecutionContext {
  context_id: contextId
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  client_type: clientType
  status
  ownership
  window_id: windowId
  task_id: taskId
  task_assigned_at: taskAssignedAt
  title
  metadata
  reported_at: reportedAt
}
    `, {"fragmentName":"Context"}) as unknown as TypedDocumentString<ContextFragment, unknown>;
export const WindowFragmentDoc = new TypedDocumentString(`
    fragment Window on BrowserWindow {
  window_id: windowId
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  client_type: clientType
  ownership
  focused
  type
  state
  incognito
  tab_count: tabCount
  capacity
  draining
  status
  worker_count: workerCount
  idle_count: idleCount
  busy_count: busyCount
  counts_from: countsFrom
  reported_at: reportedAt
}
    `, {"fragmentName":"Window"}) as unknown as TypedDocumentString<WindowFragment, unknown>;
export const DispatcherNodeReportFragmentDoc = new TypedDocumentString(`
    fragment DispatcherNodeReport on DispatcherNode {
  node_id: nodeId
  mailbox_listener_alive: mailboxListenerAlive
  reconciliation_alive: reconciliationAlive
  active_drainers: activeDrainers
  connection_waiters: connectionWaiters
  links
  unfinished_commands: unfinishedCommands
  updated_at: updatedAt
  stale
  draining
  version
  started_at: startedAt
  memory_bytes: memoryBytes
  event_loop_delay_ms: eventLoopDelayMs
  policy_digest: policyDigest
  policy_fault: policyFault
  counters {
    name
    value
  }
}
    `, {"fragmentName":"DispatcherNodeReport"}) as unknown as TypedDocumentString<DispatcherNodeReportFragment, unknown>;
export const DeliveryStatusRecordFragmentDoc = new TypedDocumentString(`
    fragment DeliveryStatusRecord on DeliveryRecord {
  user_id: userId
  client_id: clientId
  command_id: commandId
  action
  context_id: contextId
  client_type: clientType
  scope_id: scopeId
  stage
  outcome
  last_proven_stage: lastProvenStage
  execution
  attempts
  admitted_at: admittedAt
  queued_at: queuedAt
  dispatched_at: dispatchedAt
  acknowledged_at: acknowledgedAt
  terminal_at: terminalAt
  duration_ms: durationMs
  connect_deadline: connectDeadline
  deadline
  node_id: nodeId
  bound_instance_id: boundInstanceId
  recovered_from_node_id: recoveredFromNodeId
  cancel_requested_at: cancelRequestedAt
  late_results: lateResults
  first_late_at: firstLateAt
  code
  message
  reason
  caller {
    kind
    name
    program
  }
}
    `, {"fragmentName":"DeliveryStatusRecord"}) as unknown as TypedDocumentString<DeliveryStatusRecordFragment, unknown>;
export const DeviceShownFragmentDoc = new TypedDocumentString(`
    fragment DeviceShown on Device {
  user_id: userId
  client_id: clientId
  name
  client_type: clientType
  actions
  key_id: keyId
  enrolled_at: enrolledAt
  enrolled_by: enrolledBy
  used_at: usedAt
  revoked
}
    `, {"fragmentName":"DeviceShown"}) as unknown as TypedDocumentString<DeviceShownFragment, unknown>;
export const StreamSummaryFragmentDoc = new TypedDocumentString(`
    fragment StreamSummary on Stream {
  stream: key
  user_id: userId
  suffix
  message_count: messageCount
  first_at: firstAt
  last_at: lastAt
}
    `, {"fragmentName":"StreamSummary"}) as unknown as TypedDocumentString<StreamSummaryFragment, unknown>;
export const MessageSummaryFragmentDoc = new TypedDocumentString(`
    fragment MessageSummary on Message {
  message_id: messageId
  stream
  kind
  at
  client_id: clientId
  instance_id: instanceId
  command_id: commandId
  context_id: contextId
  trace_id: traceId
  parent_span_id: parentSpanId
  program
  payload(include: $include_payload)
  payload_state: payloadState(include: $include_payload)
  payload_bytes: payloadBytes
  payload_sha256: payloadSha256
  error {
    code
    message
  }
  link {
    client_type: clientType
    node_id: nodeId
    epoch
    cause
    close_code: closeCode
    open_ms: openMs
    previous_instance_id: previousInstanceId
  }
}
    `, {"fragmentName":"MessageSummary"}) as unknown as TypedDocumentString<MessageSummaryFragment, unknown>;
export const InvokedFragmentDoc = new TypedDocumentString(`
    fragment Invoked on Invocation {
  command_id: commandId
  rpc_id: rpcId
  outcome
  stage
  last_proven_stage: lastProvenStage
  execution
  result
  error {
    code
    message
  }
}
    `, {"fragmentName":"Invoked"}) as unknown as TypedDocumentString<InvokedFragment, unknown>;
export const DeniedFragmentDoc = new TypedDocumentString(`
    fragment Denied on Refusal {
  code
  message
  retry_after_ms: retryAfterMs
  share
  errors {
    parameter
    detail
  }
}
    `, {"fragmentName":"Denied"}) as unknown as TypedDocumentString<DeniedFragment, unknown>;
export const RefusedFragmentDoc = new TypedDocumentString(`
    fragment Refused on Refusal {
  ...Denied
  by
  pause: pausedBy {
    pause_id: pauseId
    reason
    by {
      kind
      name
    }
    since
    until
  }
}
    fragment Denied on Refusal {
  code
  message
  retry_after_ms: retryAfterMs
  share
  errors {
    parameter
    detail
  }
}`, {"fragmentName":"Refused"}) as unknown as TypedDocumentString<RefusedFragment, unknown>;
export const PauseShownFragmentDoc = new TypedDocumentString(`
    fragment PauseShown on Pause {
  pause_id: pauseId
  user_id: userId
  client_id: clientId
  caller_kind: callerKind
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
  queued
  running
}
    `, {"fragmentName":"PauseShown"}) as unknown as TypedDocumentString<PauseShownFragment, unknown>;
export const RevocationShownFragmentDoc = new TypedDocumentString(`
    fragment RevocationShown on Revocation {
  revocation_id: revocationId
  user_id: userId
  client_id: clientId
  token_id: tokenId
  issued_before: issuedBefore
  reason
  who
  at
  expires_at: expiresAt
}
    `, {"fragmentName":"RevocationShown"}) as unknown as TypedDocumentString<RevocationShownFragment, unknown>;
export const SiteDefinitionFragmentDoc = new TypedDocumentString(`
    fragment SiteDefinition on Site {
  site_id: siteId
  owner
  mode
  title
  event_names: eventNames
  actions
  capability_profile: capabilityProfile {
    action_invocation: actionInvocation
    sharing
  }
  client_id: clientId
  host_connected: hostConnected
  registered_at: registeredAt
}
    `, {"fragmentName":"SiteDefinition"}) as unknown as TypedDocumentString<SiteDefinitionFragment, unknown>;
export const GrantShownFragmentDoc = new TypedDocumentString(`
    fragment GrantShown on SiteGrant {
  grant_id: grantId
  events
  actions
  share
  expires_at: expiresAt
  parent_id: parentId
  revoked_at: revokedAt
}
    `, {"fragmentName":"GrantShown"}) as unknown as TypedDocumentString<GrantShownFragment, unknown>;
export const SessionFragmentDoc = new TypedDocumentString(`
    fragment Session on SiteSession {
  session_id: sessionId
  state
  opened_at: openedAt
  expires_at: expiresAt
  subscribers
  site {
    ...SiteDefinition
  }
  grant {
    ...GrantShown
  }
  grants {
    ...GrantShown
  }
}
    fragment SiteDefinition on Site {
  site_id: siteId
  owner
  mode
  title
  event_names: eventNames
  actions
  capability_profile: capabilityProfile {
    action_invocation: actionInvocation
    sharing
  }
  client_id: clientId
  host_connected: hostConnected
  registered_at: registeredAt
}
fragment GrantShown on SiteGrant {
  grant_id: grantId
  events
  actions
  share
  expires_at: expiresAt
  parent_id: parentId
  revoked_at: revokedAt
}`, {"fragmentName":"Session"}) as unknown as TypedDocumentString<SessionFragment, unknown>;
export const GetServerDocument = new TypedDocumentString(`
    query GetServer {
  server {
    version
  }
  viewer {
    kind
    user_id: userId
    scopes
    expires_at: expiresAt
  }
}
    `) as unknown as TypedDocumentString<GetServerQuery, GetServerQueryVariables>;
export const GetStatusDocument = new TypedDocumentString(`
    query GetStatus($series: [String!]!, $window_seconds: Int!, $step_seconds: Int!) {
  server {
    version
    label
    mode
    node_id: nodeId
  }
  delivery {
    summary {
      due_commands: dueCommands
    }
    nodes(first: 1000) {
      items: nodes {
        ...DispatcherNodeReport
      }
      completeness {
        ...Observed
      }
    }
    tenants(first: 1000) {
      items: nodes {
        scope_id: scopeId
        reserved_commands: reservedCommands
        limit
      }
    }
  }
  waits: pendingRpcCount {
    count
    completeness {
      ...Observed
    }
  }
  oldest_wait: pendingRpcs(first: 1) {
    items: nodes {
      user_id: userId
      client_id: clientId
      command_id: commandId
      action
      age_ms: ageMs
    }
  }
  series(
    names: $series
    windowSeconds: $window_seconds
    stepSeconds: $step_seconds
  ) {
    items {
      name
      label
      points
    }
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment DispatcherNodeReport on DispatcherNode {
  node_id: nodeId
  mailbox_listener_alive: mailboxListenerAlive
  reconciliation_alive: reconciliationAlive
  active_drainers: activeDrainers
  connection_waiters: connectionWaiters
  links
  unfinished_commands: unfinishedCommands
  updated_at: updatedAt
  stale
  draining
  version
  started_at: startedAt
  memory_bytes: memoryBytes
  event_loop_delay_ms: eventLoopDelayMs
  policy_digest: policyDigest
  policy_fault: policyFault
  counters {
    name
    value
  }
}`) as unknown as TypedDocumentString<GetStatusQuery, GetStatusQueryVariables>;
export const GetBusyClientsDocument = new TypedDocumentString(`
    query GetBusyClients {
  connections(first: 1000, status: CONNECTED) {
    items: nodes {
      user_id: userId
      client_id: clientId
      client_type: clientType
      node_id: nodeId
      queued
      in_flight: inFlight
    }
  }
  pendingRpcs(first: 1000) {
    items: nodes {
      user_id: userId
      client_id: clientId
      age_ms: ageMs
    }
  }
}
    `) as unknown as TypedDocumentString<GetBusyClientsQuery, GetBusyClientsQueryVariables>;
export const GetClientDocument = new TypedDocumentString(`
    query GetClient($user_id: ID!, $client_id: ID!) {
  connection(userId: $user_id, clientId: $client_id) {
    ...Snapshot
    queued
    in_flight: inFlight
    reconnects_last_hour: reconnectsLastHour
  }
}
    fragment Snapshot on ConnectionSnapshot {
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  node_id: nodeId
  status
  client_type: clientType
  knows_places: knowsPlaces
  metadata
  connected_at: connectedAt
  last_seen_at: lastSeenAt
  disconnected_at: disconnectedAt
  disconnect_cause: disconnectCause
  close_code: closeCode
  heartbeat
  recently_replaced: recentlyReplaced
  replaced_instance_id: replacedInstanceId
  predecessors {
    instance_id: instanceId
    node_id: nodeId
    replaced_at: replacedAt
    cause
  }
  action_names: actionNames
}`) as unknown as TypedDocumentString<GetClientQuery, GetClientQueryVariables>;
export const ListFlappingClientsDocument = new TypedDocumentString(`
    query ListFlappingClients($limit: Int! = 100) {
  flapping(first: $limit) {
    items {
      user_id: userId
      client_id: clientId
      reconnects
      connection {
        status
        disconnect_cause: disconnectCause
        last_seen_at: lastSeenAt
        node_id: nodeId
      }
    }
    complete
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}`) as unknown as TypedDocumentString<ListFlappingClientsQuery, ListFlappingClientsQueryVariables>;
export const WatchClientsDocument = new TypedDocumentString(`
    subscription WatchClients($user_id: ID) {
  connectionEvents(userId: $user_id) {
    at
    change
    cause
    missed
    connection {
      user_id: userId
      client_id: clientId
      instance_id: instanceId
      node_id: nodeId
      status
      client_type: clientType
      disconnect_cause: disconnectCause
    }
  }
}
    `) as unknown as TypedDocumentString<WatchClientsSubscription, WatchClientsSubscriptionVariables>;
export const ListActionsDocument = new TypedDocumentString(`
    query ListActions($name: String) {
  actions(name: $name) {
    items {
      user_id: userId
      client_id: clientId
      instance_id: instanceId
      action {
        ...Advertisement
      }
    }
    complete
    completeness {
      ...Observed
    }
  }
}
    fragment Advertisement on ActionAdvertisement {
  name
  summary
  description
  version
  checks_arguments: checksArguments
  schema
  metadata
  guards {
    approval
    lease
  }
  effects {
    read_only: readOnly
    destructive
    idempotent
    open_world: openWorld
  }
}
fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}`) as unknown as TypedDocumentString<ListActionsQuery, ListActionsQueryVariables>;
export const GetCallDocument = new TypedDocumentString(`
    query GetCall($user_id: ID!, $client_id: ID!, $command_id: ID!) {
  command(userId: $user_id, clientId: $client_id, commandId: $command_id) {
    user_id: userId
    client_id: clientId
    command_id: commandId
    action
    outcome
    error {
      code
      message
    }
    delivery {
      ...DeliveryStatusRecord
    }
    waiters {
      rpc_id: rpcId
      caller {
        kind
        name
      }
      wait_for: waitFor
      age_ms: ageMs
      times_out_at: timesOutAt
    }
    sightings {
      message_id: messageId
      count
      first_seen_at: firstSeenAt
      last_seen_at: lastSeenAt
    }
    history(first: 100) {
      items: nodes {
        message_id: messageId
        at
        kind
        stream
        payload_bytes: payloadBytes
        error {
          code
          message
        }
      }
      next_cursor: nextCursor
      completeness {
        ...Observed
      }
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment DeliveryStatusRecord on DeliveryRecord {
  user_id: userId
  client_id: clientId
  command_id: commandId
  action
  context_id: contextId
  client_type: clientType
  scope_id: scopeId
  stage
  outcome
  last_proven_stage: lastProvenStage
  execution
  attempts
  admitted_at: admittedAt
  queued_at: queuedAt
  dispatched_at: dispatchedAt
  acknowledged_at: acknowledgedAt
  terminal_at: terminalAt
  duration_ms: durationMs
  connect_deadline: connectDeadline
  deadline
  node_id: nodeId
  bound_instance_id: boundInstanceId
  recovered_from_node_id: recoveredFromNodeId
  cancel_requested_at: cancelRequestedAt
  late_results: lateResults
  first_late_at: firstLateAt
  code
  message
  reason
  caller {
    kind
    name
    program
  }
}`) as unknown as TypedDocumentString<GetCallQuery, GetCallQueryVariables>;
export const TailCallsDocument = new TypedDocumentString(`
    subscription TailCalls($user_id: ID, $client_id: ID, $action: String, $client_type: ClientType, $outcomes: [Outcome!]) {
  commandEvents(
    filter: {
      userId: $user_id
      clientId: $client_id
      action: $action
      clientType: $client_type
      outcomes: $outcomes
    }
  ) {
    at
    event: stage
    missed
    record {
      ...DeliveryStatusRecord
    }
  }
}
    fragment DeliveryStatusRecord on DeliveryRecord {
  user_id: userId
  client_id: clientId
  command_id: commandId
  action
  context_id: contextId
  client_type: clientType
  scope_id: scopeId
  stage
  outcome
  last_proven_stage: lastProvenStage
  execution
  attempts
  admitted_at: admittedAt
  queued_at: queuedAt
  dispatched_at: dispatchedAt
  acknowledged_at: acknowledgedAt
  terminal_at: terminalAt
  duration_ms: durationMs
  connect_deadline: connectDeadline
  deadline
  node_id: nodeId
  bound_instance_id: boundInstanceId
  recovered_from_node_id: recoveredFromNodeId
  cancel_requested_at: cancelRequestedAt
  late_results: lateResults
  first_late_at: firstLateAt
  code
  message
  reason
  caller {
    kind
    name
    program
  }
}`) as unknown as TypedDocumentString<TailCallsSubscription, TailCallsSubscriptionVariables>;
export const RevealPayloadDocument = new TypedDocumentString(`
    mutation RevealPayload($user_id: ID!, $client_id: ID, $command_id: ID, $message_id: ID, $subject: RevealSubject!, $reason: String!) {
  revealPayload(
    input: {
      userId: $user_id
      clientId: $client_id
      commandId: $command_id
      messageId: $message_id
      subject: $subject
      reason: $reason
    }
  ) {
    ... on RevealedPayload {
      value
      digest
      expires_at: expiresAt
    }
    ...Refused
  }
}
    fragment Refused on Refusal {
  ...Denied
  by
  pause: pausedBy {
    pause_id: pauseId
    reason
    by {
      kind
      name
    }
    since
    until
  }
}
fragment Denied on Refusal {
  code
  message
  retry_after_ms: retryAfterMs
  share
  errors {
    parameter
    detail
  }
}`) as unknown as TypedDocumentString<RevealPayloadMutation, RevealPayloadMutationVariables>;
export const WatchWaitsDocument = new TypedDocumentString(`
    subscription WatchWaits($older_than_ms: Int!, $user_id: ID) {
  pendingRpcAlerts(olderThanMs: $older_than_ms, userId: $user_id) {
    at
    over
    count
    oldest_age_ms: oldestAgeMs
    missed
    oldest {
      user_id: userId
      client_id: clientId
      command_id: commandId
      action
      caller {
        kind
        name
      }
      stage
      age_ms: ageMs
    }
  }
}
    `) as unknown as TypedDocumentString<WatchWaitsSubscription, WatchWaitsSubscriptionVariables>;
export const FollowMessagesDocument = new TypedDocumentString(`
    query FollowMessages($stream: String!, $kinds: [MessageKind!], $after_time: DateTime, $order: MessageOrder!, $cursor: String, $limit: Int!, $include_payload: Boolean! = false) {
  messages(
    stream: $stream
    kinds: $kinds
    afterTime: $after_time
    order: $order
    after: $cursor
    first: $limit
  ) {
    items: nodes {
      ...MessageSummary
    }
    page_info: pageInfo {
      end_cursor: endCursor
    }
  }
}
    fragment MessageSummary on Message {
  message_id: messageId
  stream
  kind
  at
  client_id: clientId
  instance_id: instanceId
  command_id: commandId
  context_id: contextId
  trace_id: traceId
  parent_span_id: parentSpanId
  program
  payload(include: $include_payload)
  payload_state: payloadState(include: $include_payload)
  payload_bytes: payloadBytes
  payload_sha256: payloadSha256
  error {
    code
    message
  }
  link {
    client_type: clientType
    node_id: nodeId
    epoch
    cause
    close_code: closeCode
    open_ms: openMs
    previous_instance_id: previousInstanceId
  }
}`) as unknown as TypedDocumentString<FollowMessagesQuery, FollowMessagesQueryVariables>;
export const ListAuditDocument = new TypedDocumentString(`
    query ListAudit($user_id: ID, $who: String, $action: OperatorAction, $after_time: DateTime, $before_time: DateTime, $cursor: String, $limit: Int! = 100) {
  auditEvents(
    filter: {
      userId: $user_id
      who: $who
      action: $action
      afterTime: $after_time
      beforeTime: $before_time
    }
    after: $cursor
    first: $limit
  ) {
    items: nodes {
      id
      at
      who
      action
      outcome
      reason
      subject {
        user_id: userId
        client_id: clientId
        instance_id: instanceId
        command_id: commandId
        message_id: messageId
        stream
        node_id: nodeId
        token_id: tokenId
        view
      }
      node_id: node
      request_id: requestId
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}`) as unknown as TypedDocumentString<ListAuditQuery, ListAuditQueryVariables>;
export const ConnectionActionsDocument = new TypedDocumentString(`
    query ConnectionActions($user_id: ID!, $client_id: ID!) {
  connection(userId: $user_id, clientId: $client_id) {
    actions {
      items {
        ...Advertisement
      }
      completeness {
        ...Observed
      }
    }
  }
}
    fragment Advertisement on ActionAdvertisement {
  name
  summary
  description
  version
  checks_arguments: checksArguments
  schema
  metadata
  guards {
    approval
    lease
  }
  effects {
    read_only: readOnly
    destructive
    idempotent
    open_world: openWorld
  }
}
fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}`) as unknown as TypedDocumentString<ConnectionActionsQuery, ConnectionActionsQueryVariables>;
export const ListConnectionsDocument = new TypedDocumentString(`
    query ListConnections($user_id: ID, $node_id: ID, $status: ConnectionStatus, $client_type: ClientType, $action: String, $text: String, $labels: [String!], $cursor: String, $limit: Int! = 100) {
  connections(
    userId: $user_id
    nodeId: $node_id
    status: $status
    clientType: $client_type
    action: $action
    text: $text
    labels: $labels
    after: $cursor
    first: $limit
  ) {
    items: nodes {
      ...Snapshot
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment Snapshot on ConnectionSnapshot {
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  node_id: nodeId
  status
  client_type: clientType
  knows_places: knowsPlaces
  metadata
  connected_at: connectedAt
  last_seen_at: lastSeenAt
  disconnected_at: disconnectedAt
  disconnect_cause: disconnectCause
  close_code: closeCode
  heartbeat
  recently_replaced: recentlyReplaced
  replaced_instance_id: replacedInstanceId
  predecessors {
    instance_id: instanceId
    node_id: nodeId
    replaced_at: replacedAt
    cause
  }
  action_names: actionNames
}`) as unknown as TypedDocumentString<ListConnectionsQuery, ListConnectionsQueryVariables>;
export const ListContextsDocument = new TypedDocumentString(`
    query ListContexts($user_id: ID, $client_id: ID, $client_type: ClientType, $status: ContextStatus, $ownership: Ownership, $window_id: ID, $cursor: String, $limit: Int! = 100) {
  contexts(
    filter: {
      userId: $user_id
      clientId: $client_id
      clientType: $client_type
      status: $status
      ownership: $ownership
      windowId: $window_id
    }
    after: $cursor
    first: $limit
  ) {
    items: nodes {
      ...Context
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment Context on ExecutionContext {
  context_id: contextId
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  client_type: clientType
  status
  ownership
  window_id: windowId
  task_id: taskId
  task_assigned_at: taskAssignedAt
  title
  metadata
  reported_at: reportedAt
}`) as unknown as TypedDocumentString<ListContextsQuery, ListContextsQueryVariables>;
export const ListBrowserWindowsDocument = new TypedDocumentString(`
    query ListBrowserWindows($user_id: ID, $client_id: ID, $client_type: ClientType, $status: WindowStatus, $ownership: Ownership, $cursor: String, $limit: Int! = 100) {
  browserWindows(
    filter: {
      userId: $user_id
      clientId: $client_id
      clientType: $client_type
      status: $status
      ownership: $ownership
    }
    after: $cursor
    first: $limit
  ) {
    items: nodes {
      ...Window
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment Window on BrowserWindow {
  window_id: windowId
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  client_type: clientType
  ownership
  focused
  type
  state
  incognito
  tab_count: tabCount
  capacity
  draining
  status
  worker_count: workerCount
  idle_count: idleCount
  busy_count: busyCount
  counts_from: countsFrom
  reported_at: reportedAt
}`) as unknown as TypedDocumentString<ListBrowserWindowsQuery, ListBrowserWindowsQueryVariables>;
export const ListDeliveryCommandsDocument = new TypedDocumentString(`
    query ListDeliveryCommands($user_id: ID, $client_id: ID, $stage: Stage, $outcome: Outcome, $outcomes: [Outcome!], $node_id: ID, $action: String, $context_id: ID, $code: String, $client_type: ClientType, $labels: [String!], $admitted_after: DateTime, $admitted_before: DateTime, $id_or_trace: ID, $caller: String, $caller_kind: CommandCallerKind, $order: CommandOrder! = KEY, $cursor: String, $limit: Int! = 100) {
  delivery {
    commands(
      filter: {
        userId: $user_id
        clientId: $client_id
        stage: $stage
        outcome: $outcome
        outcomes: $outcomes
        nodeId: $node_id
        action: $action
        contextId: $context_id
        code: $code
        clientType: $client_type
        labels: $labels
        admittedAfter: $admitted_after
        admittedBefore: $admitted_before
        idOrTrace: $id_or_trace
        caller: $caller
        callerKind: $caller_kind
      }
      order: $order
      after: $cursor
      first: $limit
    ) {
      items: nodes {
        ...DeliveryStatusRecord
      }
      next_cursor: nextCursor
      completeness {
        ...Observed
      }
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment DeliveryStatusRecord on DeliveryRecord {
  user_id: userId
  client_id: clientId
  command_id: commandId
  action
  context_id: contextId
  client_type: clientType
  scope_id: scopeId
  stage
  outcome
  last_proven_stage: lastProvenStage
  execution
  attempts
  admitted_at: admittedAt
  queued_at: queuedAt
  dispatched_at: dispatchedAt
  acknowledged_at: acknowledgedAt
  terminal_at: terminalAt
  duration_ms: durationMs
  connect_deadline: connectDeadline
  deadline
  node_id: nodeId
  bound_instance_id: boundInstanceId
  recovered_from_node_id: recoveredFromNodeId
  cancel_requested_at: cancelRequestedAt
  late_results: lateResults
  first_late_at: firstLateAt
  code
  message
  reason
  caller {
    kind
    name
    program
  }
}`) as unknown as TypedDocumentString<ListDeliveryCommandsQuery, ListDeliveryCommandsQueryVariables>;
export const GroupFailuresDocument = new TypedDocumentString(`
    query GroupFailures($by: [FailureKey!]! = [ACTION, CODE], $user_id: ID, $client_id: ID, $outcomes: [Outcome!], $node_id: ID, $action: String, $context_id: ID, $code: String, $admitted_after: DateTime, $admitted_before: DateTime, $caller: String, $caller_kind: CommandCallerKind, $limit: Int! = 20) {
  delivery {
    failures(
      filter: {
        userId: $user_id
        clientId: $client_id
        outcomes: $outcomes
        nodeId: $node_id
        action: $action
        contextId: $context_id
        code: $code
        admittedAfter: $admitted_after
        admittedBefore: $admitted_before
        caller: $caller
        callerKind: $caller_kind
      }
      by: $by
      first: $limit
    ) {
      items: groups {
        action
        code
        user_id: userId
        client_id: clientId
        node_id: nodeId
        count
        share
        last {
          ...DeliveryStatusRecord
        }
      }
      group_count: groupCount
      count
      outcomes {
        outcome
        count
      }
      completeness {
        ...Observed
      }
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment DeliveryStatusRecord on DeliveryRecord {
  user_id: userId
  client_id: clientId
  command_id: commandId
  action
  context_id: contextId
  client_type: clientType
  scope_id: scopeId
  stage
  outcome
  last_proven_stage: lastProvenStage
  execution
  attempts
  admitted_at: admittedAt
  queued_at: queuedAt
  dispatched_at: dispatchedAt
  acknowledged_at: acknowledgedAt
  terminal_at: terminalAt
  duration_ms: durationMs
  connect_deadline: connectDeadline
  deadline
  node_id: nodeId
  bound_instance_id: boundInstanceId
  recovered_from_node_id: recoveredFromNodeId
  cancel_requested_at: cancelRequestedAt
  late_results: lateResults
  first_late_at: firstLateAt
  code
  message
  reason
  caller {
    kind
    name
    program
  }
}`) as unknown as TypedDocumentString<GroupFailuresQuery, GroupFailuresQueryVariables>;
export const FindCommandsDocument = new TypedDocumentString(`
    query FindCommands($id_or_trace: ID!, $cursor: String, $limit: Int! = 100) {
  findCommands(idOrTrace: $id_or_trace, after: $cursor, first: $limit) {
    items: nodes {
      ...DeliveryStatusRecord
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment DeliveryStatusRecord on DeliveryRecord {
  user_id: userId
  client_id: clientId
  command_id: commandId
  action
  context_id: contextId
  client_type: clientType
  scope_id: scopeId
  stage
  outcome
  last_proven_stage: lastProvenStage
  execution
  attempts
  admitted_at: admittedAt
  queued_at: queuedAt
  dispatched_at: dispatchedAt
  acknowledged_at: acknowledgedAt
  terminal_at: terminalAt
  duration_ms: durationMs
  connect_deadline: connectDeadline
  deadline
  node_id: nodeId
  bound_instance_id: boundInstanceId
  recovered_from_node_id: recoveredFromNodeId
  cancel_requested_at: cancelRequestedAt
  late_results: lateResults
  first_late_at: firstLateAt
  code
  message
  reason
  caller {
    kind
    name
    program
  }
}`) as unknown as TypedDocumentString<FindCommandsQuery, FindCommandsQueryVariables>;
export const DisconnectClientDocument = new TypedDocumentString(`
    mutation DisconnectClient($user_id: ID!, $client_id: ID!, $reason: String) {
  disconnectClient(userId: $user_id, clientId: $client_id, reason: $reason) {
    ... on DisconnectReceipt {
      state
      connection {
        ...Snapshot
      }
    }
    ...Refused
  }
}
    fragment Snapshot on ConnectionSnapshot {
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  node_id: nodeId
  status
  client_type: clientType
  knows_places: knowsPlaces
  metadata
  connected_at: connectedAt
  last_seen_at: lastSeenAt
  disconnected_at: disconnectedAt
  disconnect_cause: disconnectCause
  close_code: closeCode
  heartbeat
  recently_replaced: recentlyReplaced
  replaced_instance_id: replacedInstanceId
  predecessors {
    instance_id: instanceId
    node_id: nodeId
    replaced_at: replacedAt
    cause
  }
  action_names: actionNames
}
fragment Refused on Refusal {
  ...Denied
  by
  pause: pausedBy {
    pause_id: pauseId
    reason
    by {
      kind
      name
    }
    since
    until
  }
}
fragment Denied on Refusal {
  code
  message
  retry_after_ms: retryAfterMs
  share
  errors {
    parameter
    detail
  }
}`) as unknown as TypedDocumentString<DisconnectClientMutation, DisconnectClientMutationVariables>;
export const ListStreamsDocument = new TypedDocumentString(`
    query ListStreams($user_id: ID!, $prefix: String, $cursor: String, $limit: Int! = 100) {
  streams(userId: $user_id, prefix: $prefix, after: $cursor, first: $limit) {
    items: nodes {
      ...StreamSummary
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment StreamSummary on Stream {
  stream: key
  user_id: userId
  suffix
  message_count: messageCount
  first_at: firstAt
  last_at: lastAt
}`) as unknown as TypedDocumentString<ListStreamsQuery, ListStreamsQueryVariables>;
export const ListMessagesDocument = new TypedDocumentString(`
    query ListMessages($stream: String!, $after_time: DateTime, $before_time: DateTime, $kinds: [MessageKind!], $include_payload: Boolean! = false, $order: MessageOrder! = OLDEST_FIRST, $cursor: String, $limit: Int! = 100) {
  messages(
    stream: $stream
    afterTime: $after_time
    beforeTime: $before_time
    kinds: $kinds
    order: $order
    after: $cursor
    first: $limit
  ) {
    items: nodes {
      ...MessageSummary
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment MessageSummary on Message {
  message_id: messageId
  stream
  kind
  at
  client_id: clientId
  instance_id: instanceId
  command_id: commandId
  context_id: contextId
  trace_id: traceId
  parent_span_id: parentSpanId
  program
  payload(include: $include_payload)
  payload_state: payloadState(include: $include_payload)
  payload_bytes: payloadBytes
  payload_sha256: payloadSha256
  error {
    code
    message
  }
  link {
    client_type: clientType
    node_id: nodeId
    epoch
    cause
    close_code: closeCode
    open_ms: openMs
    previous_instance_id: previousInstanceId
  }
}`) as unknown as TypedDocumentString<ListMessagesQuery, ListMessagesQueryVariables>;
export const ListPendingRpcsDocument = new TypedDocumentString(`
    query ListPendingRpcs($user_id: ID, $client_id: ID, $node_id: ID, $caller_node_id: ID, $context_id: ID, $caller: String, $caller_kind: CommandCallerKind, $min_age_ms: Int, $check_instance: ID, $cursor: String, $limit: Int! = 100) {
  pendingRpcs(
    filter: {
      userId: $user_id
      clientId: $client_id
      nodeId: $node_id
      callerNodeId: $caller_node_id
      contextId: $context_id
      caller: $caller
      callerKind: $caller_kind
      minAgeMs: $min_age_ms
      checkInstance: $check_instance
    }
    after: $cursor
    first: $limit
  ) {
    items: nodes {
      rpc_id: rpcId
      command_id: commandId
      user_id: userId
      client_id: clientId
      action
      wait_for: waitFor
      expected_instance_id: expectedInstanceId
      context_id: contextId
      node_id: nodeId
      caller {
        kind
        name
        program
      }
      caller_node_id: callerNodeId
      created_at: createdAt
      times_out_at: timesOutAt
      connect_deadline: connectDeadline
      age_ms: ageMs
      instance_mismatch: instanceMismatch {
        expected_instance_id: expectedInstanceId
        observed_instance_id: observedInstanceId
        observed_at: observedAt
      }
      stage
    }
    next_cursor: nextCursor
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}`) as unknown as TypedDocumentString<ListPendingRpcsQuery, ListPendingRpcsQueryVariables>;
export const CountPendingRpcsDocument = new TypedDocumentString(`
    query CountPendingRpcs($user_id: ID, $client_id: ID, $node_id: ID, $caller_node_id: ID, $context_id: ID, $caller: String, $caller_kind: CommandCallerKind, $min_age_ms: Int) {
  pendingRpcCount(
    filter: {
      userId: $user_id
      clientId: $client_id
      nodeId: $node_id
      callerNodeId: $caller_node_id
      contextId: $context_id
      caller: $caller
      callerKind: $caller_kind
      minAgeMs: $min_age_ms
    }
  ) {
    count
    completeness {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}`) as unknown as TypedDocumentString<CountPendingRpcsQuery, CountPendingRpcsQueryVariables>;
export const UserSummaryDocument = new TypedDocumentString(`
    query UserSummary($user_id: ID!) {
  user(userId: $user_id) {
    user_id: userId
    connection_count: connectionCount
    stream_count: streamCount
    pending_rpc_count: pendingRpcCount
    connections(first: 100) {
      items: nodes {
        ...Snapshot
      }
      next_cursor: nextCursor
      completeness {
        ...Observed
      }
    }
    streams(first: 100) {
      items: nodes {
        ...StreamSummary
      }
      next_cursor: nextCursor
      completeness {
        ...Observed
      }
    }
    completeness: summaryCompleteness(first: 100) {
      ...Observed
    }
  }
}
    fragment Observed on Completeness {
  complete
  sources {
    source
    node_id: nodeId
    complete
    observed
    limit
    reason
    as_of: asOf
  }
}
fragment Snapshot on ConnectionSnapshot {
  user_id: userId
  client_id: clientId
  instance_id: instanceId
  node_id: nodeId
  status
  client_type: clientType
  knows_places: knowsPlaces
  metadata
  connected_at: connectedAt
  last_seen_at: lastSeenAt
  disconnected_at: disconnectedAt
  disconnect_cause: disconnectCause
  close_code: closeCode
  heartbeat
  recently_replaced: recentlyReplaced
  replaced_instance_id: replacedInstanceId
  predecessors {
    instance_id: instanceId
    node_id: nodeId
    replaced_at: replacedAt
    cause
  }
  action_names: actionNames
}
fragment StreamSummary on Stream {
  stream: key
  user_id: userId
  suffix
  message_count: messageCount
  first_at: firstAt
  last_at: lastAt
}`) as unknown as TypedDocumentString<UserSummaryQuery, UserSummaryQueryVariables>;