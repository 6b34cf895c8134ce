/** Sends one HTTP request to the relay, with a token, a time limit and retries, and reads the answer. */
import { deeperThan, longerThan } from '../../protocol/bounds.ts';
import type { Code } from '../../protocol/codes.ts';
import { parseObject, trustJson, type JsonText } from '../../protocol/json.ts';
import { unreachable, pageHint, see } from './advice.ts';
import type { LibraryErrorDetails, HttpAnswer } from './library-error.ts';
import { BOUNDS, type LinkBounds } from './link-status.ts';
import { type WireTrace, traceHeaders } from './spans.ts';
import { BASE_URL, COUNT, FUNCTION, OBJECT, TOKEN, wrong, type MembersOf } from './options.ts';
import { sleep, systemClock, unlessAborted, type Clock } from './platform.ts';
import { type ProgressSink, readEvents } from './progress.ts';
import { jsonOf } from './raw-json.ts';
import { backoffMs, takeToken, type TokenSource } from './reconnect.ts';

/** The options of all libraries that send HTTP requests. */
export type RelayRequestOptions = {
  /**
   * The relay's base address, such as `http://127.0.0.1:4400`. If there are several addresses of one deployment, the
   * next one is tried when a request fails.
   */
  readonly url: string | readonly string[];
  /**
   * A token, or a function that returns one. The function is called before each request, and once more if the relay
   * answers 401. If it throws, the method rejects with the code `unauthenticated`. Undefined, for example because an
   * environment variable is not set, is refused at once.
   */
  readonly token: TokenSource | undefined;
  /** How many times a request is sent again if its connection breaks or no answer arrives in time. Default 3. */
  readonly retries?: number;
  /** The function that sends requests. Default: the platform's. If it rejects, the request is sent again. */
  readonly fetch?: typeof globalThis.fetch;
  /** The source of time and timers. Default: the system's. */
  readonly clock?: Clock;
  /** A source of random numbers from 0 (included) to 1 (excluded), for jitter. Default `Math.random`. */
  readonly random?: () => number;
};

export const REQUEST_MEMBERS: MembersOf<RelayRequestOptions> = [
  { url: BASE_URL, token: TOKEN },
  { retries: COUNT, fetch: FUNCTION, clock: OBJECT, random: FUNCTION },
];

export type RelayRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** The JSON text of the body. */
  readonly body?: string;
  /**
   * The time limit of the whole request with its retries, in milliseconds. If the request was written, GRACE_MS more.
   */
  readonly budgetMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly trace?: WireTrace;
  /** If set, an event stream is requested, and this receives the progress reports that arrive before the answer. */
  readonly onProgress?: ProgressSink | undefined;
  /** Makes the error that is thrown if there is no answer. */
  readonly fault: (code: 'unreachable' | 'unauthenticated', message: string, details: LibraryErrorDetails) => Error;
};

const EVENT_STREAM = 'text/event-stream';
/** The upper bounds of the random delays before retries, in milliseconds: of the first delay, and of all delays. */
const RETRY_MS = { baseMs: 200, capMs: 5_000 };
/** The shortest delay before a retry, in milliseconds. */
const LEAST_PAUSE_MS = 100;
/** How much longer than its time limit a request waits for its answer if it was written, in milliseconds. */
export const GRACE_MS = 2_000;
/** The time limit of a request that the relay answers at once, in milliseconds. */
export const AT_ONCE_MS = 10_000;

/**
 * Sends a request until a relay answers. The token function, the connections, the answers and the delays share one time
 * limit. The request is sent again if the connection breaks, and if a server error has no JSON object, because it may
 * come from a proxy. If there are several addresses, the next one is then tried. So the request must be safe to repeat.
 * Rejects with the fault `unreachable` when the time or the retries are used up, with the fault `unauthenticated` when
 * the token function fails or takes too long, and with the signal's reason when the signal is aborted.
 */
