/**
 * Where the documents of the command line have enums, by operation: which variables, and which members of the data (as
 * names joined by dots), with the name of the enum.
 */
export const ENUM_PLACES: Readonly<
  Record<string, { readonly variables: Readonly<Record<string, string>>; readonly data: Readonly<Record<string, string>> }>
> = {
  "GetServer": {
    "variables": {},
    "data": {
      "viewer.kind": "ViewerKind",
      "viewer.scopes": "Scope"
    }
  },
  "GetStatus": {
    "variables": {},
    "data": {
      "server.mode": "Mode",
      "delivery.nodes.completeness.sources.source": "EvidenceSource",
      "delivery.nodes.completeness.sources.reason": "IncompleteReason",
      "waits.completeness.sources.source": "EvidenceSource",
      "waits.completeness.sources.reason": "IncompleteReason",
      "series.completeness.sources.source": "EvidenceSource",
      "series.completeness.sources.reason": "IncompleteReason"
    }
  },
  "GetBusyClients": {
    "variables": {},
    "data": {
      "connections.items.client_type": "ClientType"
    }
  },
  "GetClient": {
    "variables": {},
    "data": {
      "connection.status": "ConnectionStatus",
      "connection.client_type": "ClientType",
      "connection.disconnect_cause": "DisconnectCause",
      "connection.heartbeat": "HeartbeatIndicator",
      "connection.predecessors.cause": "DisconnectCause"
    }
  },
  "ListFlappingClients": {
    "variables": {},
    "data": {
      "flapping.items.connection.status": "ConnectionStatus",
      "flapping.items.connection.disconnect_cause": "DisconnectCause",
      "flapping.completeness.sources.source": "EvidenceSource",
      "flapping.completeness.sources.reason": "IncompleteReason"
    }
  },
  "WatchClients": {
    "variables": {},
    "data": {
      "connectionEvents.change": "ConnectionChange",
      "connectionEvents.cause": "DisconnectCause",
      "connectionEvents.connection.status": "ConnectionStatus",
      "connectionEvents.connection.client_type": "ClientType",
      "connectionEvents.connection.disconnect_cause": "DisconnectCause"
    }
  },
  "ListActions": {
    "variables": {},
    "data": {
      "actions.completeness.sources.source": "EvidenceSource",
      "actions.completeness.sources.reason": "IncompleteReason"
    }
  },
  "GetCall": {
    "variables": {},
    "data": {
      "command.outcome": "Outcome",
      "command.delivery.client_type": "ClientType",
      "command.delivery.stage": "Stage",
      "command.delivery.outcome": "Outcome",
      "command.delivery.last_proven_stage": "Stage",
      "command.delivery.execution": "ExecutionEvidence",
      "command.delivery.caller.kind": "CommandCallerKind",
      "command.waiters.caller.kind": "CommandCallerKind",
      "command.waiters.wait_for": "WaitStage",
      "command.history.items.kind": "MessageKind",
      "command.history.completeness.sources.source": "EvidenceSource",
      "command.history.completeness.sources.reason": "IncompleteReason"
    }
  },
  "TailCalls": {
    "variables": {
      "client_type": "ClientType",
      "outcomes": "Outcome"
    },
    "data": {
      "commandEvents.event": "CommandEventStage",
      "commandEvents.record.client_type": "ClientType",
      "commandEvents.record.stage": "Stage",
      "commandEvents.record.outcome": "Outcome",
      "commandEvents.record.last_proven_stage": "Stage",
      "commandEvents.record.execution": "ExecutionEvidence",
      "commandEvents.record.caller.kind": "CommandCallerKind"
    }
  },
  "RevealPayload": {
    "variables": {
      "subject": "RevealSubject"
    },
    "data": {
      "revealPayload.code": "RefusalCode",
      "revealPayload.by": "RefusedBy",
      "revealPayload.pause.by.kind": "PauseAuthorKind"
    }
  },
  "WatchWaits": {
    "variables": {},
    "data": {
      "pendingRpcAlerts.oldest.caller.kind": "CommandCallerKind",
      "pendingRpcAlerts.oldest.stage": "Stage"
    }
  },
  "FollowMessages": {
    "variables": {
      "kinds": "MessageKind",
      "order": "MessageOrder"
    },
    "data": {
      "messages.items.kind": "MessageKind",
      "messages.items.payload_state": "PayloadState",
      "messages.items.link.client_type": "ClientType",
      "messages.items.link.cause": "DisconnectCause"
    }
  },
  "ListAudit": {
    "variables": {
      "action": "OperatorAction"
    },
    "data": {
      "auditEvents.items.action": "OperatorAction",
      "auditEvents.completeness.sources.source": "EvidenceSource",
      "auditEvents.completeness.sources.reason": "IncompleteReason"
    }
  },
  "ConnectionActions": {
    "variables": {},
    "data": {
      "connection.actions.completeness.sources.source": "EvidenceSource",
      "connection.actions.completeness.sources.reason": "IncompleteReason"
    }
  },
  "ListConnections": {
    "variables": {
      "status": "ConnectionStatus",
      "client_type": "ClientType"
    },
    "data": {
      "connections.items.status": "ConnectionStatus",
      "connections.items.client_type": "ClientType",
      "connections.items.disconnect_cause": "DisconnectCause",
      "connections.items.heartbeat": "HeartbeatIndicator",
      "connections.items.predecessors.cause": "DisconnectCause",
      "connections.completeness.sources.source": "EvidenceSource",
      "connections.completeness.sources.reason": "IncompleteReason"
    }
  },
  "ListContexts": {
    "variables": {
      "client_type": "ClientType",
      "status": "ContextStatus",
      "ownership": "Ownership"
    },
    "data": {
      "contexts.items.client_type": "ClientType",
      "contexts.items.status": "ContextStatus",
      "contexts.items.ownership": "Ownership",
      "contexts.completeness.sources.source": "EvidenceSource",
      "contexts.completeness.sources.reason": "IncompleteReason"
    }
  },
  "ListBrowserWindows": {
    "variables": {
      "client_type": "ClientType",
      "status": "WindowStatus",
      "ownership": "Ownership"
    },
    "data": {
      "browserWindows.items.client_type": "ClientType",
      "browserWindows.items.ownership": "Ownership",
      "browserWindows.items.status": "WindowStatus",
      "browserWindows.items.counts_from": "CountsFrom",
      "browserWindows.completeness.sources.source": "EvidenceSource",
      "browserWindows.completeness.sources.reason": "IncompleteReason"
    }
  },
  "ListDeliveryCommands": {
    "variables": {
      "stage": "Stage",
      "outcome": "Outcome",
      "outcomes": "Outcome",
      "client_type": "ClientType",
      "caller_kind": "CommandCallerKind",
      "order": "CommandOrder"
    },
    "data": {
      "delivery.commands.items.client_type": "ClientType",
      "delivery.commands.items.stage": "Stage",
      "delivery.commands.items.outcome": "Outcome",
      "delivery.commands.items.last_proven_stage": "Stage",
      "delivery.commands.items.execution": "ExecutionEvidence",
      "delivery.commands.items.caller.kind": "CommandCallerKind",
      "delivery.commands.completeness.sources.source": "EvidenceSource",
      "delivery.commands.completeness.sources.reason": "IncompleteReason"
    }
  },
  "GroupFailures": {
    "variables": {
      "by": "FailureKey",
      "outcomes": "Outcome",
      "caller_kind": "CommandCallerKind"
    },
    "data": {
      "delivery.failures.items.last.client_type": "ClientType",
      "delivery.failures.items.last.stage": "Stage",
      "delivery.failures.items.last.outcome": "Outcome",
      "delivery.failures.items.last.last_proven_stage": "Stage",
      "delivery.failures.items.last.execution": "ExecutionEvidence",
      "delivery.failures.items.last.caller.kind": "CommandCallerKind",
      "delivery.failures.outcomes.outcome": "Outcome",
      "delivery.failures.completeness.sources.source": "EvidenceSource",
      "delivery.failures.completeness.sources.reason": "IncompleteReason"
    }
  },
  "FindCommands": {
    "variables": {},
    "data": {
      "findCommands.items.client_type": "ClientType",
      "findCommands.items.stage": "Stage",
      "findCommands.items.outcome": "Outcome",
      "findCommands.items.last_proven_stage": "Stage",
      "findCommands.items.execution": "ExecutionEvidence",
      "findCommands.items.caller.kind": "CommandCallerKind",
      "findCommands.completeness.sources.source": "EvidenceSource",
      "findCommands.completeness.sources.reason": "IncompleteReason"
    }
  },
  "DisconnectClient": {
    "variables": {},
    "data": {
      "disconnectClient.state": "DisconnectState",
      "disconnectClient.connection.status": "ConnectionStatus",
      "disconnectClient.connection.client_type": "ClientType",
      "disconnectClient.connection.disconnect_cause": "DisconnectCause",
      "disconnectClient.connection.heartbeat": "HeartbeatIndicator",
      "disconnectClient.connection.predecessors.cause": "DisconnectCause",
      "disconnectClient.code": "RefusalCode",
      "disconnectClient.by": "RefusedBy",
      "disconnectClient.pause.by.kind": "PauseAuthorKind"
    }
  },
  "ListStreams": {
    "variables": {},
    "data": {
      "streams.completeness.sources.source": "EvidenceSource",
      "streams.completeness.sources.reason": "IncompleteReason"
    }
  },
  "ListMessages": {
    "variables": {
      "kinds": "MessageKind",
      "order": "MessageOrder"
    },
    "data": {
      "messages.items.kind": "MessageKind",
      "messages.items.payload_state": "PayloadState",
      "messages.items.link.client_type": "ClientType",
      "messages.items.link.cause": "DisconnectCause",
      "messages.completeness.sources.source": "EvidenceSource",
      "messages.completeness.sources.reason": "IncompleteReason"
    }
  },
  "ListPendingRpcs": {
    "variables": {
      "caller_kind": "CommandCallerKind"
    },
    "data": {
      "pendingRpcs.items.wait_for": "WaitStage",
      "pendingRpcs.items.caller.kind": "CommandCallerKind",
      "pendingRpcs.items.stage": "Stage",
      "pendingRpcs.completeness.sources.source": "EvidenceSource",
      "pendingRpcs.completeness.sources.reason": "IncompleteReason"
    }
  },
  "CountPendingRpcs": {
    "variables": {
      "caller_kind": "CommandCallerKind"
    },
    "data": {
      "pendingRpcCount.completeness.sources.source": "EvidenceSource",
      "pendingRpcCount.completeness.sources.reason": "IncompleteReason"
    }
  },
  "UserSummary": {
    "variables": {},
    "data": {
      "user.connections.items.status": "ConnectionStatus",
      "user.connections.items.client_type": "ClientType",
      "user.connections.items.disconnect_cause": "DisconnectCause",
      "user.connections.items.heartbeat": "HeartbeatIndicator",
      "user.connections.items.predecessors.cause": "DisconnectCause",
      "user.connections.completeness.sources.source": "EvidenceSource",
      "user.connections.completeness.sources.reason": "IncompleteReason",
      "user.streams.completeness.sources.source": "EvidenceSource",
      "user.streams.completeness.sources.reason": "IncompleteReason",
      "user.completeness.sources.source": "EvidenceSource",
      "user.completeness.sources.reason": "IncompleteReason"
    }
  }
};

