import { BACKOFF_CAP_MS, backoffMs } from '../link/backoff.ts';
import { sleep, systemClock, type Clock } from '../link/clock.ts';
import { takeToken, type TokenSource } from '../link/token.ts';
import { CallerError } from './errors.ts';
import { GRACE_MS } from './invocation.ts';
import type { Handle } from './types.ts';

export type HttpCallerOptions = {
  /** The relay's base address, such as `http://127.0.0.1:4400`. */
  readonly url: string;
  /** A function is asked before each request, and once more when the relay turns its token down. */
  readonly token: TokenSource;
  /** How often a request is sent again when its connection broke. Default 3. */
  readonly retries?: number;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** 0 (included) to 1 (excluded). */
  readonly random?: () => number;
};

export type HttpRequest = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly handle: Handle;
  /** How long the relay may take, milliseconds. */
  readonly budgetMs: number;
  readonly signal: AbortSignal;
};

/** A JSON object that a relay answered. */
export type HttpAnswer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
};

const RETRIES = 3;
const RETRY_BASE_MS = 200;

/**
 * Asks until a relay answered: a connection that broke, and a server error that is not a relay's (a proxy's, say), are tried again. So the
 * request must bear being seen twice. Rejects with CallerError `unreachable` when the retries are spent.
 */
export async function askRelay(options: HttpCallerOptions, request: HttpRequest): Promise<HttpAnswer> {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  let refused: string | null = null;
  for (let attempt = 0; ; attempt++) {
    const token = await tokenFor(options, request);
    const answer = await askOnce(options, request, token).catch((error: unknown) => {
      if (request.signal.aborted) throw request.signal.reason;
      return new Error('The connection broke.', { cause: error });
    });
    if (!(answer instanceof Error)) {
      if (answer.status !== 401 || typeof options.token === 'string' || refused !== null) return answer;
      refused = token;
      continue;
    }
    if (attempt >= (options.retries ?? RETRIES)) {
      throw new CallerError('unreachable', 'The relay could not be reached.', {
        handle: request.handle,
        cause: answer,
      });
    }
    const ms = backoffMs(attempt, { baseMs: RETRY_BASE_MS, capMs: BACKOFF_CAP_MS, random });
    await sleep(clock, ms, request.signal);
  }
}

async function tokenFor({ token }: HttpCallerOptions, { handle }: HttpRequest): Promise<string> {
  return takeToken(token).catch((cause: unknown) => {
    throw new CallerError('unauthenticated', 'There is no token to ask with.', { handle, cause });
  });
}

async function askOnce(options: HttpCallerOptions, request: HttpRequest, token: string): Promise<HttpAnswer> {
  const { method, path, body, signal, budgetMs } = request;
  const silence = new AbortController();
  const late = new Error('The relay did not answer in time.');
  const cancelTimer = (options.clock ?? systemClock).after(budgetMs + GRACE_MS, () => silence.abort(late));
  try {
    const response = await (options.fetch ?? globalThis.fetch)(options.url.replace(/\/+$/, '') + path, {
      method,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json', ...typeOf(body) },
      signal: AbortSignal.any([signal, silence.signal]),
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return read(response.status, response.headers.get('retry-after'), await response.text());
  } finally {
    cancelTimer();
  }
}

function typeOf(body: object | undefined): Record<string, string> {
  return body ? { 'content-type': 'application/json' } : {};
}

/** Throws where the answer is no relay's but may come of something on the way, so that it is tried again. */
function read(status: number, retryAfter: string | null, text: string): HttpAnswer {
  const body = parseObject(text);
  if (body === null && status >= 500) throw new Error(`HTTP ${status} without a relay's answer`);
  const seconds = Number(retryAfter);
  const retryAfterMs = retryAfter !== null && Number.isFinite(seconds) ? seconds * 1000 : null;
  return { status, body: body ?? {}, retryAfterMs };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}
