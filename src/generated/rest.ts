/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';
/** What became of a cancellation. */
export type CancelState =
  /** The command had not been written to its client, and now never will be. */
  | 'cancelled'
  /** Its client was asked to stop. It may have run all the same. */
  | 'requested'
  /** The command had ended. */
  | 'too_late';

/** What kind of program a client is. */
export type ClientType =
  /** A browser, by an extension or a page. */
  | 'browser'
  /** A program on a console. */
  | 'console'
  /** A mobile app. */
  | 'mobile'
  /** A web app. */
  | 'web';

/** Whether a client is reachable. */
export type ConnectionStatus =
  /** Its link is up and it answers in time. */
  | 'connected'
  /** Its link is down, or it has been silent for 60 seconds. */
  | 'disconnected'
  /** Its link is up, but it has been silent for 45 seconds. */
  | 'stale';

/** Why a link went down. */
export type DisconnectCause =
  /** The client did not take what was sent. */
  | 'back_pressure'
  /** The client closed it. */
  | 'client_closed'
  /** The client was silent for 60 seconds. */
  | 'heartbeat_lost'
  /** Its node was stopped in order. */
  | 'node_drained'
  /** Its node went silent. */
  | 'node_lost'
  /** An operator closed it. */
  | 'operator'
  /** Too many frames were not understood. */
  | 'protocol_error'
  /** Another link of the same client took its place. */
  | 'replaced'
  /** Its token expired and was not renewed. */
  | 'token_expired';

/** Where a part of an answer was observed. */
export type EvidenceSource =
  /** The advertisements of connected clients. */
  | 'actions'
  /** The registry of connections. */
  | 'connections'
  /** The reported execution contexts. */
  | 'contexts'
  /** The records of delivery. */
  | 'delivery'
  /** The retained messages. */
  | 'messages'
  /** The callers that still wait. */
  | 'pending_rpcs'
  /** The registered sites. */
  | 'sites'
  /** The streams of retained history. */
  | 'streams'
  /** The reported browser windows. */
  | 'windows';

/** What is proven about execution; never that an effect outside the client is complete. */
export type ExecutionEvidence =
  /** It may have run. */
  | 'may_have_run'
  /** No socket write began. */
  | 'not_written'
  /** The client said that it refused before running it. */
  | 'refused_by_client'
  /** The client reported how it ended. */
  | 'reported_by_client';

/** How a client answers pings, derived on reading. */
export type HeartbeatIndicator =
  /** A whole ping went unanswered. */
  | 'late'
  /** The client no longer counts as connected. */
  | 'missed'
  /** The last ping was answered in time. */
  | 'ok';

/** Why a source contributed less than it holds. */
export type IncompleteReason =
  /** Rows were dropped early for lack of room. */
  | 'evicted'
  /** The bound of the answer was reached. */
  | 'limit_reached'
  /** A node did not answer. */
  | 'node_silent'
  /** This backend cannot tell. */
  | 'not_supported'
  /** The store did not answer. */
  | 'store_unavailable';

/** What a retained message says. */
export type MessageKind =
  /** A cancellation was asked for. */
  | 'cancel'
  /** A command was admitted. */
  | 'command'
  /** A command ended without a result. */
  | 'error'
  /** An event was ingested. */
  | 'event'
  /** An end was reported after the command had ended, or by another instance: evidence that resolves nothing. */
  | 'late_result'
  /** A client reported progress; at most one row a second is kept per command. */
  | 'progress'
  /** A client reported a result. */
  | 'result';

/** How a command ended. None of these speaks of effects outside the client. */
export type Outcome =
  /** It was cancelled before dispatch, or the client reported that it stopped. */
  | 'cancelled'
  /** The client reported a result. */
  | 'completed'
  /** Its time ran out before dispatch: no socket write began. */
  | 'expired'
  /** The client reported an error, its own refusal included. */
  | 'failed'
  /** It was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came. */
  | 'outcome_unknown';

/** What `payload` shows, and why not more. */
export type PayloadState =
  /** It was kept apart and its time is over. */
  | 'expired'
  /** It is shown. */
  | 'included'
  /** There is no payload. */
  | 'none'
  /** There is a payload; it was not asked for. */
  | 'redacted'
  /** It is shown, out of the store for large payloads. */
  | 'spilled_included'
  /** It was kept apart and cannot be read now. */
  | 'unavailable';

