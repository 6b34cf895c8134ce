/**
 * Sends one HTTP request or one GraphQL operation to the relay, with token, timeout and retries, and reads its refusal.
 * Also has what the errors and spans of all client libraries share.
 */
import type { CloseReason, Code } from '../../protocol/codes.ts';
import { parseObject, writeJson } from '../../protocol/json.ts';
import { STATUS_ERROR, type SpanLike, type SpanValues } from '../../protocol/trace.ts';
import {
  checkBaseUrl,
  checkToken,
  unreachable,
  BACKOFF_CAP_MS,
  backoffMs,
  guarded,
  sleep,
  systemClock,
  takeToken,
  type Clock,
  type ErrorSink,
  type TokenSource,
} from './platform.ts';

/** The options of every library that sends HTTP requests. */
export type RelayRequestOptions = {
  /** The relay's base address, such as `http://127.0.0.1:4400`. */
  readonly url: string;
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

/** Throws TypeError for an address or a token with which no request can succeed. */
export function checkRequestOptions({ url, token }: RelayRequestOptions): void {
  checkBaseUrl(url);
  checkToken(token);
}

export type RelayRequest = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  /** How long the relay may take to answer, in milliseconds. An attempt is given up only GRACE_MS later. */
  readonly budgetMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly trace?: WireTrace;
  /** Asks for an event stream, and receives the reports of progress that arrive before the answer. */
  readonly onProgress?: ProgressSink | undefined;
  /** Creates the error to throw when there is no answer. */
  readonly fault: (code: 'unreachable' | 'unauthenticated', message: string, cause: unknown) => Error;
};

/** A response. `body` is the JSON object that it contains; `{}` if it contains none. */
export type HttpAnswer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
};

const EVENT_STREAM = 'text/event-stream';
const RETRIES = 3;
/** The basis of the exponential pauses before retries, in milliseconds. */
const RETRY_BASE_MS = 200;
/** How long a request without an answer may exceed its budget before it is given up, in milliseconds. */
export const GRACE_MS = 15_000;

/**
 * Sends a request until a relay answers. It sends the request again after a broken connection, and after a server error
 * without a JSON object, which may come from a proxy. So the request must be safe to repeat. Rejects with the
 * `unreachable` fault after the last retry, with the `unauthenticated` fault when the token function fails, and with
 * the signal's reason as soon as the signal is aborted.
 */
export async function requestRelay(options: RelayRequestOptions, request: RelayRequest): Promise<HttpAnswer> {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  let refused = false;
  for (let attempt = 0; ; attempt++) {
    request.signal?.throwIfAborted();
    const token = await takeToken(options.token).catch((cause: unknown) => {
      throw request.fault('unauthenticated', 'The token source gave no token.', cause);
    });
    const answer = await sendOnce(options, request, token).catch((error: unknown) => {
      request.signal?.throwIfAborted();
      return new Error('The connection broke.', { cause: error });
    });
    if (!(answer instanceof Error)) {
      if (answer.status !== 401 || typeof options.token === 'string' || refused) return answer;
      refused = true;
      continue;
    }
    if (attempt >= (options.retries ?? RETRIES)) {
      throw request.fault('unreachable', unreachable(options.url), answer);
    }
    const ms = backoffMs(attempt, { baseMs: RETRY_BASE_MS, capMs: BACKOFF_CAP_MS, random });
    await sleep(clock, ms, request.signal);
  }
}

/** What every error of the libraries may say besides its code and message. */
export type LibraryErrorDetails = { readonly retryAfterMs?: number | null; readonly cause?: unknown };

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

  constructor(name: string, code: string, message: string, { retryAfterMs, cause }: LibraryErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = name;
    // Most codes come from the relay, as texts.
    this.code = code as ErrorCode;
    this.retryAfterMs = retryAfterMs ?? null;
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
  };
};

/** Reads a refusal of the relay. The code is `bad_answer` if the response does not come from a relay. */
export function refusalIn({ status, body, retryAfterMs }: HttpAnswer): AnswerRefusal {
  const code = textOf(body['code']);
  if (code === null) return badAnswer(status);
  const message = textOf(body['detail']) ?? textOf(body['title']) ?? code;
  const by = textOf(body['by']) ?? textOf(body['refused_by']);
  return { code, message, details: { retryAfterMs, by, share: textOf(body['share']) } };
}

export function badAnswer(status: number): AnswerRefusal {
  return { code: 'bad_answer', message: `HTTP ${status} without a relay's answer.`, details: {} };
}

/** Returns the value if it is a string; otherwise null. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
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

async function sendOnce(options: RelayRequestOptions, request: RelayRequest, token: string): Promise<HttpAnswer> {
  const { method, path, body, signal, budgetMs, trace, onProgress } = request;
  const timeout = new AbortController();
  const timeoutError = new Error('The relay did not answer in time.');
  const cancelTimer = (options.clock ?? systemClock).after(budgetMs + GRACE_MS, () => timeout.abort(timeoutError));
  try {
    const response = await (options.fetch ?? globalThis.fetch)(trimUrl(options.url) + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: onProgress ? EVENT_STREAM : 'application/json',
        ...(body && { 'content-type': 'application/json' }),
        ...(trace && traceHeaders(trace)),
      },
      signal: signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal,
      ...(body ? { body: writeJson(body) ?? '{}' } : {}),
    });
    const { status, headers } = response;
    // A refusal is no stream, and neither is the answer of a command that has ended already.
    if (onProgress && response.body && headers.get('content-type')?.startsWith(EVENT_STREAM))
      return await readEvents(response.body, onProgress);
    const answer = parseObject(await response.text());
    // A server error without a JSON object may come from a proxy: the request is sent again.
    if (answer === null && status >= 500) throw new Error(`HTTP ${status} without a relay's answer`);
    return { status, body: answer ?? {}, retryAfterMs: retryAfterOf(headers) };
  } finally {
    cancelTimer();
  }
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
      body: { query: operation.toString(), variables },
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
