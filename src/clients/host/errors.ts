/**
 * Why something did not reach the relay, or was refused by it. `code` is one of callboard's (`stale_instance`, `forbidden`, ...), or:
 *
 * - `runtime_disconnected`: the runtime has no link, so nothing was sent.
 * - `unreachable`: the relay could not be asked, or its answer did not come. The event may have been retained: publish it again with
 *   `messageId`, which the relay keeps once.
 * - `bad_answer`: what answered does not speak as a relay does.
 */
export class HostError extends Error {
  readonly code: string;
  /** Of the event that this is about. */
  readonly messageId: string | null;
  /** When it may be worth trying again. */
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
