/** The error of the caller library, with the code and details of a refusal. */
import type { Handle } from './types.ts';

export type CallerErrorDetails = {
  readonly handle?: Handle | null;
  readonly by?: string | null;
  readonly retryAfterMs?: number | null;
  readonly share?: string | null;
  readonly cause?: unknown;
};

/**
 * The error with which a Caller's methods reject when they give no Invocation or Receipt. `code` is one of callboard's
 * codes (`not_connected`, `policy_denied`, ...) when the relay refused the request. A refused invocation leaves no
 * record. Otherwise `code` is one of the caller's own codes:
 *
 * - `unreachable`: the relay could not be reached, or its answer did not arrive. The command may have been admitted:
 *   await `handle`.
 * - `bad_answer`: the response does not come from a relay.
 * - `overloaded`: too many waits are queued in this caller already; nothing was sent.
 * - `closed`: the caller was closed.
 *
 * If the relay closed the link permanently, `code` is the name of the close code.
 */
export class CallerError extends Error {
  readonly code: string;
  /** The command that the error concerns; null when it concerns none. */
  readonly handle: Handle | null;
  /** The check that refused the invocation, if the relay names it: `policy`, `target`, `capacity`, ... */
  readonly by: string | null;
  /** The time after which a retry may succeed, in milliseconds; null when the relay gave no time. */
  readonly retryAfterMs: number | null;
  /**
   * The name of the limit (the share) that is used up, for `share_exceeded` and `store_full`: `links`, `queued_bytes`,
   * ...
   */
  readonly share: string | null;

  constructor(code: string, message: string, details: CallerErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'CallerError';
    this.code = code;
    this.handle = details.handle ?? null;
    this.by = details.by ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.share = details.share ?? null;
  }
}
