/**
 * The tables of error codes with their HTTP statuses, of the words for the state of a command, and of the close codes
 * of links. Every refusal, failure and terminal reason carries one of the error codes, over GraphQL, REST and links
 * alike. Clients share these tables, so this file imports nothing.
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
  // The requester is unknown or not permitted.
  unauthenticated: 401,
  forbidden: 403,
  policy_denied: 403,
  raw_history_disabled: 403,
  site_action_denied: 403,
  site_mode_denied: 403,
  site_capability_denied: 403,
  // The requested resource is missing, in conflict or not in a usable state.
  not_found: 404,
  action_not_advertised: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  /** Several rows fit the request; a further parameter names one. */
  ambiguous: 409,
  command_conflict: 409,
  stale_instance: 409,
  instance_mismatch: 409,
  not_connected: 409,
  /** The client does not report the context that the call names, or reports it again after it had left. */
  context_gone: 409,
  /** The call names a context, and the client does not know places. */
  context_unsupported: 409,
  /** A pause covers the call: its author, reason and end are in the answer. Nothing ran. */
  paused: 409,
  session_inactive: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  // A limit is reached.
  capacity_exceeded: 429,
  queue_full: 429,
  rate_limited: 429,
  /** The user holds more than their guarantee of a resource that the relay is short of. `share` names the resource. */
  share_exceeded: 429,
  // The relay cannot answer.
  internal: 500,
  /** The store of this deployment cannot do it. */
  not_supported: 501,
  store_unavailable: 503,
  draining: 503,
  /** The audit cannot be written, so what an administrator asked for was not done. */
  audit_unavailable: 503,
  /** The relay's total of a resource is used up. The member `share` names the resource. */
  store_full: 503,
  runtime_disconnected: 503,
  // Terminal reasons of an admitted command that the relay decides.
  connect_timeout: 504,
  queue_timeout: 504,
  response_timeout: 504,
  instance_replaced: 504,
  node_lost: 504,
  store_lost: 504,
  // Terminal reasons that the client reports, or that follow from what it says. They appear in a response of status 200 with the outcome `failed`;
  // `cancelled` appears with the outcome `cancelled`.
  client_denied: 200,
  approval_denied: 200,
  arguments_invalid: 200,
  lease_busy: 200,
  unknown_action: 200,
  /** The command reached its client, or its turn, when its time was over. */
  too_late: 200,
  handler_failed: 200,
  result_unavailable: 200,
  /** The handler took longer than its client allows. */
  client_timeout: 200,
  /** The relay wrote the command, and its client said later that it never arrived: nothing ran. */
  not_received: 200,
  /** The command ended with the given outcome, but its result is no longer retained. */
  result_expired: 200,
  cancelled: 200,
} as const satisfies Record<string, number>;

export type Code = keyof typeof CODES;

/** Returns the usual HTTP status of a code. A few refusals set another one: an invalid user in a token is 401. */
export function statusOf(code: Code): number {
  return CODES[code];
}

export function isCode(value: unknown): value is Code {
  return typeof value === 'string' && Object.hasOwn(CODES, value);
}

/** The codes with which a client reports that it refused a command before its handler ran. */
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

// The words for the state of a command.

/** How far a command has come. */
export const STAGES = ['admitted', 'queued', 'dispatched', 'acknowledged', 'terminal'] as const;
export type WireStage = (typeof STAGES)[number];

/** What is proven about execution in the client. Nothing is proven about effects outside the client. */
export const EXECUTIONS = ['not_written', 'refused_by_client', 'may_have_run', 'reported_by_client'] as const;
export type WireExecution = (typeof EXECUTIONS)[number];

/** How a command ended. `outcome_unknown`: it may have run and nothing more is known. */
export const OUTCOMES = ['completed', 'failed', 'cancelled', 'expired', 'outcome_unknown'] as const;
export type WireOutcome = (typeof OUTCOMES)[number];

/** What a cancel did. */
export const CANCEL_STATES = ['cancelled', 'requested', 'too_late'] as const;
export type WireCancelState = (typeof CANCEL_STATES)[number];

/** The longest error message, in characters. Longer messages are truncated. */
export const MAX_ERROR_MESSAGE = 256;

// The WebSocket close codes of a link, 4400 to 4499. `reconnectAfter` tells the client what to do: `yes`: reconnect with
// jitter. `renew`: reconnect only with a token other than the one that the relay refused. `no`: do not reconnect. `bye`
// says `reconnect: true` only for `yes`, because in the other two cases an unchanged reconnect would fail in the same
// way; and not for a hello that would be refused again, whatever the code.

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

/** The reasons after which a client does not simply connect again. */
const EXCEPTIONS: Readonly<Record<string, Reconnect | undefined>> = {
  unauthenticated: 'renew',
  forbidden: 'no',
  replaced: 'no',
};

/** Returns whether a client reconnects after a link that ended for this reason; an unknown one counts as a lost socket. */
export function reconnectAfter(reason: string | undefined): Reconnect {
  return EXCEPTIONS[reason ?? ''] ?? 'yes';
}

/** Returns the reason of a close code. Undefined for another code: a client reconnects, as after a lost socket. */
export function closeReasonOf(code: number | null | undefined): CloseReason | undefined {
  const reasons = Object.keys(CLOSE) as CloseReason[];
  return reasons.find((reason) => CLOSE[reason] === code);
}
