/**
 * Sends one HTTP request or one GraphQL operation to the relay, with token, timeout and retries, and reads its refusal.
 * Also has what the errors and spans of all client libraries share.
 */
import { deeperThan, longerThan } from '../../protocol/bounds.ts';
import type { CloseReason, Code } from '../../protocol/codes.ts';
import { parseObject, trustJson, type JsonText } from '../../protocol/json.ts';
import { STATUS_ERROR, type SpanLike, type SpanValues } from '../../protocol/trace.ts';
import { BASE_URL, COUNT, FUNCTION, OBJECT, TOKEN, wrong, type MembersOf } from './options.ts';
import {
  BOUNDS,
  unreachable,
  backoffMs,
  guarded,
  jsonOf,
  pageHint,
  see,
  sleep,
  systemClock,
  takeToken,
  unlessAborted,
  type LinkBounds,
  type Clock,
  type ErrorSink,
  type TokenSource,
} from './platform.ts';

/** The options of every library that sends HTTP requests. */
export type RelayRequestOptions = {
  /**
   * The relay's base address, such as `http://127.0.0.1:4400`. Of several addresses of one deployment, the next one is
   * tried when a request fails.
   */
  readonly url: string | readonly string[];
  /**
   * A token, or a function that returns one. The function is called before each request, and once more when the relay
   * answers 401. If it throws, the call rejects with the code `unauthenticated`. Undefined, such as an environment
   * variable that is not set, is refused at once.
   */
  readonly token: TokenSource | undefined;
  /** How many times a request is sent again when its connection breaks or no answer arrives in time. Default 3. */
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
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** The JSON text of the body. */
  readonly body?: string;
  /** How long everything together may take, in milliseconds. A request that was written is given GRACE_MS more. */
  readonly budgetMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly trace?: WireTrace;
  /** Asks for an event stream, and receives the reports of progress that arrive before the answer. */
  readonly onProgress?: ProgressSink | undefined;
  /** Creates the error to throw when there is no answer. */
  readonly fault: (code: 'unreachable' | 'unauthenticated', message: string, details: LibraryErrorDetails) => Error;
};

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

const EVENT_STREAM = 'text/event-stream';
/** The bounds of the pauses before retries, in milliseconds: of the first one, and of all. */
const RETRY_MS = { baseMs: 200, capMs: 5_000 };
/** The least pause before a retry, in milliseconds. */
const LEAST_PAUSE_MS = 100;
/** How much longer than its budget a call waits for the answer to a request that was written, in milliseconds. */
export const GRACE_MS = 2_000;
/** The budget of a request that the relay answers at once, in milliseconds. */
export const AT_ONCE_MS = 10_000;

/**
 * Sends a request until a relay answers. Token function, connections, answers and pauses share one budget. The request
 * is sent again after a broken connection, and after a server error without a JSON object, which may come from a proxy;
 * of several addresses, the next one is then tried. So the request must be safe to repeat. Rejects with the
 * `unreachable` fault when the budget or the retries are used up, with the `unauthenticated` fault when the token
 * function fails or takes longer than the budget, and with the signal's reason as soon as the signal is aborted.
 */
