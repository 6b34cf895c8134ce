/**
 * The closed table of callboard's error codes: every refusal, failure and terminal reason that leaves the relay carries one of
 * them, on every face. Clients share this table, so it imports nothing.
 */
export const CODES = {
  // The request is wrong.
  invalid_argument: 400,
  invalid_cursor: 400,
  invalid_user: 400,
  reserved_parameter: 400,
  reserved_stream: 400,
  too_complex: 400,
  // Who asks.
  unauthenticated: 401,
  forbidden: 403,
  policy_denied: 403,
  raw_history_disabled: 403,
  site_action_denied: 403,
  site_mode_denied: 403,
  site_capability_denied: 403,
  // What is asked for.
  not_found: 404,
  action_not_advertised: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  command_conflict: 409,
  stale_instance: 409,
  instance_mismatch: 409,
  not_connected: 409,
  session_inactive: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  // How much.
  capacity_exceeded: 429,
  queue_full: 429,
  rate_limited: 429,
  /** One user holds more than their guarantee of something while the relay is short of it; the member `share` names it. */
  share_exceeded: 429,
  // The relay.
  internal: 500,
  store_unavailable: 503,
  draining: 503,
  /** The relay's total of something is used up; the member `share` names it. */
  store_full: 503,
  runtime_disconnected: 503,
  // Ends of a command that was admitted.
  connect_timeout: 504,
  queue_timeout: 504,
  response_timeout: 504,
  instance_replaced: 504,
  node_lost: 504,
  store_lost: 504,
  // Ends that the client reported: they stand inside a 200 answer with outcome `failed`, or (cancelled) beside it.
  client_denied: 200,
  approval_denied: 200,
  arguments_invalid: 200,
  lease_busy: 200,
  unknown_action: 200,
  handler_failed: 200,
  result_unavailable: 200,
  /** The handler took longer than its client allows. */
  client_timeout: 200,
  /** The command ended as its outcome says; its result is no longer retained. */
  result_expired: 200,
  cancelled: 200,
} as const satisfies Record<string, number>;

export type Code = keyof typeof CODES;

/** The HTTP status of a code. `invalid_user` is 400 for a parameter; the token check answers 401 itself. */
export function statusOf(code: Code): number {
  return CODES[code];
}

export function isCode(value: unknown): value is Code {
  return typeof value === 'string' && Object.hasOwn(CODES, value);
}

/** Codes by which a client says that it refused a command before its handler ran. */
export const CLIENT_REFUSALS = [
  'client_denied',
  'approval_denied',
  'arguments_invalid',
  'lease_busy',
  'unknown_action',
] as const satisfies readonly Code[];

/** Characters of an error's message on any face; its code is one of the table ("a bounded diagnostic code and message"). */
export const MAX_ERROR_MESSAGE = 256;