export async function requestRelay(options: RelayRequestOptions, request: RelayRequest): Promise<HttpAnswer> {
  const { clock = systemClock, random = Math.random, retries = Infinity } = options;
  const { budgetMs, signal: leave } = request;
  const urls = [options.url].flat();
  const late = new AbortController();
  const stop = (): void => late.abort(new Error(`There was no answer within ${budgetMs} ms.`));
  const signal = leave ? AbortSignal.any([leave, late.signal]) : late.signal;
  // A promise of the program, such as that of the token function, may never settle, so each wait ends with the signal.
  const bounded = <T>(work: T | Promise<T>): Promise<T> => unlessAborted(signal, work);
  let sending = false;
  let mayHaveRun = false;
  let cancelTimer = clock.after(budgetMs, () => {
    if (sending) cancelTimer = clock.after(GRACE_MS, stop);
    else stop();
  });
  let refused = false;
  try {
    for (let attempt = 0; ; attempt++) {
      const url = urls[attempt % urls.length] ?? '';
      const token = await bounded(takeToken(options.token)).catch((cause: unknown) => {
        leave?.throwIfAborted();
        throw request.fault('unauthenticated', `The token function gave no token: ${String(cause)}`, { cause });
      });
      sending = true;
      const answer = await bounded(sendOnce(options, { ...request, url, token, signal })).catch(brokenBy);
      sending = false;
      leave?.throwIfAborted();
      const broken = answer instanceof Error || (urls.length > 1 && answer.body['code'] === 'draining');
      if (!broken) {
        if (answer.status !== 401 || typeof options.token === 'string' || refused) return { ...answer, mayHaveRun };
        refused = true;
        continue;
      }
      mayHaveRun ||= answer instanceof Error && !isUnsent(answer);
      const ms = LEAST_PAUSE_MS + backoffMs(Math.floor(attempt / urls.length), { ...RETRY_MS, random });
      if (attempt < retries) await sleep(clock, ms, signal).catch(() => {});
      leave?.throwIfAborted();
      if (attempt < retries && !signal.aborted) continue;
      if (!(answer instanceof Error)) return { ...answer, mayHaveRun };
      throw request.fault('unreachable', unanswered(url, mayHaveRun, answer), { cause: answer, mayHaveRun });
    }
  } finally {
    cancelTimer();
  }
}

function brokenBy(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error('The connection broke.', { cause });
}

/** Node's error codes for failures before a request was written. Browsers do not report when a connection failed. */
const UNSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

function isUnsent({ cause }: Error): boolean {
  return cause instanceof Error && 'code' in cause && UNSENT.test(String(cause.code));
}

function unanswered(url: string, mayHaveRun: boolean, { message }: Error): string {
  if (!mayHaveRun) return unreachable(url) + see('unreachable');
  return `No answer came from ${url} (${message}) The request may have been written: it may have run.${pageHint(url)}${see('may-have-run')}`;
}

/**
 * Returns a value as JSON text. Throws TypeError if the value is not JSON. If the relay would refuse the value because
 * it is too large or nested too deeply, throws what `errorOf` returns. `name`: the name of the value in messages.
 */
export function payloadText(
  name: string,
  value: unknown,
  errorOf: (code: Code, message: string) => Error,
  { maxFrameBytes, maxDepth }: LinkBounds = BOUNDS,
): JsonText {
  let json: string | undefined;
  try {
    json = jsonOf(value);
  } catch (cause) {
    // The value is cyclic, nested too deeply for the stack, or contains a bigint.
    throw new TypeError(`${name}: JSON expected: ${String(cause)}${see('arguments')}`, { cause });
  }
  if (json === undefined) throw wrong(name, value, 'JSON');
  if (longerThan(json, maxFrameBytes))
    throw errorOf('payload_too_large', `${name}: larger than ${maxFrameBytes} bytes`);
  if (deeperThan(json, maxDepth)) throw errorOf('invalid_argument', `${name}: nested deeper than ${maxDepth} levels`);
  return trustJson(json);
}

/** Returns the JSON text of an object, with one more member in front. The value of this member is already JSON text. */
export function bodyWith(name: string, json: JsonText, members: object): string {
  const others = JSON.stringify(members).slice(1);
  return `{"${name}":${json}${others === '}' ? '' : ','}${others}`;
}

/** Returns `url` without trailing slashes. */
export function trimUrl(url: string): string {
  return url.replace(/\/+$/, '');
}

/** Returns the header `Retry-After` in milliseconds; null if it is absent or not a whole number of seconds. */
export function retryAfterOf(headers: Headers): number | null {
  const text = headers.get('retry-after') ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) * 1000 : null;
}

type Sent = Omit<RelayRequest, 'budgetMs' | 'fault'> & {
  readonly url: string;
  readonly token: string;
  readonly signal: AbortSignal;
};

async function sendOnce(
  { fetch = globalThis.fetch }: Pick<RelayRequestOptions, 'fetch'>,
  sent: Sent,
): Promise<HttpAnswer> {
  const { url, token, method, path, body, signal, trace, onProgress } = sent;
  const response = await fetch(trimUrl(url) + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      accept: onProgress ? EVENT_STREAM : 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(trace && traceHeaders(trace)),
    },
    signal,
    ...(body !== undefined && { body }),
  });
  const { status, headers } = response;
  // A refusal is not a stream, and neither is the answer if the command has already ended.
  if (onProgress && response.body && headers.get('content-type')?.startsWith(EVENT_STREAM))
    return readEvents(response.body, onProgress);
  const answer = parseObject(await response.text());
  // A server error without a JSON object may come from a proxy, so the request is sent again.
  if (answer === null && status >= 500) throw new Error(`HTTP ${status} without a relay's answer.`);
  return { status, body: answer ?? {}, retryAfterMs: retryAfterOf(headers) };
}
