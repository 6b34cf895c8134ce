/** The error with which every method of Admin rejects. */

export type AdminErrorDetails = {
  /** The HTTP status; null when there was no response. */
  readonly status?: number | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
};

/**
 * The error with which every method of Admin rejects. `code` is one of callboard's codes (`unauthenticated`,
 * `forbidden`, `invalid_argument`, `not_found`, ...), or one of two others:
 *
 * - `unreachable`: no response from the relay.
 * - `bad_answer`: the response does not come from a relay.
 *
 * `message` is meant for people, not for programs.
 */
export class AdminError extends Error {
  readonly code: string;
  /** The HTTP status; null when there was no response. GraphQL sends most refusals with status 200. */
  readonly status: number | null;
  /** The relay's `Retry-After` in milliseconds; null when it sent none. */
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, details: AdminErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'AdminError';
    this.code = code;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}
