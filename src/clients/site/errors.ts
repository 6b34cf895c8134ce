/**
 * The error that ends a subscription or rejects an invocation. `code` is one of callboard's codes (`session_inactive`,
 * `unauthenticated`, `not_found`, `site_action_denied`, ...), or one of two others:
 *
 * - `unreachable`: no response from the relay. An action may have run: invoke it again with the same command id.
 * - `bad_answer`: the response does not come from a relay.
 *
 * `message` is meant for people, not for programs.
 */
export class SiteError extends Error {
  readonly code: string;
  /** The invocation that the error concerns; null for a subscription. */
  readonly commandId: string | null;
  /** The time after which a retry may succeed, in milliseconds; null when the relay gave no time. */
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, details: SiteErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'SiteError';
    this.code = code;
    this.commandId = details.commandId ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

export type SiteErrorDetails = {
  readonly commandId?: string;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
};
