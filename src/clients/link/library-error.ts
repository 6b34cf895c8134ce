/** The answers of the relay to a request, and the errors of all client libraries that are made of them. */
import type { CloseReason, Code } from '../../protocol/codes.ts';
import { see } from './advice.ts';

/** What every error of the libraries may say besides its code and message. */
export type LibraryErrorDetails = {
  readonly retryAfterMs?: number | null | undefined;
  readonly mayHaveRun?: boolean;
  readonly cause?: unknown;
};

/**
 * The code of a library's error: one of callboard's codes, the name of a close code, or one of the libraries' own. A
 * newer relay may send one that this version does not name.
 */
export type ErrorCode = Code | CloseReason | 'unreachable' | 'bad_answer' | 'overloaded' | 'closed';

/** The form that the errors of all libraries share. */
export class LibraryError extends Error {
  readonly code: ErrorCode;
  /** The time after which a retry may succeed, in milliseconds; null when the relay gave no time. */
  readonly retryAfterMs: number | null;
  /**
   * Whether a request may have been written whose answer did not arrive. What it asked for may have run: send it again
   * under its id, which runs nothing twice.
   */
  readonly mayHaveRun: boolean;

  constructor(name: string, code: string, message: string, { retryAfterMs, mayHaveRun, cause }: LibraryErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = name;
    // Most codes come from the relay, as texts.
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
    /** The name of the share that is used up. */
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

/** A response. `body` is the JSON object that it contains; `{}` if it contains none. */
export type HttpAnswer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
  /** Whether an earlier attempt may have been written whose answer did not arrive: a refusal says nothing about that. */
  readonly mayHaveRun?: boolean;
};

/** What the message of an error with `mayHaveRun` ends with. */
export const MAY_HAVE_RUN = ` The request was written: it may have run.${see('may-have-run')}`;
