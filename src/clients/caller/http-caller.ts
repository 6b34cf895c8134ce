/** Implements a Caller over the relay's REST API: one HTTP request for each wait, and no WebSocket. */
import type { TraceApi } from '../../protocol/trace.ts';
import { systemClock, timeOrderedId, type Clock } from '../link/platform.ts';
import { requestRelay, type HttpAnswer, type RelayRequest, type WireTrace } from '../link/relay-request.ts';
import type { TokenSource } from '../link/socket.ts';
import {
  AWAIT_WITHIN_MS,
  CallerError,
  budgetOf,
  readHttpOutcome,
  readHttpRefusal,
  toReceipt,
  traced,
  type AwaitOptions,
  type Caller,
  type Handle,
  type Invocation,
  type InvokeOptions,
  type Receipt,
  type Target,
} from './caller-types.ts';

export type HttpCallerOptions = {
  /** The relay's base address, such as `http://127.0.0.1:4400`. */
  readonly url: string;
  /**
   * A token, or a function that returns one. The function is called before each request, and once more when the relay
   * answers 401.
   */
  readonly token: TokenSource;
  /** How many times a request is sent again when its connection breaks. Default 3. */
  readonly retries?: number;
  /** The `trace` object of `@opentelemetry/api`, to record a span for each call. */
  readonly tracing?: TraceApi;
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** A source of random numbers from 0 (included) to 1 (excluded), for jitter. Default `Math.random`. */
  readonly random?: () => number;
};

type CommandRequest = Omit<RelayRequest, 'signal' | 'fault'> & { readonly handle: Handle };

/** Creates a caller over the relay's REST API. Each wait is one request. `onStage` is never called. */
export function createHttpCaller(options: HttpCallerOptions): Caller {
  new URL(options.url);
  return new HttpCaller(options);
}

class HttpCaller implements Caller {
  readonly #options: HttpCallerOptions;
  readonly #closing = new AbortController();

  constructor(options: HttpCallerOptions) {
    this.#options = options;
  }

  async invoke<T>(target: Target, params: object = {}, options: InvokeOptions = {}): Promise<Invocation<T>> {
    const { userId, clientId, action, instanceId } = target;
    const clock = this.#options.clock ?? systemClock;
    const handle = { userId, clientId, commandId: options.commandId ?? timeOrderedId('c-', clock.now()) };
    const body = {
      params,
      command_id: handle.commandId,
      instance_id: instanceId,
      wait_for: options.waitFor,
      connect_within_ms: options.connectWithinMs,
      respond_within_ms: options.respondWithinMs,
      trace_id: options.traceId,
      parent_span_id: options.parentSpanId,
    };
    const path = `/connections/${pathOf(userId, clientId)}/actions/${pathOf(action)}`;
    const request = { method: 'POST', path, body, handle, budgetMs: budgetOf(options) } as const;
    const tracing = (options.traceId ?? options.parentSpanId) ? undefined : this.#options.tracing;
    const run = async (trace: WireTrace): Promise<Invocation<T>> =>
      invocationOf(handle, await this.#request({ ...request, trace }, options.signal));
    return traced(tracing, { handle, action, run });
  }

  async await<T>(handle: Handle, options: AwaitOptions = {}): Promise<Invocation<T>> {
    const { waitFor, withinMs = AWAIT_WITHIN_MS, signal } = options;
    const query = new URLSearchParams({ within_ms: String(withinMs), ...(waitFor ? { wait_for: waitFor } : {}) });
    const path = `${commandPath(handle)}?${query}`;
    const request = { method: 'GET', path, handle, budgetMs: withinMs } as const;
    const run = async (trace: WireTrace): Promise<Invocation<T>> =>
      invocationOf(handle, await this.#request({ ...request, trace }, signal));
    return traced(this.#options.tracing, { handle, action: null, run });
  }

  async cancel(handle: Handle, reason?: string): Promise<Receipt> {
    const body = reason === undefined ? {} : { reason };
    const path = `${commandPath(handle)}/cancel`;
    const answer = await this.#request({ method: 'POST', path, body, handle, budgetMs: 0 }, undefined);
    if (answer.status >= 300) throw refusalOf(handle, answer);
    return toReceipt(handle, answer.body['state']);
  }

  async close(): Promise<void> {
    this.#closing.abort(new CallerError('closed', 'The caller was closed.'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #request({ handle, ...request }: CommandRequest, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    const closing = this.#closing.signal;
    return requestRelay(this.#options, {
      ...request,
      signal: signal ? AbortSignal.any([closing, signal]) : closing,
      fault: (code, message, cause) => new CallerError(code, message, { handle, cause }),
    });
  }
}

function pathOf(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join('/');
}

function commandPath({ userId, clientId, commandId }: Handle): string {
  return `/commands/${pathOf(userId, clientId, commandId)}`;
}

function invocationOf<T>(handle: Handle, answer: HttpAnswer): Invocation<T> {
  const read = readHttpOutcome<T>(answer);
  if (read === 'refused') throw refusalOf(handle, answer);
  if (read === null) throw badAnswer(handle, answer.status);
  const { outcome, ...evidence } = read;
  return { handle, ...evidence, ...outcome };
}

function refusalOf(handle: Handle, answer: HttpAnswer): CallerError {
  const refusal = readHttpRefusal(answer);
  if (refusal === null) return badAnswer(handle, answer.status);
  const { code, message, by, share } = refusal;
  return new CallerError(code, message, { handle, by, share, retryAfterMs: answer.retryAfterMs });
}

function badAnswer(handle: Handle, status: number): CallerError {
  return new CallerError('bad_answer', `HTTP ${status} without a relay's answer.`, { handle });
}
