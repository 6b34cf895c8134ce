import type { Handle } from './types.ts';

export type CallerErrorDetails = {
  readonly handle?: Handle | null;
  readonly by?: string | null;
  readonly retryAfterMs?: number | null;
  readonly share?: string | null;
  readonly cause?: unknown;
};

/**
 * Why there is no Invocation. `code` is one of callboard's (`not_connected`, `policy_denied`, ...; the relay refused, and an invocation that it
 * refused left no record), or one of the caller's own:
 *
 * - `unreachable`: the relay could not be asked, or its answer did not come. The command may have been admitted: await `handle`.
 * - `bad_answer`: what answered does not speak as a relay does.
 * - `overloaded`: too many waits are queued here already; nothing was sent.
 * - `closed`: the caller was closed.
 */
export class CallerError extends Error {
  readonly code: string;
  /** The command that this is about; null where the relay was not asked about any. */
  readonly handle: Handle | null;
  /** Who refused an invocation, where the relay says so: `policy`, `target`, `capacity`, ... */
  readonly by: string | null;
  /** When it may be worth asking again. */
  readonly retryAfterMs: number | null;
  /** Which share of the relay is used up, for `share_exceeded` and `store_full`: `links`, `queued_bytes`, ... */
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