/** The REST words for the values of each enum. */
export const ENUM_WORDS = {
  "EvidenceSource": {
    "CONNECTIONS": "connections",
    "STREAMS": "streams",
    "PENDING_RPCS": "pending_rpcs",
    "ACTIONS": "actions",
    "MESSAGES": "messages",
    "DELIVERY": "delivery",
    "CONTEXTS": "contexts",
    "WINDOWS": "windows",
    "SITES": "sites",
    "AUDIT": "audit",
    "METRICS": "metrics",
    "REVOCATIONS": "revocations",
    "DEVICES": "devices"
  },
  "IncompleteReason": {
    "LIMIT_REACHED": "limit_reached",
    "NODE_SILENT": "node_silent",
    "STORE_UNAVAILABLE": "store_unavailable",
    "EVICTED": "evicted",
    "NOT_SUPPORTED": "not_supported",
    "AWAITING_REPORTS": "awaiting_reports"
  },
  "RefusalCode": {
    "invalid_argument": "invalid_argument",
    "invalid_cursor": "invalid_cursor",
    "invalid_user": "invalid_user",
    "reserved_parameter": "reserved_parameter",
    "reserved_stream": "reserved_stream",
    "too_complex": "too_complex",
    "graphql_parse_failed": "graphql_parse_failed",
    "graphql_validation_failed": "graphql_validation_failed",
    "persisted_query_not_supported": "persisted_query_not_supported",
    "unauthenticated": "unauthenticated",
    "forbidden": "forbidden",
    "policy_denied": "policy_denied",
    "raw_history_disabled": "raw_history_disabled",
    "site_action_denied": "site_action_denied",
    "site_mode_denied": "site_mode_denied",
    "site_capability_denied": "site_capability_denied",
    "not_found": "not_found",
    "action_not_advertised": "action_not_advertised",
    "method_not_allowed": "method_not_allowed",
    "not_acceptable": "not_acceptable",
    "ambiguous": "ambiguous",
    "command_conflict": "command_conflict",
    "stale_instance": "stale_instance",
    "instance_mismatch": "instance_mismatch",
    "not_connected": "not_connected",
    "context_gone": "context_gone",
    "context_unsupported": "context_unsupported",
    "paused": "paused",
    "session_inactive": "session_inactive",
    "payload_too_large": "payload_too_large",
    "unsupported_media_type": "unsupported_media_type",
    "capacity_exceeded": "capacity_exceeded",
    "queue_full": "queue_full",
    "rate_limited": "rate_limited",
    "share_exceeded": "share_exceeded",
    "internal": "internal",
    "not_supported": "not_supported",
    "store_unavailable": "store_unavailable",
    "draining": "draining",
    "audit_unavailable": "audit_unavailable",
    "store_full": "store_full",
    "runtime_disconnected": "runtime_disconnected",
    "connect_timeout": "connect_timeout",
    "queue_timeout": "queue_timeout",
    "response_timeout": "response_timeout",
    "instance_replaced": "instance_replaced",
    "node_lost": "node_lost",
    "store_lost": "store_lost",
    "client_denied": "client_denied",
    "approval_denied": "approval_denied",
    "arguments_invalid": "arguments_invalid",
    "lease_busy": "lease_busy",
    "unknown_action": "unknown_action",
    "too_late": "too_late",
    "handler_failed": "handler_failed",
    "result_unavailable": "result_unavailable",
    "client_timeout": "client_timeout",
    "not_received": "not_received",
    "result_expired": "result_expired",
    "cancelled": "cancelled"
  },
  "RefusedBy": {
    "TOKEN": "token",
    "ADDRESS": "address",
    "POLICY": "policy",
    "PAUSE": "pause",
    "ARGUMENTS": "arguments",
    "CAPACITY": "capacity",
    "TARGET": "target",
    "PLACE": "place",
    "CONFLICT": "conflict",
    "SITE": "site",
    "RELAY": "relay"
  },
  "PauseAuthorKind": {
    "ADMIN": "admin",
    "USER": "user",
    "CLIENT": "client"
  },
  "OperatorAction": {
    "DISCONNECT": "disconnect",
    "DRAIN": "drain",
    "CANCEL": "cancel",
    "PAYLOAD": "payload",
    "REVEAL": "reveal",
    "PAUSE": "pause",
    "RESUME": "resume",
    "REVOKE": "revoke",
    "ENROL": "enrol",
    "RENAME": "rename"
  },
  "RevealSubject": {
    "COMMAND_PARAMS": "command_params",
    "COMMAND_RESULT": "command_result",
    "MESSAGE": "message"
  },
  "ConnectionStatus": {
    "CONNECTED": "connected",
    "DISCONNECTED": "disconnected",
    "STALE": "stale"
  },
  "ClientType": {
    "BROWSER": "browser",
    "CONSOLE": "console",
    "MOBILE": "mobile",
    "WEB": "web"
  },
  "HeartbeatIndicator": {
    "OK": "ok",
    "LATE": "late",
    "MISSED": "missed"
  },
  "DisconnectCause": {
    "CLIENT_CLOSED": "client_closed",
    "LOST": "lost",
    "RESET": "reset",
    "ERROR": "error",
    "REPLACED": "replaced",
    "HEARTBEAT_LOST": "heartbeat_lost",
    "TOKEN_EXPIRED": "token_expired",
    "PROTOCOL_ERROR": "protocol_error",
    "BACK_PRESSURE": "back_pressure",
    "NODE_DRAINED": "node_drained",
    "NODE_LOST": "node_lost",
    "OPERATOR": "operator"
  },
  "ConnectionChange": {
    "CONNECTED": "connected",
    "RESUMED": "resumed",
    "REPLACED": "replaced",
    "STALE": "stale",
    "DISCONNECTED": "disconnected",
    "ACTIONS_CHANGED": "actions_changed"
  },
  "ViewerKind": {
    "ADMIN": "admin",
    "USER": "user"
  },
  "Scope": {
    "CONNECT": "connect",
    "INVOKE": "invoke",
    "HOST": "host",
    "MCP": "mcp"
  },
  "Mode": {
    "DIRECT": "direct",
    "SHARED": "shared"
  },
  "Stage": {
    "ADMITTED": "admitted",
    "QUEUED": "queued",
    "DISPATCHED": "dispatched",
    "ACKNOWLEDGED": "acknowledged",
    "TERMINAL": "terminal"
  },
  "Outcome": {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "EXPIRED": "expired",
    "OUTCOME_UNKNOWN": "outcome_unknown"
  },
  "ExecutionEvidence": {
    "NOT_WRITTEN": "not_written",
    "REFUSED_BY_CLIENT": "refused_by_client",
    "MAY_HAVE_RUN": "may_have_run",
    "REPORTED_BY_CLIENT": "reported_by_client"
  },
  "CommandCallerKind": {
    "ADMIN": "admin",
    "USER": "user",
    "GRANT": "grant",
    "MCP": "mcp"
  },
  "CommandOrder": {
    "KEY": "key",
    "NEWEST": "newest"
  },
  "MessageKind": {
    "COMMAND": "command",
    "PROGRESS": "progress",
    "RESULT": "result",
    "ERROR": "error",
    "CANCEL": "cancel",
    "EVENT": "event",
    "LATE_RESULT": "late_result",
    "LINK_OPENED": "link_opened",
    "LINK_CLOSED": "link_closed",
    "LINK_REPLACED": "link_replaced",
    "RELAY_AWAY": "relay_away"
  },
  "MessageOrder": {
    "OLDEST_FIRST": "oldest_first",
    "NEWEST_FIRST": "newest_first"
  },
  "PayloadState": {
    "REDACTED": "redacted",
    "INCLUDED": "included",
    "SPILLED_INCLUDED": "spilled_included",
    "EXPIRED": "expired",
    "UNAVAILABLE": "unavailable",
    "NONE": "none"
  },
  "WaitStage": {
    "ADMITTED": "admitted",
    "ACKNOWLEDGED": "acknowledged",
    "COMPLETED": "completed"
  },
  "CommandEventStage": {
    "ADMITTED": "admitted",
    "DISPATCHED": "dispatched",
    "ACKNOWLEDGED": "acknowledged",
    "ENDED": "ended",
    "LATE": "late"
  },
  "FailureKey": {
    "ACTION": "action",
    "CODE": "code",
    "CLIENT": "client",
    "NODE": "node"
  },
  "ContextStatus": {
    "ACTIVE": "active",
    "IDLE": "idle",
    "CLOSED": "closed",
    "STALE": "stale"
  },
  "Ownership": {
    "USER_OWNED": "user-owned",
    "WORKER": "worker"
  },
  "WindowStatus": {
    "OPEN": "open",
    "STALE": "stale",
    "CLOSED": "closed"
  },
  "CountsFrom": {
    "CONTEXTS": "contexts",
    "SNAPSHOT": "snapshot"
  },
  "DisconnectState": {
    "CLOSED": "closed",
    "REQUESTED": "requested"
  }
} as const;
