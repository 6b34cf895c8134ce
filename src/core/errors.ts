/** CallboardError, the only error that core throws on purpose, and helpers that throw it. */
import { statusOf, type Code } from '../protocol/codes.ts';

export { CODES, isCode, type Code } from '../protocol/codes.ts';

/** One invalid input. `parameter` is its name as it appears in the request. */
export type InputError = { readonly parameter: string; readonly detail: string };

export type ErrorDetails = {
  /** All faults in the input, for errors about wrong input. */
  readonly errors?: readonly InputError[];
  /** How long to wait before a retry, in milliseconds. */
  readonly retryAfterMs?: number;
  /** The ids of the refused command, as the requester gave them. */
  readonly command?: { readonly userId: string; readonly clientId: string; readonly commandId: string };
  /**
   * The share without room (see `shares/shares.ts`): the user's part is used up (`share_exceeded`), or the total is
   * (`store_full`).
   */
  readonly share?: string;
  /** What an operator must repair before the node is ready. Contains names only, never values. */
  readonly reason?: string;
  /** The HTTP status, if it is not the code's own. For example, `invalid_user` in a token has status 401. */
  readonly status?: number;
  /** Why a token or a ticket was refused. For the log and the metrics only; never sent to the requester. */
  readonly tokenFault?: TokenFault;
  readonly cause?: unknown;
};

/**
 * Why a token or a ticket was refused. `claims`: a required claim is missing or has the wrong type. `key_unknown`: the
 * key set has no such key. `revoked`: the token was revoked. `keys_unavailable`: the key set could not be fetched.
 * `grant`, `ticket`: the token's grant, or the ticket, does not exist or has ended.
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
  | 'email_unverified'
  | 'revoked'
  | 'grant'
  | 'ticket';

/**
 * The only error that core's interfaces throw on purpose. `code` and `message` are sent to the requester, so the
 * message never holds a stack, a path, a token or another user's id. `cause` is for the log only and is never
 * serialized.
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

/**
 * Throws the error for an object that does not exist. An object of another user gives the same error, so that the
 * requester cannot find out whether it exists.
 */
export function notFound(): never {
  throw notFoundError();
}

export function notFoundError(): CallboardError {
  return new CallboardError('not_found', 'There is no such thing, or it is not yours.');
}

export function invalid(parameter: string, detail: string): never {
  throw new CallboardError('invalid_argument', `${parameter}: ${detail}`, { errors: [{ parameter, detail }] });
}

/** Returns the message of an error with the code `internal`. `id`: the id under which the log has the cause. */
export function internalMessage(id: string): string {
  return `The relay failed; its log has the cause under the id ${id}.`;
}

/** Whether the error means that the store did not answer, so that the operation can be retried. */
export function isStoreUnavailable(error: unknown): boolean {
  return error instanceof CallboardError && error.code === 'store_unavailable';
}

// Collects the faults in the input of a request, so that one error names all of them.

/**
 * Throws one `invalid_argument` that names every fault; does nothing if there is none. `separator`: the text between
 * two faults.
 */
export function refuseInputs(errors: readonly InputError[], separator = '; '): void {
  if (errors.length === 0) return;
  const texts = errors.map(({ parameter, detail }) => `${parameter}: ${detail}`);
  fail('invalid_argument', texts.join(separator), { errors });
}

/** Collects the faults in the input of one request. */
type InputErrors = {
  /**
   * Returns the value of `read`. If `read` throws `invalid_argument`, notes the fault and returns undefined. Other
   * errors propagate.
   */
  check<T>(read: () => T): T | undefined;
  /** Throws one `invalid_argument` that names every fault; does nothing if there is none. */
  throwIfAny(): void;
};

export function collectInputErrors(): InputErrors {
  const faults: InputError[] = [];
  return {
    check(read) {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof CallboardError) || error.code !== 'invalid_argument') throw error;
        faults.push(...(error.details.errors ?? []));
        return undefined;
      }
    },
    throwIfAny: () => refuseInputs(faults),
  };
}

export function optional<T>(value: string | null | undefined, read: (text: string) => T): T | null {
  return value === null || value === undefined ? null : read(value);
}
