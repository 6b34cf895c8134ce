export type AdminErrorDetails = {
  /** Of HTTP; null where nothing answered. */
  readonly status?: number | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
};

/**
 * Why there is no answer. `code` is one of callboard's (`unauthenticated`, `forbidden`, `invalid_argument`, `not_found`, ...), or `unreachable`
 * (the relay could not be asked) or `bad_answer` (what answered does not speak as a relay does). `message` is made for people.
 */
export class AdminError extends Error {
  readonly code: string;
  /** The status of the answer; null where there was none. GraphQL puts most refusals into an answer whose status is 200. */
  readonly status: number | null;
  /** When it may be worth asking again. */
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, details: AdminErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'AdminError';
    this.code = code;
    this.status = details.status ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}
