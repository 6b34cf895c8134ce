/** Makes the error responses of the control server: problem documents (RFC 9457). */
import { isCode, statusOf, type Code } from '../../protocol/codes.ts';
import { LinkClosedError } from '../link/link-status.ts';
import { SiteRefusedError } from '../runtime/action-errors.ts';
import { HostError } from './publisher.ts';

export type HostResponse = {
  readonly status: number;
  /** The object that is sent as JSON: a problem document or a result. Absent if the response has no body. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};
export type Problem = HostResponse & { readonly body: object };

type ProblemDetails = {
  readonly errors?: readonly Fault[];
  readonly messageId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly headers?: Readonly<Record<string, string>>;
};

/** An error that is thrown to answer a request with a problem document. */
export class ProblemError extends Error {
  readonly answer: Problem;

  constructor(code: Code, detail: string, details: ProblemDetails = {}) {
    super(detail);
    this.name = 'Refusal';
    this.answer = problem(code, detail, details);
  }
}

/** Makes a problem document (RFC 9457) in the relay's format. */
export function problem(code: Code, detail: string, details: ProblemDetails = {}): Problem {
  const { errors, messageId, retryAfterMs, headers } = details;
  const status = statusOf(code);
  const words = code.replaceAll('_', ' ');
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  const more = { ...(errors && { errors }), ...(messageId != null && { message_id: messageId }) };
  return {
    status,
    body: { type: 'about:blank', title, status, code, detail, ...more },
    headers: {
      ...headers,
      'content-type': 'application/problem+json',
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
      ...(retryAfterMs != null && { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }),
    },
  };
}

/** Returns the problem document for an error; null if the error is a fault of this server. */
export function problemOf(error: unknown): Problem | null {
  if (error instanceof ProblemError) return error.answer;
  if (error instanceof LinkClosedError) return problem('runtime_disconnected', error.message);
  if (error instanceof SiteRefusedError) return ofRelay(error.code, error.message);
  if (!(error instanceof HostError)) return null;
  const { code, message, messageId, retryAfterMs } = error;
  return ofRelay(code, message, { messageId, retryAfterMs });
}

/**
 * Returns the problem document for a refusal of the relay, with the relay's code. If the code is `unauthenticated`, the
 * code becomes `runtime_disconnected`, because the refused token is the runtime's and not the requester's. The same
 * holds for a code without an error status.
 */
function ofRelay(code: string, message: string, details: ProblemDetails = {}): Problem {
  if (isCode(code) && code !== 'unauthenticated' && statusOf(code) >= 400) return problem(code, message, details);
  return problem('runtime_disconnected', `The relay refused it: ${message}`, details);
}

export type Fault = { readonly parameter: string; readonly detail: string };
