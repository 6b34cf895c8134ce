/** The error with which every failed request of the console rejects. */

/**
 * An error of a request. `code` is a code of the relay, `unreachable` (no answer arrived), or `bad_answer` (the answer
 * is not from a relay).
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

/** Returns any failure as a RequestError. An unexpected failure has the code `internal`. */
export function errorOf(error: unknown): RequestError {
  return error instanceof RequestError ? error : new RequestError('internal', String(error));
}

/** Throws the error for a refusal that the relay answered with status 200. */
export function throwRefusal(refusal: { readonly code: string; readonly message: string }): never {
  throw new RequestError(refusal.code.toLowerCase(), refusal.message);
}
