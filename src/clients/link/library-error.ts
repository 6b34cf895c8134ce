/** The base class of the libraries' errors, and the refusals of the relay from which they are made. */
import type { CloseReason, Code } from '../../protocol/codes.ts';
import { see } from './advice.ts';

/** The members that every library's error may have in addition to code and message. */
export type LibraryErrorDetails = {
  readonly retryAfterMs?: number | null | undefined;
  readonly mayHaveRun?: boolean;
  readonly cause?: unknown;
};

/**
 * The code of a library's error: one of callboard's codes, the name of a close code, or one of the libraries' own
 * codes. A newer relay may send a code that is not among these types.
 */
export type ErrorCode = Code | CloseReason | 'unreachable' | 'bad_answer' | 'overloaded' | 'closed';

/** The base class of the errors of all libraries. */
export class LibraryError extends Error {
  readonly code: ErrorCode;
  /** How many milliseconds later a retry may succeed; null if the relay gave no time. */
  readonly retryAfterMs: number | null;
  /**
   * Whether the request may have reached the relay although no answer arrived. If so, it may have taken effect. Sending
   * it again with the same id does not run anything twice.
   */
  readonly mayHaveRun: boolean;

  constructor(name: string, code: string, message: string, { retryAfterMs, mayHaveRun, cause }: LibraryErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = name;
    // Most codes are texts that the relay sent.
    this.code = code as ErrorCode;
    this.retryAfterMs = retryAfterMs ?? null;
    this.mayHaveRun = mayHaveRun ?? false;
  }
}

export type AnswerRefusal = {
  readonly code: string;
  readonly message: string;
  readonly details: {
    readonly retryAfterMs?: number | null;
    /** The check that refused the request, if the relay names it. */
    readonly by?: string | null;
    /** The name of the share without room. */
    readonly share?: string | null;
    readonly mayHaveRun?: boolean;
  };
};

/** Reads a refusal of the relay. The code is `bad_answer` if the response does not come from a relay. */
export function refusalIn({ status, body, retryAfterMs, mayHaveRun = false }: HttpAnswer): AnswerRefusal {
  const code = textOf(body['code']);
  if (code === null) return badAnswer(status);
  const message = textOf(body['detail']) ?? textOf(body['title']) ?? code;
  const by = textOf(body['by']) ?? textOf(body['refused_by']);
  const details = { retryAfterMs, by, share: textOf(body['share']), mayHaveRun };
  return { code, message: mayHaveRun ? message + MAY_HAVE_RUN : message, details };
}

export function badAnswer(status: number): AnswerRefusal {
  return { code: 'bad_answer', message: `HTTP ${status} without a relay's answer.`, details: {} };
}

/** Returns the value if it is a string; otherwise null. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** A response. `body`: its JSON object; `{}` if it contains none. */
export type HttpAnswer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
  /**
   * Whether an earlier attempt may have reached the relay although its answer did not arrive. A refusal of this attempt
   * says nothing about the earlier one.
   */
  readonly mayHaveRun?: boolean;
};

/** The end of the message of an error with `mayHaveRun`. */
export const MAY_HAVE_RUN = ` The request was written: it may have run.${see('may-have-run')}`;
