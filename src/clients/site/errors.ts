/**
 * Why there is no stream any more, or no invocation. `code` is one of callboard's (`session_inactive`, `unauthenticated`, `not_found`,
 * `site_action_denied`, ...), or `unreachable` (the relay could not be asked; an action may have run: invoke again with the same command id)
 * or `bad_answer` (what answered does not speak as a relay does). `message` is made for people.
 */
export class SiteError extends Error {
  readonly code: string;
  /** Of the invocation that this is about. */
  readonly commandId: string | null;
  /** When it may be worth trying again. */
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