/** The closed table of codes, shared with every other face. */
export type RefusalCode =
  /** `action_not_advertised`, HTTP status 404. */
  | 'action_not_advertised'
  /** `approval_denied`, HTTP status 200. */
  | 'approval_denied'
  /** `arguments_invalid`, HTTP status 200. */
  | 'arguments_invalid'
  /** `cancelled`, HTTP status 200. */
  | 'cancelled'
  /** `capacity_exceeded`, HTTP status 429. */
  | 'capacity_exceeded'
  /** `client_denied`, HTTP status 200. */
  | 'client_denied'
  /** `command_conflict`, HTTP status 409. */
  | 'command_conflict'
  /** `connect_timeout`, HTTP status 504. */
  | 'connect_timeout'
  /** `draining`, HTTP status 503. */
  | 'draining'
  /** `forbidden`, HTTP status 403. */
  | 'forbidden'
  /** `handler_failed`, HTTP status 200. */
  | 'handler_failed'
  /** `instance_mismatch`, HTTP status 409. */
  | 'instance_mismatch'
  /** `instance_replaced`, HTTP status 504. */
  | 'instance_replaced'
  /** `internal`, HTTP status 500. */
  | 'internal'
  /** `invalid_argument`, HTTP status 400. */
  | 'invalid_argument'
  /** `invalid_cursor`, HTTP status 400. */
  | 'invalid_cursor'
  /** `invalid_user`, HTTP status 400. */
  | 'invalid_user'
  /** `lease_busy`, HTTP status 200. */
  | 'lease_busy'
  /** `method_not_allowed`, HTTP status 405. */
  | 'method_not_allowed'
  /** `node_lost`, HTTP status 504. */
  | 'node_lost'
  /** `not_acceptable`, HTTP status 406. */
  | 'not_acceptable'
  /** `not_connected`, HTTP status 409. */
  | 'not_connected'
  /** `not_found`, HTTP status 404. */
  | 'not_found'
  /** `payload_store_full`, HTTP status 503. */
  | 'payload_store_full'
  /** `payload_too_large`, HTTP status 413. */
  | 'payload_too_large'
  /** `policy_denied`, HTTP status 403. */
  | 'policy_denied'
  /** `queue_full`, HTTP status 429. */
  | 'queue_full'
  /** `queue_timeout`, HTTP status 504. */
  | 'queue_timeout'
  /** `rate_limited`, HTTP status 429. */
  | 'rate_limited'
  /** `raw_history_disabled`, HTTP status 403. */
  | 'raw_history_disabled'
  /** `reserved_parameter`, HTTP status 400. */
  | 'reserved_parameter'
  /** `reserved_stream`, HTTP status 400. */
  | 'reserved_stream'
  /** `response_timeout`, HTTP status 504. */
  | 'response_timeout'
  /** `result_unavailable`, HTTP status 200. */
  | 'result_unavailable'
  /** `runtime_disconnected`, HTTP status 503. */
  | 'runtime_disconnected'
  /** `session_inactive`, HTTP status 409. */
  | 'session_inactive'
  /** `site_action_denied`, HTTP status 403. */
  | 'site_action_denied'
  /** `site_capability_denied`, HTTP status 403. */
  | 'site_capability_denied'
  /** `site_mode_denied`, HTTP status 403. */
  | 'site_mode_denied'
  /** `stale_instance`, HTTP status 409. */
  | 'stale_instance'
  /** `store_lost`, HTTP status 504. */
  | 'store_lost'
  /** `store_unavailable`, HTTP status 503. */
  | 'store_unavailable'
  /** `too_complex`, HTTP status 400. */
  | 'too_complex'
  /** `unauthenticated`, HTTP status 401. */
  | 'unauthenticated'
  /** `unknown_action`, HTTP status 200. */
  | 'unknown_action'
  /** `unsupported_media_type`, HTTP status 415. */
  | 'unsupported_media_type';

/** Which layer refused. */
export type RefusedBy =
  /** The address names nothing that the asker may reach. */
  | 'address'
  /** The check of the arguments. */
  | 'arguments'
  /** A bound on how much may be held. */
  | 'capacity'
  /** The command id was used for another request. */
  | 'conflict'
  /** The central policy. */
  | 'policy'
  /** This node, which admits nothing now. */
  | 'relay'
  /** The rules of a site. */
  | 'site'
  /** The target: it is not connected, not the one named, or advertises no such action. */
  | 'target';

/** How far a command has come. */
export type Stage =
  /** The client said that it has it. */
  | 'acknowledged'
  /** It is on record; its client is not connected. */
  | 'admitted'
  /** Writing it to the client’s socket was begun. That proves neither receipt nor execution. */
  | 'dispatched'
  /** It is queued for the link of its client. */
  | 'queued'
  /** It ended; `outcome` says how. */
  | 'terminal';

/** What a call waits for. Waiting is not running: a wait that ends leaves the command as it is. */
export type WaitStage =
  /** That its client said that it has it. */
  | 'acknowledged'
  /** That the command is on record. */
  | 'admitted'
  /** That it ended. */
  | 'completed';

export type ConnectionActionsQueryVariables = Exact<{
  user_id: string;
  client_id: string;
}>;


