/**
 * The error codes with their HTTP statuses, the words for a command's state, and the close codes of links. GraphQL,
 * REST and links use the same codes. Imports nothing, because the client libraries share it.
 */

export const CODES = {
  // The request is invalid.
  invalid_argument: 400,
  invalid_cursor: 400,
  invalid_user: 400,
  reserved_parameter: 400,
  reserved_stream: 400,
  too_complex: 400,
  graphql_parse_failed: 400,
  graphql_validation_failed: 400,
  persisted_query_not_supported: 400,
  // The requester is unknown or has no permission.
  unauthenticated: 401,
  forbidden: 403,
  policy_denied: 403,
  raw_history_disabled: 403,
  site_action_denied: 403,
  site_mode_denied: 403,
  site_capability_denied: 403,
  // The requested object is missing, in conflict, or in a state that does not permit the request.
  not_found: 404,
  action_not_advertised: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  /** Several objects match the request. A further parameter must select one. */
  ambiguous: 409,
  command_conflict: 409,
  stale_instance: 409,
  instance_mismatch: 409,
  not_connected: 409,
  /** The client does not report the context that the call names, or reports it in a later life. */
  context_gone: 409,
  /** The call names a context, and the client does not support such commands. */
  context_unsupported: 409,
  /** A pause covers the call. The answer contains who set it, why, and until when. Nothing ran. */
  paused: 409,
  session_inactive: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  // A limit is reached.
  capacity_exceeded: 429,
  queue_full: 429,
  rate_limited: 429,
  /**
   * The user holds more than its guarantee of a resource of which there is too little. `share`: the name of the
   * resource.
   */
  share_exceeded: 429,
  // The relay cannot answer.
  internal: 500,
  /** The store of this deployment does not support the request. */
  not_supported: 501,
  store_unavailable: 503,
  draining: 503,
  /** The audit row cannot be written, so the administrator's request was not carried out. */
  audit_unavailable: 503,
  /** The relay's total of a resource is used up. `share`: the name of the resource. */
  store_full: 503,
  runtime_disconnected: 503,
  // Ends of admitted commands that the relay decides.
  connect_timeout: 504,
  queue_timeout: 504,
  response_timeout: 504,
  instance_replaced: 504,
  node_lost: 504,
  store_lost: 504,
  // Ends of admitted commands that the client reports, or that follow from its reports. They occur in responses with
  // status 200 and the outcome `failed`; `cancelled` occurs with the outcome `cancelled`.
  client_denied: 200,
  approval_denied: 200,
  arguments_invalid: 200,
  lease_busy: 200,
  unknown_action: 200,
  /** The command arrived at its client, or its turn came, after its deadline. */
  too_late: 200,
  handler_failed: 200,
  result_unavailable: 200,
  /** The handler took longer than the client allows. */
  client_timeout: 200,
  /** The relay wrote the command, but the client later reported that it never received it. Nothing ran. */
  not_received: 200,
  /** The command ended with the given outcome, but its result is no longer retained. */
  result_expired: 200,
  cancelled: 200,
} as const satisfies Record<string, number>;

export type Code = keyof typeof CODES;

/** Returns the HTTP status of a code. A few refusals have another status: an invalid user in a token gives 401. */
export function statusOf(code: Code): number {
  return CODES[code];
}

export function isCode(value: unknown): value is Code {
  return typeof value === 'string' && Object.hasOwn(CODES, value);
}

/** The codes by which a client reports that it refused a command before its handler ran. */
export const CLIENT_REFUSALS = [
  'client_denied',
  'approval_denied',
  'arguments_invalid',
  'lease_busy',
  'unknown_action',
  'context_gone',
  'paused',
  'too_late',
] as const satisfies readonly Code[];

// The words that describe the state of a command.

/** The stages that a command reaches, in order. */
export const STAGES = ['admitted', 'queued', 'dispatched', 'acknowledged', 'terminal'] as const;
export type WireStage = (typeof STAGES)[number];

/** What is proven about the execution in the client. It says nothing about effects outside the client. */
export const EXECUTIONS = ['not_written', 'refused_by_client', 'may_have_run', 'reported_by_client'] as const;
export type WireExecution = (typeof EXECUTIONS)[number];

/** How a command ended. `outcome_unknown`: it may have run, and nobody knows how it ended. */
export const OUTCOMES = ['completed', 'failed', 'cancelled', 'expired', 'outcome_unknown'] as const;
export type WireOutcome = (typeof OUTCOMES)[number];

/** The result of a cancel. */
export const CANCEL_STATES = ['cancelled', 'requested', 'too_late'] as const;
export type WireCancelState = (typeof CANCEL_STATES)[number];

/** The longest error message, in characters. Longer ones are cut. */
export const MAX_ERROR_MESSAGE = 256;

// The close codes of a link: WebSocket codes from 4400 to 4499. `reconnectAfter` says what the client must do. `yes`:
// reconnect after a random delay. `renew`: reconnect, but only with another token than the one that the relay refused.
// `no`: do not reconnect. The frame `bye` has `reconnect: true` only for `yes`, because after the other two an
// unchanged attempt would fail again. It has `reconnect: false` whatever the code if the same hello would be refused
// again.

export const CLOSE = {
  protocol_error: 4400,
  unauthenticated: 4401,
  forbidden: 4403,
  hello_timeout: 4408,
  replaced: 4409,
  node_lost: 4410,
  frame_too_large: 4413,
  rate_limited: 4429,
  back_pressure: 4430,
  share_exceeded: 4431,
  store_full: 4432,
  heartbeat_lost: 4440,
  draining: 4450,
  operator: 4451,
  internal: 4490,
} as const satisfies Record<string, number>;

export type CloseReason = keyof typeof CLOSE;
export type Reconnect = 'yes' | 'renew' | 'no';

/** The reasons after which a client must not simply connect again. */
const EXCEPTIONS: Readonly<Record<string, Reconnect | undefined>> = {
  unauthenticated: 'renew',
  forbidden: 'no',
  replaced: 'no',
};

/**
 * Returns whether a client may reconnect after a link that ended for this reason. An unknown reason counts as a lost
 * connection.
 */
export function reconnectAfter(reason: string | undefined): Reconnect {
  return EXCEPTIONS[reason ?? ''] ?? 'yes';
}

/**
 * Returns the reason of a close code; undefined for any other code, after which a client reconnects as after a lost
 * connection.
 */
export function closeReasonOf(code: number | null | undefined): CloseReason | undefined {
  const reasons = Object.keys(CLOSE) as CloseReason[];
  return reasons.find((reason) => CLOSE[reason] === code);
}