export async function requestRelay(options: RelayRequestOptions, request: RelayRequest): Promise<HttpAnswer> {
  const { clock = systemClock, random = Math.random, retries = Infinity } = options;
  const { budgetMs, signal: leave } = request;
  const urls = [options.url].flat();
  const late = new AbortController();
  const stop = (): void => late.abort(new Error(`There was no answer within ${budgetMs} ms.`));
  const signal = leave ? AbortSignal.any([leave, late.signal]) : late.signal;
  // A promise of the program, such as the token function's, may never be settled.
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

/** The codes of errors of Node that come before a request is written. Browsers do not say when a connection failed. */
const UNSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

function isUnsent({ cause }: Error): boolean {
  return cause instanceof Error && 'code' in cause && UNSENT.test(String(cause.code));
}

function unanswered(url: string, mayHaveRun: boolean, { message }: Error): string {
  if (!mayHaveRun) return unreachable(url) + see('unreachable');
  return `No answer came from ${url} (${message}) The request may have been written: it may have run.${pageHint(url)}${see('may-have-run')}`;
}

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

/**
 * Returns a value as JSON text. Throws TypeError for a value that is no JSON, and what `errorOf` makes of one that the
 * relay would refuse because it is too large or nested too deeply. `name`: what the value is called.
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
    // It is cyclic, nested deeper than the stack allows, or holds a bigint.
    throw new TypeError(`${name}: JSON expected: ${String(cause)}${see('arguments')}`, { cause });
  }
  if (json === undefined) throw wrong(name, value, 'JSON');
  if (longerThan(json, maxFrameBytes))
    throw errorOf('payload_too_large', `${name}: larger than ${maxFrameBytes} bytes`);
  if (deeperThan(json, maxDepth)) throw errorOf('invalid_argument', `${name}: nested deeper than ${maxDepth} levels`);
  return trustJson(json);
}

/** Returns the JSON text of an object, with one more member before the others, whose value is given as JSON text. */
export function bodyWith(name: string, json: JsonText, members: object): string {
  const others = JSON.stringify(members).slice(1);
  return `{"${name}":${json}${others === '}' ? '' : ','}${others}`;
}

/** Returns `url` without trailing slashes. */
export function trimUrl(url: string): string {
  return url.replace(/\/+$/, '');
}

/** Returns the header `Retry-After` in milliseconds. Null: the header is absent or not a whole number of seconds. */
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
  // A refusal is no stream, and neither is the answer of a command that has ended already.
  if (onProgress && response.body && headers.get('content-type')?.startsWith(EVENT_STREAM))
    return readEvents(response.body, onProgress);
  const answer = parseObject(await response.text());
  // A server error without a JSON object may come from a proxy: the request is sent again.
  if (answer === null && status >= 500) throw new Error(`HTTP ${status} without a relay's answer.`);
  return { status, body: answer ?? {}, retryAfterMs: retryAfterOf(headers) };
}

// Reads the progress of a call.

/**
 * A report of progress. Nothing checks its value. `number` counts the reports of the handler, from 1; null if the
 * client does not number them. `missed`: how many reports between the previous one and this one did not arrive. An
 * `await` counts from the first one that arrives.
 */
export type ProgressUpdate = { readonly value: unknown; readonly number: number | null; readonly missed: number };

/** Receives a report of progress: its JSON text, and its number if it has one. */
export type ProgressSink = (json: string | null, number: number | undefined) => void;

/**
 * Returns the sink of one call, which counts the reports that did not arrive. It serves the call to its end, also when
 * the request is sent again. `last`: the number before that of the first report; undefined: unknown. `onError` receives
 * what `onProgress` throws. Undefined without `onProgress`.
 */
export function progressSink(
  onProgress: ((update: ProgressUpdate) => unknown) | undefined,
  last: number | undefined,
  onError?: ErrorSink,
): ProgressSink | undefined {
  if (!onProgress) return undefined;
  return (json, number) =>
    guarded(() => {
      const missed = number === undefined || last === undefined ? 0 : number - last - 1;
      // A report may arrive again after the request was sent again.
      if (missed < 0) return undefined;
      last = number ?? last;
      return onProgress({ value: JSON.parse(json ?? 'null'), number: number ?? null, missed });
    }, onError);
}

/**
 * Reads the events of a call in the form in which relays write them, the lines `event`, perhaps `id`, and `data`.
 * Returns the answer. Throws if the stream ends without one.
 */
async function readEvents(stream: ReadableStream<Uint8Array>, onProgress: ProgressSink): Promise<HttpAnswer> {
  const decoder = new TextDecoder();
  // Some browsers cannot iterate over a ReadableStream.
  const reader = stream.getReader();
  let answer: HttpAnswer | undefined;
  let text = '';
  // The stream is read to its end, so that its connection can be used again.
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + decoder.decode(part.value, { stream: true })).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [name, ...fields] = event.split('\n');
      const data = fields.pop()?.slice('data: '.length) ?? '';
      const [id] = fields;
      if (name === 'event: progress') onProgress(data, id ? Number(id.slice('id: '.length)) : undefined);
      // The data of an answer has the members `status` and `body`.
      if (name === 'event: answer') answer = { ...JSON.parse(data), retryAfterMs: null };
    }
  }
  if (answer) return answer;
  throw new Error('The stream broke.');
}

