import { statusOf, type Code } from '../protocol/codes.ts';

export { CODES, isCode, type Code } from '../protocol/codes.ts';

/** One wrong input among several: `parameter` is its name as the asker wrote it. */
export type Fault = { readonly parameter: string; readonly detail: string };

export type ErrorDetails = {
  /** Every wrong input, when there are several. */
  readonly errors?: readonly Fault[];
  /** When to try again, milliseconds. */
  readonly retryAfterMs?: number;
  /** The asker's ids of the command that this refusal is about. */
  readonly command?: { readonly userId: string; readonly clientId: string; readonly commandId: string };
  /** Which share is used up (`share_exceeded`) or which total (`store_full`). */
  readonly share?: string;
  /** HTTP status where it differs from the code's own (`invalid_user` of a token: 401). */
  readonly status?: number;
  /** Why a token or a ticket is not good. For the log and the metrics, never shown. */
  readonly tokenFault?: TokenFault;
  readonly cause?: unknown;
};

/**
 * Why a token or a ticket is not good. `claims`: one that is needed is missing or has another type. `key_unknown`: the key set has no such
 * key. `keys_unavailable`: the key set does not answer. `grant` and `ticket`: there is no such one, or it is over.
 */
export type TokenFault =
  | 'malformed'
  | 'algorithm'
  | 'signature'
  | 'key_unknown'
  | 'keys_unavailable'
  | 'expired'
  | 'not_yet_valid'
  | 'issuer'
  | 'audience'
  | 'claims'
  | 'subject'
  | 'grant'
  | 'ticket';

/**
 * The only error that crosses a room's door. `code` and `message` are shown to the asker, so the message never holds a stack, a
 * path, a token or another user's id. `cause` is for the log alone and is never serialised.
 */
export class CallboardError extends Error {
  readonly code: Code;
  readonly details: ErrorDetails;

  constructor(code: Code, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'CallboardError';
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return this.details.status ?? statusOf(this.code);
  }
}

export function fail(code: Code, message: string, details?: ErrorDetails): never {
  throw new CallboardError(code, message, details);
}

/** The one answer for a foreign and for an absent object. */
export function notFound(): never {
  throw new CallboardError('not_found', 'There is no such thing, or it is not yours.');
}

export function invalid(parameter: string, detail: string): never {
  throw new CallboardError('invalid_argument', `${parameter}: ${detail}`, { errors: [{ parameter, detail }] });
}

/** The store did not answer: what was asked of it can be asked again. */
export function isAway(error: unknown): boolean {
  return error instanceof CallboardError && error.code === 'store_unavailable';
}
