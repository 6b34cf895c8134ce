/** Maps disconnect causes, close reasons and error codes to each other, and builds `bye` and `refused` frames. */
import type { DisconnectCause } from '../core/connections/connection.ts';
import { CallboardError, internalMessage, type Code } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Crypto, Log } from '../core/ports.ts';
import { CLOSE, MAX_ERROR_MESSAGE, type CloseReason } from '../protocol/codes.ts';
import { ID } from '../protocol/fields.ts';
import type { DownHeader, UpFrame } from '../protocol/frames.ts';

export const REASON_OF_CAUSE: Readonly<Record<DisconnectCause, CloseReason>> = {
  client_closed: 'internal',
  lost: 'internal',
  reset: 'internal',
  error: 'internal',
  replaced: 'replaced',
  heartbeat_lost: 'heartbeat_lost',
  token_expired: 'unauthenticated',
  protocol_error: 'protocol_error',
  back_pressure: 'back_pressure',
  node_drained: 'draining',
  node_lost: 'node_lost',
  operator: 'operator',
};

export const CAUSE_OF_REASON: Readonly<Record<CloseReason, DisconnectCause>> = {
  protocol_error: 'protocol_error',
  unauthenticated: 'token_expired',
  forbidden: 'protocol_error',
  hello_timeout: 'protocol_error',
  replaced: 'replaced',
  node_lost: 'node_lost',
  frame_too_large: 'protocol_error',
  rate_limited: 'protocol_error',
  back_pressure: 'back_pressure',
  share_exceeded: 'protocol_error',
  store_full: 'node_lost',
  heartbeat_lost: 'heartbeat_lost',
  draining: 'node_drained',
  operator: 'operator',
  internal: 'node_lost',
};

/** The close reason after a refused `hello`, by error code. Codes that are not listed lead to `protocol_error`. */
const REASON_OF_CODE: Readonly<Partial<Record<Code, CloseReason>>> = {
  unauthenticated: 'unauthenticated',
  invalid_user: 'unauthenticated',
  forbidden: 'forbidden',
  policy_denied: 'forbidden',
  stale_instance: 'replaced',
  instance_mismatch: 'replaced',
  draining: 'draining',
  capacity_exceeded: 'rate_limited',
  rate_limited: 'rate_limited',
  payload_too_large: 'frame_too_large',
  share_exceeded: 'share_exceeded',
  store_full: 'store_full',
  store_unavailable: 'internal',
  internal: 'internal',
};

type Random = Pick<Crypto, 'randomInt'>;

/**
 * How long the peer should wait before it reconnects, in milliseconds, for reasons after which an immediate reconnect
 * would do harm. `draining` is random within one second, because otherwise all links of a stopping node would reconnect
 * at the same time.
 */
const RECONNECT_DELAY_MS: Readonly<Partial<Record<CloseReason, (random: Random) => number>>> = {
  protocol_error: () => 5_000,
  rate_limited: () => 5_000,
  share_exceeded: () => 5_000,
  store_full: () => 5_000,
  back_pressure: () => 1_000,
  internal: () => 1_000,
  frame_too_large: () => 1_000,
  draining: (random) => random.randomInt(1_000),
};

/** The error codes of a socket whose connection was reset by the peer or by a machine in between. */
const RESETS: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

/**
 * Returns why a socket has ended without a close frame. `error`: the error of the socket; null if it ended without an
 * error.
 */
export function causeOfSocket(error: Error | null): DisconnectCause {
  if (error === null) return 'lost';
  return 'code' in error && RESETS.has(error.code) ? 'reset' : 'error';
}

export function reasonOfRefusal(code: Code): CloseReason {
  return REASON_OF_CODE[code] ?? 'protocol_error';
}

/** Builds the `bye` frame, which is the last frame before a close. */
export function byeFor(reason: CloseReason, reconnect: boolean, random: Random): DownHeader {
  const delay = reconnect ? RECONNECT_DELAY_MS[reason] : undefined;
  return { type: 'bye', code: CLOSE[reason], reason, reconnect, after_ms: delay?.(random) };
}

// Turns errors into `refused` frames with the fields that identify the refused frame.

/**
 * The delay after which a peer may retry if a share is used up, in milliseconds. In that time some connections and
 * commands will have ended and released their part of the share.
 */
const SHARE_RETRY_MS = 5_000;

/** The reason for refusing a frame. */
export type Refusal = {
  readonly code: Code;
  readonly message: string;
  readonly retryAfterMs?: number | null | undefined;
  readonly by?: string | undefined;
  /** The name of the share that has no room. */
  readonly share?: string | undefined;
};

/** The refused frame, as far as it could be read. */
export type OffendingFrame = {
  readonly frame?: string | null | undefined;
  readonly ref?: string | null | undefined;
  readonly commandId?: string | null | undefined;
};

export function aboutFrame(frame: UpFrame): OffendingFrame {
  return {
    frame: frame.type,
    ref: 'ref' in frame ? frame.ref : null,
    commandId: 'command_id' in frame ? frame.command_id : null,
  };
}

export function refusedFrame({ code, message, retryAfterMs, by, share }: Refusal, about: OffendingFrame): DownHeader {
  return {
    type: 'refused',
    code,
    message: clip(message, MAX_ERROR_MESSAGE),
    frame: about.frame ?? undefined,
    ref: idOrNothing(about.ref),
    command_id: idOrNothing(about.commandId),
    retry_after_ms: retryAfterMs ?? undefined,
    by,
    share,
  };
}

type RefusalOptions = { readonly log: Log; readonly metrics: Metrics; readonly crypto: Pick<Crypto, 'randomId'> };

/**
 * Returns the refusal for an error. The message of an error that is not a CallboardError is hidden: the peer only gets
 * an id, and the log contains the error under this id.
 */
export function refusalOf(error: unknown, { log, metrics, crypto }: RefusalOptions): Refusal {
  if (error instanceof CallboardError) {
    const { retryAfterMs, share } = error.details;
    const later = retryAfterMs ?? (share === undefined ? undefined : SHARE_RETRY_MS);
    return { code: error.code, message: error.message, retryAfterMs: later, share };
  }
  const id = crypto.randomId();
  log.error({ err: error, id }, 'unexpected error while handling a frame');
  metrics.count('errors_masked');
  return { code: 'internal', message: internalMessage(id) };
}

/** Cuts a text to `max` UTF-16 units. A lone surrogate, such as half a character at the cut, becomes U+FFFD. */
export function clip(text: string, max: number): string {
  return text.slice(0, max).toWellFormed();
}

/**
 * Returns the text if it is a valid id; otherwise undefined, because an invalid reference would make the refusal itself
 * an invalid frame.
 */
function idOrNothing(text: string | null | undefined): string | undefined {
  return text !== null && text !== undefined && ID.test(text) ? text : undefined;
}
