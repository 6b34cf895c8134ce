/** Defines the errors that handlers throw, and the errors with which the runtime's methods reject. */
import { MAX_ERROR_MESSAGE } from '../../protocol/codes.ts';
import type { ErrorCode } from '../link/library-error.ts';

/**
 * The code of a failure that a handler reports. `handler_failed`: the handler failed. `result_unavailable`: the command
 * ran, but its result cannot be returned. `client_timeout`: the command took longer than the client allows.
 */
export type ActionErrorCode = 'handler_failed' | 'result_unavailable' | 'client_timeout';

const OWN_CODES: ReadonlySet<string> = new Set<ActionErrorCode>(['result_unavailable', 'client_timeout']);

/**
 * A handler throws this error to set the message and the code of its failure. Callers see the first line of the
 * message, at most 256 characters. A code that is not an ActionErrorCode is replaced by `handler_failed`, because the
 * codes with which a client refuses commands would prove that no handler ran.
 */
export class ActionError extends Error {
  readonly code: ActionErrorCode;

  constructor(message: string, code: ActionErrorCode = 'handler_failed') {
    super(message);
    this.name = 'ActionError';
    this.code = OWN_CODES.has(code) ? code : 'handler_failed';
  }
}

/** A handler throws this error if it stopped because `call.signal` was aborted. `partial`: its partial result. */
export class ActionCancelled extends Error {
  readonly partial: unknown;

  constructor(partial?: unknown) {
    super('The command was cancelled.');
    this.name = 'ActionCancelled';
    this.partial = partial;
  }
}

/** The error if the relay refused to register or remove a site. */
export class SiteRefusedError extends Error {
  readonly code: ErrorCode;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'SiteRefusedError';
    // The code is a text that the relay sent.
    this.code = code as ErrorCode;
  }
}

/** The error if the relay refused to pause or resume the client. Nothing has changed. */
export class PauseRefusedError extends Error {
  readonly code: ErrorCode;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'PauseRefusedError';
    this.code = code as ErrorCode;
  }
}

/** Returns the first line of a message, cut at 256 characters. So a stack trace in a message is never sent. */
export function boundedMessage(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length <= MAX_ERROR_MESSAGE ? line : `${line.slice(0, MAX_ERROR_MESSAGE - 1)}…`;
}

/** Returns a short message for a thrown value. Never throws. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return boundedMessage(error.message || error.name);
    return typeof error === 'string' ? boundedMessage(error) : 'The handler threw a value that is not an Error.';
  } catch {
    return 'The handler failed.';
  }
}
