import { randomId } from '../link/random.ts';
import { CallerError } from './errors.ts';
import { AWAIT_WITHIN_MS, budgetOf, toInvocation, toReceipt } from './invocation.ts';
import { askRelay, type HttpAnswer, type HttpCallerOptions, type HttpRequest } from './request.ts';
import type { AwaitOptions, Caller, Failure, Handle, Invocation, InvokeOptions, Receipt, Target } from './types.ts';

export type { HttpCallerOptions } from './request.ts';

/** A caller over the relay's REST paths: one request per wait. `onStage` is never called. */
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
    const handle = { userId, clientId, commandId: options.commandId ?? randomId('c-') };
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
    const budgetMs = budgetOf(options);
    return invocationOf(handle, await this.#ask({ method: 'POST', path, body, handle, budgetMs }, options.signal));
  }

  async await<T>(handle: Handle, options: AwaitOptions = {}): Promise<Invocation<T>> {
    const { waitFor, withinMs = AWAIT_WITHIN_MS, signal } = options;
    const query = new URLSearchParams({ within_ms: String(withinMs), ...(waitFor ? { wait_for: waitFor } : {}) });
    const path = `${commandPath(handle)}?${query}`;
    return invocationOf(handle, await this.#ask({ method: 'GET', path, handle, budgetMs: withinMs }, signal));
  }

  async cancel(handle: Handle, reason?: string): Promise<Receipt> {
    const body = reason === undefined ? {} : { reason };
    const path = `${commandPath(handle)}/cancel`;
    const answer = await this.#ask({ method: 'POST', path, body, handle, budgetMs: 0 }, undefined);
    if (answer.status >= 300) throw refusalOf(handle, answer);
    return toReceipt(handle, answer.body['state']);
  }

  async close(): Promise<void> {
    this.#closing.abort(new CallerError('closed', 'The caller was closed.'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #ask(request: Omit<HttpRequest, 'signal'>, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    const closing = this.#closing.signal;
    const both = signal ? AbortSignal.any([closing, signal]) : closing;
    if (both.aborted) return Promise.reject(both.reason);
    return askRelay(this.#options, { ...request, signal: both });
  }
}

function pathOf(...parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join('/');
}

function commandPath({ userId, clientId, commandId }: Handle): string {
  return `/commands/${pathOf(userId, clientId, commandId)}`;
}

/** An end that came with a status of its own (504) is an invocation all the same; any other refusal is thrown. */
function invocationOf<T>(handle: Handle, answer: HttpAnswer): Invocation<T> {
  const { status, body } = answer;
  const outcome = textOf(body['outcome']);
  if (status >= 300 && outcome === null) throw refusalOf(handle, answer);
  const stage = textOf(body['stage']);
  const execution = textOf(body['execution']);
  if (stage === null || execution === null) throw badAnswer(handle, status);
  // The caller's own claim: nothing is known here of what its actions answer.
  const result = (body['result'] ?? null) as T;
  return toInvocation({
    handle,
    rpcId: textOf(body['rpc_id']),
    outcome,
    stage,
    execution,
    result,
    error: failureOf(body),
  });
}

function failureOf(body: HttpAnswer['body']): Failure | null {
  const error = body['error'];
  const inner = typeof error === 'object' && error !== null ? { ...error } : body;
  const code: unknown = 'code' in inner ? inner.code : undefined;
  const message: unknown = 'message' in inner ? inner.message : body['detail'];
  return typeof code === 'string' ? { code, message: textOf(message) ?? code } : null;
}

function refusalOf(handle: Handle, { status, body, retryAfterMs }: HttpAnswer): CallerError {
  const code = textOf(body['code']);
  if (code === null) return badAnswer(handle, status);
  const message = textOf(body['detail']) ?? textOf(body['title']) ?? code;
  const by = textOf(body['by']) ?? textOf(body['refused_by']);
  return new CallerError(code, message, { handle, by, retryAfterMs });
}

function badAnswer(handle: Handle, status: number): CallerError {
  return new CallerError('bad_answer', `HTTP ${status} is not a relay's answer.`, { handle });
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
