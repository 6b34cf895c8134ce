/**
 * The error of a request that did not reach the relay, or that the relay refused. `code` is one of callboard's codes
 * (`stale_instance`, `forbidden`, ...), or:
 *
 * - `runtime_disconnected`: the runtime has no link and sent nothing, or the relay did not answer a registration.
 * - `unreachable`: the relay could not be reached, or its answer did not arrive. The event may have been retained:
 *   publish it again with the same `messageId`, so that the relay retains it only once.
 * - `bad_answer`: the response does not come from a relay.
 */
export class HostError extends Error {
  readonly code: string;
  /** The event that the error concerns; null when it concerns none. */
  readonly messageId: string | null;
  /** The time after which a retry may succeed, in milliseconds; null when the relay gave no time. */
  readonly retryAfterMs: number | null;

  constructor(code: string, message: string, details: HostErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'HostError';
    this.code = code;
    this.messageId = details.messageId ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

export type HostErrorDetails = {
  readonly messageId?: string;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
};