export type ConnectionActionsQuery = { connection: { actions: { items: Array<{ name: string, summary: string | null, description: string | null, version: string | null, schema: unknown, metadata: unknown, checks_arguments: boolean | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } } | null };

export type SampleActionsQueryVariables = Exact<{ [key: string]: never; }>;


export type SampleActionsQuery = { actions: { complete: boolean, items: Array<{ user_id: string, client_id: string, instance_id: string, action: { name: string, summary: string | null, description: string | null, version: string | null, schema: unknown, metadata: unknown, checks_arguments: boolean | null } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type AdvertisementFragment = { name: string, summary: string | null, description: string | null, version: string | null, schema: unknown, metadata: unknown, checks_arguments: boolean | null };

export type ObservedFragment = { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> };

export type ListConnectionsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  node_id?: string | null | undefined;
  status?: ConnectionStatus | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListConnectionsQuery = { connections: { next_cursor: string | null, items: Array<{ status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type SnapshotFragment = { status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string> };

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
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListMessagesQuery = { messages: { next_cursor: string | null, items: Array<{ stream: string, kind: MessageKind, at: string, payload: unknown, message_id: string, client_id: string | null, instance_id: string | null, command_id: string | null, trace_id: string | null, parent_span_id: string | null, payload_state: PayloadState, payload_bytes: number, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type ListCommandMessagesQueryVariables = Exact<{
  user_id: string;
  command_id: string;
  include_payload?: boolean;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListCommandMessagesQuery = { commandHistory: { next_cursor: string | null, items: Array<{ stream: string, kind: MessageKind, at: string, payload: unknown, message_id: string, client_id: string | null, instance_id: string | null, command_id: string | null, trace_id: string | null, parent_span_id: string | null, payload_state: PayloadState, payload_bytes: number, error: { code: string, message: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type StreamSummaryFragment = { suffix: string, stream: string, user_id: string, message_count: number | null, first_at: string | null, last_at: string | null };

export type MessageSummaryFragment = { stream: string, kind: MessageKind, at: string, payload: unknown, message_id: string, client_id: string | null, instance_id: string | null, command_id: string | null, trace_id: string | null, parent_span_id: string | null, payload_state: PayloadState, payload_bytes: number, error: { code: string, message: string } | null };

export type ListPendingRpcsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  node_id?: string | null | undefined;
  caller_node_id?: string | null | undefined;
  min_age_ms?: number | null | undefined;
  check_instance?: string | null | undefined;
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListPendingRpcsQuery = { pendingRpcs: { next_cursor: string | null, items: Array<{ action: string, stage: Stage, rpc_id: string, command_id: string, user_id: string, client_id: string, wait_for: WaitStage, expected_instance_id: string | null, node_id: string | null, caller_node_id: string, created_at: string, times_out_at: string, age_ms: number, instance_mismatch: { expected_instance_id: string, observed_instance_id: string | null, observed_at: string } | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type CountPendingRpcsQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  node_id?: string | null | undefined;
  caller_node_id?: string | null | undefined;
  min_age_ms?: number | null | undefined;
}>;


export type CountPendingRpcsQuery = { pendingRpcCount: { count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type CountPendingRpcsByNodeQueryVariables = Exact<{
  user_id?: string | null | undefined;
  client_id?: string | null | undefined;
  node_id?: string | null | undefined;
  caller_node_id?: string | null | undefined;
  min_age_ms?: number | null | undefined;
}>;


export type CountPendingRpcsByNodeQuery = { pendingRpcCountByNode: { items: Array<{ count: number, node_id: string | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type InvokeActionMutationVariables = Exact<{
  user_id: string;
  client_id: string;
  action: string;
  params?: unknown;
  command_id?: string | null | undefined;
  wait_for?: WaitStage | null | undefined;
  connect_within_ms?: number | null | undefined;
  respond_within_ms?: number | null | undefined;
  instance_id?: string | null | undefined;
  trace_id?: string | null | undefined;
  parent_span_id?: string | null | undefined;
}>;


export type InvokeActionMutation = { invokeAction:
    | { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, error: { code: string, message: string } | null }
    | { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, error: { code: string, message: string } | null }
    | { code: RefusalCode, message: string, by: RefusedBy, retry_after_ms: number | null }
   };

export type AwaitCommandMutationVariables = Exact<{
  user_id: string;
  client_id: string;
  command_id: string;
  wait_for?: WaitStage;
  within_ms?: number;
}>;


export type AwaitCommandMutation = { awaitCommand:
    | { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, error: { code: string, message: string } | null }
    | { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, error: { code: string, message: string } | null }
    | { code: RefusalCode, message: string, by: RefusedBy, retry_after_ms: number | null }
   };

export type CancelCommandMutationVariables = Exact<{
  user_id: string;
  client_id: string;
  command_id: string;
  reason?: string | null | undefined;
}>;


export type CancelCommandMutation = { cancelCommand:
    | { state: CancelState, command: { action: string, outcome: Outcome | null, command_id: string, delivery: { stage: Stage, execution: ExecutionEvidence, last_proven_stage: Stage, cancel_requested_at: string | null, terminal_at: string | null } | null, error: { code: string, message: string } | null } }
    | { code: RefusalCode, message: string, by: RefusedBy, retry_after_ms: number | null }
   };

type Invoked_InvokeActionOutcome_Fragment = { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, error: { code: string, message: string } | null };

type Invoked_InvokeActionPending_Fragment = { outcome: Outcome | null, stage: Stage, execution: ExecutionEvidence, result: unknown, command_id: string, rpc_id: string | null, error: { code: string, message: string } | null };

export type InvokedFragment =
  | Invoked_InvokeActionOutcome_Fragment
  | Invoked_InvokeActionPending_Fragment
;

export type RefusedFragment = { code: RefusalCode, message: string, by: RefusedBy, retry_after_ms: number | null };

export type ListUsersQueryVariables = Exact<{
  cursor?: string | null | undefined;
  limit?: number;
}>;


export type ListUsersQuery = { users: { next_cursor: string | null, items: Array<{ user_id: string, connection_count: number, stream_count: number, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } };

export type UserSummaryQueryVariables = Exact<{
  user_id: string;
}>;


export type UserSummaryQuery = { user: { user_id: string, connection_count: number, stream_count: number, pending_rpc_count: number, connections: { next_cursor: string | null, items: Array<{ status: ConnectionStatus, metadata: unknown, heartbeat: HeartbeatIndicator, user_id: string, client_id: string, instance_id: string, node_id: string, client_type: ClientType, connected_at: string, last_seen_at: string, disconnected_at: string | null, disconnect_cause: DisconnectCause | null, recently_replaced: boolean, replaced_instance_id: string | null, action_names: Array<string> }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } }, streams: { next_cursor: string | null, items: Array<{ suffix: string, stream: string, user_id: string, message_count: number | null, first_at: string | null, last_at: string | null }>, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } }, completeness: { complete: boolean, sources: Array<{ source: EvidenceSource, complete: boolean, observed: number, limit: number | null, reason: IncompleteReason | null, node_id: string | null, as_of: string }> } } | null };

export const AdvertisementFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Advertisement"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"ActionAdvertisement"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"summary"}},{"kind":"Field","name":{"kind":"Name","value":"description"}},{"kind":"Field","name":{"kind":"Name","value":"version"}},{"kind":"Field","alias":{"kind":"Name","value":"checks_arguments"},"name":{"kind":"Name","value":"checksArguments"}},{"kind":"Field","name":{"kind":"Name","value":"schema"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}}]}}]} as unknown as DocumentNode<AdvertisementFragment, unknown>;
export const ObservedFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ObservedFragment, unknown>;
export const SnapshotFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Snapshot"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"ConnectionSnapshot"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_id"},"name":{"kind":"Name","value":"instanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","alias":{"kind":"Name","value":"client_type"},"name":{"kind":"Name","value":"clientType"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}},{"kind":"Field","alias":{"kind":"Name","value":"connected_at"},"name":{"kind":"Name","value":"connectedAt"}},{"kind":"Field","alias":{"kind":"Name","value":"last_seen_at"},"name":{"kind":"Name","value":"lastSeenAt"}},{"kind":"Field","alias":{"kind":"Name","value":"disconnected_at"},"name":{"kind":"Name","value":"disconnectedAt"}},{"kind":"Field","alias":{"kind":"Name","value":"disconnect_cause"},"name":{"kind":"Name","value":"disconnectCause"}},{"kind":"Field","name":{"kind":"Name","value":"heartbeat"}},{"kind":"Field","alias":{"kind":"Name","value":"recently_replaced"},"name":{"kind":"Name","value":"recentlyReplaced"}},{"kind":"Field","alias":{"kind":"Name","value":"replaced_instance_id"},"name":{"kind":"Name","value":"replacedInstanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"action_names"},"name":{"kind":"Name","value":"actionNames"}}]}}]} as unknown as DocumentNode<SnapshotFragment, unknown>;
export const StreamSummaryFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"StreamSummary"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Stream"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"stream"},"name":{"kind":"Name","value":"key"}},{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","name":{"kind":"Name","value":"suffix"}},{"kind":"Field","alias":{"kind":"Name","value":"message_count"},"name":{"kind":"Name","value":"messageCount"}},{"kind":"Field","alias":{"kind":"Name","value":"first_at"},"name":{"kind":"Name","value":"firstAt"}},{"kind":"Field","alias":{"kind":"Name","value":"last_at"},"name":{"kind":"Name","value":"lastAt"}}]}}]} as unknown as DocumentNode<StreamSummaryFragment, unknown>;
export const MessageSummaryFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"MessageSummary"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Message"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"message_id"},"name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"stream"}},{"kind":"Field","name":{"kind":"Name","value":"kind"}},{"kind":"Field","name":{"kind":"Name","value":"at"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_id"},"name":{"kind":"Name","value":"instanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","alias":{"kind":"Name","value":"trace_id"},"name":{"kind":"Name","value":"traceId"}},{"kind":"Field","alias":{"kind":"Name","value":"parent_span_id"},"name":{"kind":"Name","value":"parentSpanId"}},{"kind":"Field","name":{"kind":"Name","value":"payload"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"include"},"value":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}}}]},{"kind":"Field","alias":{"kind":"Name","value":"payload_state"},"name":{"kind":"Name","value":"payloadState"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"include"},"value":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}}}]},{"kind":"Field","alias":{"kind":"Name","value":"payload_bytes"},"name":{"kind":"Name","value":"payloadBytes"}},{"kind":"Field","name":{"kind":"Name","value":"error"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]} as unknown as DocumentNode<MessageSummaryFragment, unknown>;
export const InvokedFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Invoked"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Invocation"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","alias":{"kind":"Name","value":"rpc_id"},"name":{"kind":"Name","value":"rpcId"}},{"kind":"Field","name":{"kind":"Name","value":"outcome"}},{"kind":"Field","name":{"kind":"Name","value":"stage"}},{"kind":"Field","name":{"kind":"Name","value":"execution"}},{"kind":"Field","name":{"kind":"Name","value":"result"}},{"kind":"Field","name":{"kind":"Name","value":"error"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]} as unknown as DocumentNode<InvokedFragment, unknown>;
export const RefusedFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Refused"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"Field","name":{"kind":"Name","value":"by"}},{"kind":"Field","alias":{"kind":"Name","value":"retry_after_ms"},"name":{"kind":"Name","value":"retryAfterMs"}}]}}]} as unknown as DocumentNode<RefusedFragment, unknown>;
export const ConnectionActionsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ConnectionActions"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/connections/{user_id}/{client_id}/actions","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}},{"kind":"Argument","name":{"kind":"Name","value":"body"},"value":{"kind":"StringValue","value":"connection.actions","block":false}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"connection"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"clientId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"actions"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"items"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Advertisement"}}]}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Advertisement"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"ActionAdvertisement"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"summary"}},{"kind":"Field","name":{"kind":"Name","value":"description"}},{"kind":"Field","name":{"kind":"Name","value":"version"}},{"kind":"Field","alias":{"kind":"Name","value":"checks_arguments"},"name":{"kind":"Name","value":"checksArguments"}},{"kind":"Field","name":{"kind":"Name","value":"schema"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ConnectionActionsQuery, ConnectionActionsQueryVariables>;
export const SampleActionsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"SampleActions"},"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/actions","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"actions"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"items"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_id"},"name":{"kind":"Name","value":"instanceId"}},{"kind":"Field","name":{"kind":"Name","value":"action"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Advertisement"}}]}}]}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Advertisement"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"ActionAdvertisement"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"summary"}},{"kind":"Field","name":{"kind":"Name","value":"description"}},{"kind":"Field","name":{"kind":"Name","value":"version"}},{"kind":"Field","alias":{"kind":"Name","value":"checks_arguments"},"name":{"kind":"Name","value":"checksArguments"}},{"kind":"Field","name":{"kind":"Name","value":"schema"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<SampleActionsQuery, SampleActionsQueryVariables>;
export const ListConnectionsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ListConnections"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"status"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ConnectionStatus"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"limit"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},"defaultValue":{"kind":"IntValue","value":"100"}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/connections","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"connections"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"nodeId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"status"},"value":{"kind":"Variable","name":{"kind":"Name","value":"status"}}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}}},{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"limit"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Snapshot"}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Snapshot"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"ConnectionSnapshot"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_id"},"name":{"kind":"Name","value":"instanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","alias":{"kind":"Name","value":"client_type"},"name":{"kind":"Name","value":"clientType"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}},{"kind":"Field","alias":{"kind":"Name","value":"connected_at"},"name":{"kind":"Name","value":"connectedAt"}},{"kind":"Field","alias":{"kind":"Name","value":"last_seen_at"},"name":{"kind":"Name","value":"lastSeenAt"}},{"kind":"Field","alias":{"kind":"Name","value":"disconnected_at"},"name":{"kind":"Name","value":"disconnectedAt"}},{"kind":"Field","alias":{"kind":"Name","value":"disconnect_cause"},"name":{"kind":"Name","value":"disconnectCause"}},{"kind":"Field","name":{"kind":"Name","value":"heartbeat"}},{"kind":"Field","alias":{"kind":"Name","value":"recently_replaced"},"name":{"kind":"Name","value":"recentlyReplaced"}},{"kind":"Field","alias":{"kind":"Name","value":"replaced_instance_id"},"name":{"kind":"Name","value":"replacedInstanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"action_names"},"name":{"kind":"Name","value":"actionNames"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ListConnectionsQuery, ListConnectionsQueryVariables>;
export const ListStreamsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ListStreams"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"prefix"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"limit"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},"defaultValue":{"kind":"IntValue","value":"100"}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/history/streams","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"streams"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"prefix"},"value":{"kind":"Variable","name":{"kind":"Name","value":"prefix"}}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}}},{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"limit"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"StreamSummary"}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"StreamSummary"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Stream"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"stream"},"name":{"kind":"Name","value":"key"}},{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","name":{"kind":"Name","value":"suffix"}},{"kind":"Field","alias":{"kind":"Name","value":"message_count"},"name":{"kind":"Name","value":"messageCount"}},{"kind":"Field","alias":{"kind":"Name","value":"first_at"},"name":{"kind":"Name","value":"firstAt"}},{"kind":"Field","alias":{"kind":"Name","value":"last_at"},"name":{"kind":"Name","value":"lastAt"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ListStreamsQuery, ListStreamsQueryVariables>;
export const ListMessagesDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ListMessages"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"stream"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"after_time"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"DateTime"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"before_time"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"DateTime"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"kinds"}},"type":{"kind":"ListType","type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"MessageKind"}}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Boolean"}}},"defaultValue":{"kind":"BooleanValue","value":false}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"limit"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},"defaultValue":{"kind":"IntValue","value":"100"}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/history/messages","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"messages"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"stream"},"value":{"kind":"Variable","name":{"kind":"Name","value":"stream"}}},{"kind":"Argument","name":{"kind":"Name","value":"afterTime"},"value":{"kind":"Variable","name":{"kind":"Name","value":"after_time"}}},{"kind":"Argument","name":{"kind":"Name","value":"beforeTime"},"value":{"kind":"Variable","name":{"kind":"Name","value":"before_time"}}},{"kind":"Argument","name":{"kind":"Name","value":"kinds"},"value":{"kind":"Variable","name":{"kind":"Name","value":"kinds"}}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}}},{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"limit"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"MessageSummary"}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"MessageSummary"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Message"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"message_id"},"name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"stream"}},{"kind":"Field","name":{"kind":"Name","value":"kind"}},{"kind":"Field","name":{"kind":"Name","value":"at"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_id"},"name":{"kind":"Name","value":"instanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","alias":{"kind":"Name","value":"trace_id"},"name":{"kind":"Name","value":"traceId"}},{"kind":"Field","alias":{"kind":"Name","value":"parent_span_id"},"name":{"kind":"Name","value":"parentSpanId"}},{"kind":"Field","name":{"kind":"Name","value":"payload"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"include"},"value":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}}}]},{"kind":"Field","alias":{"kind":"Name","value":"payload_state"},"name":{"kind":"Name","value":"payloadState"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"include"},"value":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}}}]},{"kind":"Field","alias":{"kind":"Name","value":"payload_bytes"},"name":{"kind":"Name","value":"payloadBytes"}},{"kind":"Field","name":{"kind":"Name","value":"error"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ListMessagesQuery, ListMessagesQueryVariables>;
export const ListCommandMessagesDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ListCommandMessages"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Boolean"}}},"defaultValue":{"kind":"BooleanValue","value":false}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"limit"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},"defaultValue":{"kind":"IntValue","value":"100"}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/history/command/{user_id}/{command_id}","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"commandHistory"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"commandId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}}},{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"limit"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"MessageSummary"}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"MessageSummary"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Message"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"message_id"},"name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"stream"}},{"kind":"Field","name":{"kind":"Name","value":"kind"}},{"kind":"Field","name":{"kind":"Name","value":"at"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_id"},"name":{"kind":"Name","value":"instanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","alias":{"kind":"Name","value":"trace_id"},"name":{"kind":"Name","value":"traceId"}},{"kind":"Field","alias":{"kind":"Name","value":"parent_span_id"},"name":{"kind":"Name","value":"parentSpanId"}},{"kind":"Field","name":{"kind":"Name","value":"payload"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"include"},"value":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}}}]},{"kind":"Field","alias":{"kind":"Name","value":"payload_state"},"name":{"kind":"Name","value":"payloadState"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"include"},"value":{"kind":"Variable","name":{"kind":"Name","value":"include_payload"}}}]},{"kind":"Field","alias":{"kind":"Name","value":"payload_bytes"},"name":{"kind":"Name","value":"payloadBytes"}},{"kind":"Field","name":{"kind":"Name","value":"error"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ListCommandMessagesQuery, ListCommandMessagesQueryVariables>;
export const ListPendingRpcsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ListPendingRpcs"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"caller_node_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"min_age_ms"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"check_instance"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"limit"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},"defaultValue":{"kind":"IntValue","value":"100"}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/rpc/pending","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"pendingRpcs"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"filter"},"value":{"kind":"ObjectValue","fields":[{"kind":"ObjectField","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"clientId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"nodeId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"callerNodeId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"caller_node_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"minAgeMs"},"value":{"kind":"Variable","name":{"kind":"Name","value":"min_age_ms"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"checkInstance"},"value":{"kind":"Variable","name":{"kind":"Name","value":"check_instance"}}}]}},{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}}},{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"limit"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"rpc_id"},"name":{"kind":"Name","value":"rpcId"}},{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","name":{"kind":"Name","value":"action"}},{"kind":"Field","alias":{"kind":"Name","value":"wait_for"},"name":{"kind":"Name","value":"waitFor"}},{"kind":"Field","alias":{"kind":"Name","value":"expected_instance_id"},"name":{"kind":"Name","value":"expectedInstanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","alias":{"kind":"Name","value":"caller_node_id"},"name":{"kind":"Name","value":"callerNodeId"}},{"kind":"Field","alias":{"kind":"Name","value":"created_at"},"name":{"kind":"Name","value":"createdAt"}},{"kind":"Field","alias":{"kind":"Name","value":"times_out_at"},"name":{"kind":"Name","value":"timesOutAt"}},{"kind":"Field","alias":{"kind":"Name","value":"age_ms"},"name":{"kind":"Name","value":"ageMs"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_mismatch"},"name":{"kind":"Name","value":"instanceMismatch"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"expected_instance_id"},"name":{"kind":"Name","value":"expectedInstanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"observed_instance_id"},"name":{"kind":"Name","value":"observedInstanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"observed_at"},"name":{"kind":"Name","value":"observedAt"}}]}},{"kind":"Field","name":{"kind":"Name","value":"stage"}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ListPendingRpcsQuery, ListPendingRpcsQueryVariables>;
export const CountPendingRpcsDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"CountPendingRpcs"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"caller_node_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"min_age_ms"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/rpc/pending/count","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"pendingRpcCount"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"filter"},"value":{"kind":"ObjectValue","fields":[{"kind":"ObjectField","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"clientId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"nodeId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"callerNodeId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"caller_node_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"minAgeMs"},"value":{"kind":"Variable","name":{"kind":"Name","value":"min_age_ms"}}}]}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"count"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<CountPendingRpcsQuery, CountPendingRpcsQueryVariables>;
export const CountPendingRpcsByNodeDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"CountPendingRpcsByNode"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"caller_node_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"min_age_ms"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/rpc/pending/count-by-node","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"pendingRpcCountByNode"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"filter"},"value":{"kind":"ObjectValue","fields":[{"kind":"ObjectField","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"clientId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"nodeId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"node_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"callerNodeId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"caller_node_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"minAgeMs"},"value":{"kind":"Variable","name":{"kind":"Name","value":"min_age_ms"}}}]}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"items"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"count"}}]}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<CountPendingRpcsByNodeQuery, CountPendingRpcsByNodeQueryVariables>;
export const InvokeActionDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"InvokeAction"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"action"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"params"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"JSON"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"wait_for"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"WaitStage"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"connect_within_ms"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"respond_within_ms"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"instance_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"trace_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"parent_span_id"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"post"},"value":{"kind":"StringValue","value":"/connections/{user_id}/{client_id}/actions/{action}","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"INVOKE"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"invokeAction"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"ObjectValue","fields":[{"kind":"ObjectField","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"clientId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"action"},"value":{"kind":"Variable","name":{"kind":"Name","value":"action"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"params"},"value":{"kind":"Variable","name":{"kind":"Name","value":"params"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"commandId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"waitFor"},"value":{"kind":"Variable","name":{"kind":"Name","value":"wait_for"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"connectWithinMs"},"value":{"kind":"Variable","name":{"kind":"Name","value":"connect_within_ms"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"respondWithinMs"},"value":{"kind":"Variable","name":{"kind":"Name","value":"respond_within_ms"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"instanceId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"instance_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"traceId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"trace_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"parentSpanId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"parent_span_id"}}}]}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Invoked"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"Refused"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Invoked"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Invocation"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","alias":{"kind":"Name","value":"rpc_id"},"name":{"kind":"Name","value":"rpcId"}},{"kind":"Field","name":{"kind":"Name","value":"outcome"}},{"kind":"Field","name":{"kind":"Name","value":"stage"}},{"kind":"Field","name":{"kind":"Name","value":"execution"}},{"kind":"Field","name":{"kind":"Name","value":"result"}},{"kind":"Field","name":{"kind":"Name","value":"error"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Refused"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"Field","name":{"kind":"Name","value":"by"}},{"kind":"Field","alias":{"kind":"Name","value":"retry_after_ms"},"name":{"kind":"Name","value":"retryAfterMs"}}]}}]} as unknown as DocumentNode<InvokeActionMutation, InvokeActionMutationVariables>;
export const AwaitCommandDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"AwaitCommand"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"wait_for"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"WaitStage"}}},"defaultValue":{"kind":"EnumValue","value":"COMPLETED"}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"within_ms"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},"defaultValue":{"kind":"IntValue","value":"0"}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/commands/{user_id}/{client_id}/{command_id}","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"INVOKE"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"awaitCommand"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"clientId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"commandId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}}},{"kind":"Argument","name":{"kind":"Name","value":"waitFor"},"value":{"kind":"Variable","name":{"kind":"Name","value":"wait_for"}}},{"kind":"Argument","name":{"kind":"Name","value":"withinMs"},"value":{"kind":"Variable","name":{"kind":"Name","value":"within_ms"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Invoked"}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"Refused"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Invoked"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Invocation"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","alias":{"kind":"Name","value":"rpc_id"},"name":{"kind":"Name","value":"rpcId"}},{"kind":"Field","name":{"kind":"Name","value":"outcome"}},{"kind":"Field","name":{"kind":"Name","value":"stage"}},{"kind":"Field","name":{"kind":"Name","value":"execution"}},{"kind":"Field","name":{"kind":"Name","value":"result"}},{"kind":"Field","name":{"kind":"Name","value":"error"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Refused"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"Field","name":{"kind":"Name","value":"by"}},{"kind":"Field","alias":{"kind":"Name","value":"retry_after_ms"},"name":{"kind":"Name","value":"retryAfterMs"}}]}}]} as unknown as DocumentNode<AwaitCommandMutation, AwaitCommandMutationVariables>;
export const CancelCommandDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"CancelCommand"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"reason"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"post"},"value":{"kind":"StringValue","value":"/commands/{user_id}/{client_id}/{command_id}/cancel","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"INVOKE"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"cancelCommand"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"ObjectValue","fields":[{"kind":"ObjectField","name":{"kind":"Name","value":"userId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"clientId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"client_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"commandId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"command_id"}}},{"kind":"ObjectField","name":{"kind":"Name","value":"reason"},"value":{"kind":"Variable","name":{"kind":"Name","value":"reason"}}}]}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"InlineFragment","typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"CancelReceipt"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"state"}},{"kind":"Field","name":{"kind":"Name","value":"command"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"command_id"},"name":{"kind":"Name","value":"commandId"}},{"kind":"Field","name":{"kind":"Name","value":"action"}},{"kind":"Field","name":{"kind":"Name","value":"outcome"}},{"kind":"Field","name":{"kind":"Name","value":"delivery"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"stage"}},{"kind":"Field","alias":{"kind":"Name","value":"last_proven_stage"},"name":{"kind":"Name","value":"lastProvenStage"}},{"kind":"Field","name":{"kind":"Name","value":"execution"}},{"kind":"Field","alias":{"kind":"Name","value":"cancel_requested_at"},"name":{"kind":"Name","value":"cancelRequestedAt"}},{"kind":"Field","alias":{"kind":"Name","value":"terminal_at"},"name":{"kind":"Name","value":"terminalAt"}}]}},{"kind":"Field","name":{"kind":"Name","value":"error"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}}]}}]}}]}},{"kind":"FragmentSpread","name":{"kind":"Name","value":"Refused"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Refused"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Refusal"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"code"}},{"kind":"Field","name":{"kind":"Name","value":"message"}},{"kind":"Field","name":{"kind":"Name","value":"by"}},{"kind":"Field","alias":{"kind":"Name","value":"retry_after_ms"},"name":{"kind":"Name","value":"retryAfterMs"}}]}}]} as unknown as DocumentNode<CancelCommandMutation, CancelCommandMutationVariables>;
export const ListUsersDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"ListUsers"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"String"}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"limit"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}},"defaultValue":{"kind":"IntValue","value":"100"}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/users","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"users"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"after"},"value":{"kind":"Variable","name":{"kind":"Name","value":"cursor"}}},{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"Variable","name":{"kind":"Name","value":"limit"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"id"}},{"kind":"Field","alias":{"kind":"Name","value":"connection_count"},"name":{"kind":"Name","value":"connectionCount"}},{"kind":"Field","alias":{"kind":"Name","value":"stream_count"},"name":{"kind":"Name","value":"streamCount"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}}]} as unknown as DocumentNode<ListUsersQuery, ListUsersQueryVariables>;
export const UserSummaryDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"UserSummary"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"directives":[{"kind":"Directive","name":{"kind":"Name","value":"rest"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"get"},"value":{"kind":"StringValue","value":"/users/{user_id}","block":false}},{"kind":"Argument","name":{"kind":"Name","value":"access"},"value":{"kind":"EnumValue","value":"ADMIN"}}]}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"user"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"id"},"value":{"kind":"Variable","name":{"kind":"Name","value":"user_id"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"id"}},{"kind":"Field","alias":{"kind":"Name","value":"connection_count"},"name":{"kind":"Name","value":"connectionCount"}},{"kind":"Field","alias":{"kind":"Name","value":"stream_count"},"name":{"kind":"Name","value":"streamCount"}},{"kind":"Field","alias":{"kind":"Name","value":"pending_rpc_count"},"name":{"kind":"Name","value":"pendingRpcCount"}},{"kind":"Field","name":{"kind":"Name","value":"connections"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"IntValue","value":"100"}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Snapshot"}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}},{"kind":"Field","name":{"kind":"Name","value":"streams"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"IntValue","value":"100"}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"items"},"name":{"kind":"Name","value":"nodes"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"StreamSummary"}}]}},{"kind":"Field","alias":{"kind":"Name","value":"next_cursor"},"name":{"kind":"Name","value":"nextCursor"}},{"kind":"Field","name":{"kind":"Name","value":"completeness"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}},{"kind":"Field","alias":{"kind":"Name","value":"completeness"},"name":{"kind":"Name","value":"summaryCompleteness"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"first"},"value":{"kind":"IntValue","value":"100"}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"Observed"}}]}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Snapshot"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"ConnectionSnapshot"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","alias":{"kind":"Name","value":"client_id"},"name":{"kind":"Name","value":"clientId"}},{"kind":"Field","alias":{"kind":"Name","value":"instance_id"},"name":{"kind":"Name","value":"instanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","alias":{"kind":"Name","value":"client_type"},"name":{"kind":"Name","value":"clientType"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}},{"kind":"Field","alias":{"kind":"Name","value":"connected_at"},"name":{"kind":"Name","value":"connectedAt"}},{"kind":"Field","alias":{"kind":"Name","value":"last_seen_at"},"name":{"kind":"Name","value":"lastSeenAt"}},{"kind":"Field","alias":{"kind":"Name","value":"disconnected_at"},"name":{"kind":"Name","value":"disconnectedAt"}},{"kind":"Field","alias":{"kind":"Name","value":"disconnect_cause"},"name":{"kind":"Name","value":"disconnectCause"}},{"kind":"Field","name":{"kind":"Name","value":"heartbeat"}},{"kind":"Field","alias":{"kind":"Name","value":"recently_replaced"},"name":{"kind":"Name","value":"recentlyReplaced"}},{"kind":"Field","alias":{"kind":"Name","value":"replaced_instance_id"},"name":{"kind":"Name","value":"replacedInstanceId"}},{"kind":"Field","alias":{"kind":"Name","value":"action_names"},"name":{"kind":"Name","value":"actionNames"}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"Observed"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Completeness"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"sources"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"source"}},{"kind":"Field","alias":{"kind":"Name","value":"node_id"},"name":{"kind":"Name","value":"nodeId"}},{"kind":"Field","name":{"kind":"Name","value":"complete"}},{"kind":"Field","name":{"kind":"Name","value":"observed"}},{"kind":"Field","name":{"kind":"Name","value":"limit"}},{"kind":"Field","name":{"kind":"Name","value":"reason"}},{"kind":"Field","alias":{"kind":"Name","value":"as_of"},"name":{"kind":"Name","value":"asOf"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"StreamSummary"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"Stream"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","alias":{"kind":"Name","value":"stream"},"name":{"kind":"Name","value":"key"}},{"kind":"Field","alias":{"kind":"Name","value":"user_id"},"name":{"kind":"Name","value":"userId"}},{"kind":"Field","name":{"kind":"Name","value":"suffix"}},{"kind":"Field","alias":{"kind":"Name","value":"message_count"},"name":{"kind":"Name","value":"messageCount"}},{"kind":"Field","alias":{"kind":"Name","value":"first_at"},"name":{"kind":"Name","value":"firstAt"}},{"kind":"Field","alias":{"kind":"Name","value":"last_at"},"name":{"kind":"Name","value":"lastAt"}}]}}]} as unknown as DocumentNode<UserSummaryQuery, UserSummaryQueryVariables>;