// Sends GraphQL operations, and reads their answers.

/** The text of a GraphQL operation, with the types of its data and its variables if they are known. */
export type TypedOperation<Data, Variables> = {
  toString(): string;
  readonly __apiType?: (variables: Variables) => Data;
};

/** Runs one operation. Rejects with the library's error, also when the answer contains errors beside partial data. */
export type RunOperation = <Data, Variables extends object>(
  operation: TypedOperation<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
) => Promise<Data>;

type OperationErrorDetails = LibraryErrorDetails & { readonly status?: number | null };

/** How long the relay may take to answer an operation, in milliseconds. */
const OPERATION_MS = 10_000;

/**
 * Creates a function that sends queries and mutations to the relay's GraphQL endpoint. It repeats a request whose
 * connection breaks, so set `retries` to 0 for a mutation that must not be repeated. `errorOf` creates the errors.
 */
export function createOperationRunner(
  options: RelayRequestOptions,
  errorOf: (code: string, message: string, details: OperationErrorDetails) => Error,
): RunOperation {
  return async <Data, Variables extends object>(
    operation: TypedOperation<Data, Variables>,
    variables: Variables,
    signal?: AbortSignal,
  ): Promise<Data> => {
    const { status, body, retryAfterMs } = await requestRelay(options, {
      method: 'POST',
      path: '/graphql',
      body: JSON.stringify({ query: operation.toString(), variables }),
      budgetMs: OPERATION_MS,
      signal,
      fault: (code, message, cause) => errorOf(code, message, { cause }),
    });
    const refused = operationRefusal(body);
    if (refused) throw errorOf(refused.code, refused.message, { status, retryAfterMs });
    const { data } = body;
    if (isData<Data>(data)) return data;
    throw errorOf('bad_answer', badAnswer(status).message, { status, retryAfterMs });
  };
}

/** Whether it is an object. Its members are not checked: the relay validated the document against its schema. */
export function isData<Data>(data: unknown): data is Data {
  return typeof data === 'object' && data !== null;
}

/**
 * Returns the first error of a GraphQL answer, or the problem document of a request that was refused before GraphQL.
 * Null: the answer has neither.
 */
export function operationRefusal(body: HttpAnswer['body']): { readonly code: string; readonly message: string } | null {
  const first: unknown = Array.isArray(body['errors']) ? body['errors'][0] : undefined;
  if (first !== undefined) {
    const error = recordOf(first);
    const code = textOf(recordOf(error['extensions'])['code']) ?? 'bad_answer';
    return { code, message: textOf(error['message']) ?? code };
  }
  const code = textOf(body['code']);
  return code === null ? null : { code, message: textOf(body['detail']) ?? code };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** A trace context as the members of a frame. Empty: the request belongs to no trace. */
export type WireTrace = {
  readonly trace_id?: string | undefined;
  readonly parent_span_id?: string | undefined;
  readonly trace_flags?: string | undefined;
  readonly trace_state?: string | undefined;
};

function traceHeaders({ trace_id, parent_span_id, trace_flags, trace_state }: WireTrace): Record<string, string> {
  return {
    ...(trace_id && { traceparent: `00-${trace_id}-${parent_span_id}-${trace_flags}` }),
    ...(trace_state && { tracestate: trace_state }),
  };
}

// What the spans of all client libraries share. The program passes in the `trace` object that records them.

export type { TraceApi } from '../../protocol/trace.ts';

/** The name of the tracer: the instrumentation scope of the spans. */
export const SCOPE = 'callboard';

/** Returns the attributes that the span of a command has from its start. */
export function spanAttributes(commandId: string): SpanValues {
  return { 'rpc.system.name': SCOPE, 'callboard.command_id': commandId };
}

/** Ends a span. `error`: the code of what went wrong, if the work failed. */
export function endSpan(span: SpanLike, status: string, error?: string): void {
  span.setAttributes({ 'rpc.status_code': status, ...(error && { 'error.type': error }) });
  if (error) span.setStatus({ code: STATUS_ERROR });
  span.end();
}
