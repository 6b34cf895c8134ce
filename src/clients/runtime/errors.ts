import { isCode, MAX_ERROR_MESSAGE } from '../../protocol/codes.ts';

const OWN_CODE = /^[a-z][a-z0-9_]{0,63}$/;

/**
 * What a handler throws to fail with a code of its own: lower case, digits and `_`, at most 64. A code of callboard's table would claim what
 * only callboard can know (a refusal, say), so it counts as `handler_failed`; anything else that is no such code does too.
 */
export class ActionError extends Error {
  readonly code: string;

  constructor(message: string, code = 'handler_failed') {
    super(message);
    this.name = 'ActionError';
    this.code = OWN_CODE.test(code) && !isCode(code) ? code : 'handler_failed';
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
