/** Implements the caller over the relay's REST API. */
import { AWAIT_WITHIN_MS } from '../../protocol/bounds.ts';
import type { TraceApi } from '../../protocol/trace.ts';
import type { ActionSpecs } from '../link/actions.ts';
import type { ErrorSink } from '../link/callbacks.ts';
import { refusalIn, type AnswerRefusal, type HttpAnswer } from '../link/library-error.ts';
import type { WireTrace } from '../link/spans.ts';
import { FUNCTION, OBJECT, checkMembers } from '../link/options.ts';
import { progressSink } from '../link/progress.ts';
import {
  AT_ONCE_MS,
  REQUEST_MEMBERS,
  bodyWith,
  requestRelay,
  type RelayRequest,
  type RelayRequestOptions,
} from '../link/request-with-retries.ts';
import {
  type Handle,
  type Caller,
  type ActionCaller,
  CallerError,
  type Invocation,
  type AwaitOptions,
  type Receipt,
  type Target,
  type InvokeOptions,
} from './caller.ts';
import { toReceipt, readHttpOutcome } from './outcomes.ts';
import { TracingCaller, budgetOf, awaitBudget, type InvokeCall } from './tracing-caller.ts';

export type HttpCallerOptions = RelayRequestOptions & {
  /** The `trace` object of `@opentelemetry/api`. If set, a span is recorded for each call. */
  readonly tracing?: TraceApi;
  /** Receives the errors that `onProgress` throws. Default: they are ignored. */
  readonly onError?: ErrorSink;
};

type CommandRequest = Omit<RelayRequest, 'signal' | 'onProgress' | 'fault'> & { readonly handle: Handle };

/**
 * Creates a caller over the relay's REST API. Each wait is one HTTP request. `onStage` is never called. Throws
 * TypeError for invalid options.
 */
export function createHttpCaller(options: HttpCallerOptions): Caller;
export function createHttpCaller<A extends ActionSpecs>(options: HttpCallerOptions): ActionCaller<A>;
export function createHttpCaller(options: HttpCallerOptions): Caller {
  const [required, optional] = REQUEST_MEMBERS;
  checkMembers('', options, [required, { ...optional, tracing: OBJECT, onError: FUNCTION }]);
  return new HttpCaller(options);
}

class HttpCaller extends TracingCaller {
  readonly #options: HttpCallerOptions;
  readonly #closing = new AbortController();

  constructor(options: HttpCallerOptions) {
    super(options);
    this.#options = options;
  }

  protected async sendInvoke<T>(
    { handle, target, params, options }: InvokeCall,
    trace: WireTrace,
  ): Promise<Invocation<T>> {
    const body = bodyWith('params', params, { command_id: handle.commandId, ...fieldsOf(target, options) });
    const path = `/connections/${pathOf(handle.userId, handle.clientId)}/actions/${pathOf(target.action)}`;
    const request = { method: 'POST', path, body, handle, budgetMs: budgetOf(options), trace } as const;
    return invocationOf(handle, await this.#request(request, options, 0));
  }

  protected async sendAwait<T>(handle: Handle, options: AwaitOptions, trace: WireTrace): Promise<Invocation<T>> {
    const { waitFor, withinMs = AWAIT_WITHIN_MS.default } = options;
    const path = `${commandPath(handle)}?within_ms=${withinMs}${waitFor ? `&wait_for=${waitFor}` : ''}`;
    const request = { method: 'GET', path, handle, budgetMs: awaitBudget(options), trace } as const;
    return invocationOf(handle, await this.#request(request, options));
  }

  protected async sendCancel(handle: Handle, reason: string | undefined): Promise<Receipt> {
    const body = JSON.stringify({ reason });
    const path = `${commandPath(handle)}/cancel`;
    const answer = await this.#request({ method: 'POST', path, body, handle, budgetMs: AT_ONCE_MS });
    if (answer.status >= 300) throw refusalOf(handle, refusalIn(answer));
    return toReceipt(handle, answer.body['state']);
  }

  async close(): Promise<void> {
    this.#closing.abort(new CallerError('closed', 'The caller was closed.'));
  }

  /**
   * Sends a request. `last`: the number of the last progress report that is not needed: 0 for a new call. Undefined if
   * it is not known; reports before the first one that arrives then do not count as missed.
   */
  #request(
    { handle, ...request }: CommandRequest,
    { signal, onProgress }: Pick<AwaitOptions, 'signal' | 'onProgress'> = {},
    last?: number,
  ): Promise<HttpAnswer> {
    const closing = this.#closing.signal;
    return requestRelay(this.#options, {
      ...request,
      onProgress: progressSink(onProgress, last, this.#options.onError),
      signal: signal ? AbortSignal.any([closing, signal]) : closing,
      fault: (code, message, details) => new CallerError(code, message, { handle, ...details }),
    });
  }
}

/**
 * Returns the members of an invocation that the relay reads, except its ids and its params. They are the same over HTTP
 * and over a link.
 */
export function fieldsOf({ instanceId }: Target, options: InvokeOptions) {
  return {
    instance_id: instanceId,
    context_id: options.contextId,
    wait_for: options.waitFor,
    connect_within_ms: options.connectWithinMs,
    respond_within_ms: options.respondWithinMs,
    trace_id: options.traceId,
    parent_span_id: options.parentSpanId,
  };
}

function pathOf(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join('/');
}

function commandPath({ userId, clientId, commandId }: Handle): string {
  return `/commands/${pathOf(userId, clientId, commandId)}`;
}

function invocationOf<T>(handle: Handle, answer: HttpAnswer): Invocation<T> {
  return { handle, ...readHttpOutcome<T>(answer, (refusal) => refusalOf(handle, refusal)) };
}

function refusalOf(handle: Handle, { code, message, details }: AnswerRefusal): CallerError {
  return new CallerError(code, message, { handle, ...details });
}
