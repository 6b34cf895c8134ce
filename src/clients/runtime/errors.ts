import { MAX_ERROR_MESSAGE } from '../../protocol/codes.ts';

/** `result_unavailable`: it ran, but its result cannot be had. `client_timeout`: it took longer than the client allows. */
export type ActionErrorCode = 'handler_failed' | 'result_unavailable' | 'client_timeout';

const OWN_CODES: ReadonlySet<string> = new Set<ActionErrorCode>(['result_unavailable', 'client_timeout']);

/**
 * What a handler throws to say in its own words why it failed; the words are shown to callers, at most 256 characters of one line. The codes
 * by which a client refuses are not among these: they prove that no handler ran.
 */
export class ActionError extends Error {
  readonly code: ActionErrorCode;

  constructor(message: string, code: ActionErrorCode = 'handler_failed') {
    super(message);
    this.name = 'ActionError';
    this.code = OWN_CODES.has(code) ? code : 'handler_failed';
  }
}

/** What a handler throws when it stopped because `call.signal` told it to, and has a partial result to hand over. */
export class ActionCancelled extends Error {
  readonly partial: unknown;

  constructor(partial?: unknown) {
    super('The command was cancelled.');
    this.name = 'ActionCancelled';
    this.partial = partial;
  }
}

/** The relay did not take a site's definition, or its removal. `code` is one of callboard's. */
export class SiteRefusedError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'SiteRefusedError';
    this.code = code;
  }
}

/** The first line of a message, cut at 256 characters: never a stack, not even one that was put into a message. */
export function boundedMessage(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length <= MAX_ERROR_MESSAGE ? line : `${line.slice(0, MAX_ERROR_MESSAGE - 1)}…`;
}

/** What to tell about a thing that was thrown. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return boundedMessage(error.message || error.name);
    return typeof error === 'string' ? boundedMessage(error) : 'The handler threw something that is no error.';
  } catch {
    return 'The handler failed.';
  }
}
