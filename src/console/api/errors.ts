/** The error with which every request of the console fails. */

/**
 * An error of a request. `code`: a code of the relay, `unreachable` (no answer) or `bad_answer` (the answer is not from
 * a relay).
 */
export class RequestError extends Error {
  readonly code: string;
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.name = 'RequestError';
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Any failure as a RequestError; an unexpected one has the code `internal`. */
export function errorOf(error: unknown): RequestError {
  return error instanceof RequestError ? error : new RequestError('internal', String(error));
}

/** Throws a refusal that the relay answered with status 200. */
export function throwRefusal(refusal: { readonly code: string; readonly message: string }): never {
  throw new RequestError(refusal.code.toLowerCase(), refusal.message);
}
