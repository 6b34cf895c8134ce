/** The public interface of `callboard/caller`, what both kinds of caller share, and the caller over HTTP. */
import { AWAIT_WITHIN_MS, CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../protocol/bounds.ts';
import {
  CANCEL_STATES,
  EXECUTIONS,
  STAGES,
  type Code,
  type WireCancelState,
  type WireExecution,
  type WireStage,
} from '../../protocol/codes.ts';
import type { WireWaitStage } from '../../protocol/fields.ts';
import { isRecord, type JsonText } from '../../protocol/json.ts';
import { CLIENT, type TraceApi } from '../../protocol/trace.ts';
import type { ActionSpecs, ParamsIn, ResultOf } from '../link/actions.ts';
import {
  AWAIT_MS,
  CONNECT_MS,
  FUNCTION,
  ID,
  NAME,
  OBJECT,
  REASON,
  RESPOND_MS,
  SIGNAL,
  TRACE_ID,
  USER,
  WAIT_STAGE,
  checkMembers,
  checkValue,
  wrong,
  type MembersOf,
} from '../link/options.ts';
import type { ErrorSink } from '../link/callbacks.ts';
import { timeOrderedId } from '../link/ids.ts';
import { BOUNDS, type LinkBounds } from '../link/link-status.ts';
import type { RawJson } from '../link/raw-json.ts';
import { systemClock, type Clock } from '../link/platform.ts';
import {
  LibraryError,
  badAnswer,
  refusalIn,
  textOf,
  type AnswerRefusal,
  type LibraryErrorDetails,
} from '../link/library-error.ts';
import type { WireTrace } from '../link/operation.ts';
import { progressSink, type ProgressUpdate } from '../link/progress.ts';
import { SCOPE, endSpan, spanAttributes } from '../link/spans.ts';
import {
  AT_ONCE_MS,
  REQUEST_MEMBERS,
  bodyWith,
  payloadText,
  requestRelay,
  type HttpAnswer,
  type RelayRequest,
  type RelayRequestOptions,
} from '../link/relay-request.ts';

export type Target = {
  /** The user whose client is called. */
  readonly userId: string;
  readonly clientId: string;
  /** The name of an action that the client advertises. */
  readonly action: string;
  /** Invoke only if this instance of the client is live. */
  readonly instanceId?: string;
};

/**
 * Identifies one command. Any process can await and cancel the command by its handle until the idempotency window (one
 * hour by default) is over.
 */
export type Handle = { readonly userId: string; readonly clientId: string; readonly commandId: string };

export type InvokeOptions = {
  /** The id of the command; generated when absent. The same id with the same action and params never runs twice. */
  readonly commandId?: string;
  /**
   * The context of the client, such as a tab, in which the command may run, and in no other. Refused with
   * `context_gone` if the client does not report it, or with `context_unsupported` if it knows no places. Default: the
   * client chooses.
   */
  readonly contextId?: string;
  /** The stage to wait for. Default `completed`. */
  readonly waitFor?: WireWaitStage;
  /** How long to wait for the client to connect, in milliseconds: 0 to 300000, default 0. */
  readonly connectWithinMs?: number;
  /**
   * How long the client has to respond, in milliseconds: 1000 to 300000, default 30000. The command's deadline is after
   * `connectWithinMs` plus this time.
   */
  readonly respondWithinMs?: number;
  /** The trace that the call belongs to. A call with a given trace records no span of its own, even with `tracing`. */
  readonly traceId?: string;
  /** The span in that trace that the call belongs to. */
  readonly parentSpanId?: string;
  /**
   * Receives `admitted`, `queued`, `dispatched` and `acknowledged` in order; some may be skipped. Only over a link.
   * `onError` of the caller receives what this callback throws.
   */
  readonly onStage?: (stage: WireStage) => void;
  /**
   * Receives the progress that the handler reports, in order, as it arrives. Over HTTP the answer is then an event
   * stream. `onError` of the caller receives what this callback throws. Reports that come after the last one that
   * arrived are not counted as missed: the outcome follows.
   */
  readonly onProgress?: (progress: ProgressUpdate) => void;
  /** A signal that ends the wait, never the command. The promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
};

export type AwaitOptions = Pick<InvokeOptions, 'waitFor' | 'onStage' | 'onProgress' | 'signal'> & {
  /** How long to wait, in milliseconds: 0 to 600000, default 30000. 0 returns the recorded state at once. */
  readonly withinMs?: number;
};

/** Why a command did not complete. A newer relay may send a code that this version does not name. */
export type Failure = { readonly code: Code; readonly message: string };

export type Evidence = {
  readonly handle: Handle;
  readonly rpcId: string | null;
  readonly stage: WireStage;
  /**
   * The last stage that the command is proven to have reached before it ended: how far it certainly came. Null if the
   * relay does not say so: an older one, or one that keeps no more of the command than how it ended.
   */
  readonly lastProvenStage: WireStage | null;
  /** What is proven about execution in the client. */
  readonly execution: WireExecution;
};

/**
 * The result of a wait for a command, discriminated by `outcome`. `T` is the caller's assumption about the result;
 * nothing checks it.
 *
 * - `completed`: the handler returned `result`. With `code` `result_expired`, the relay no longer retains the result,
 *   and `result` is null.
 * - `failed`: the handler failed, or the client refused the command (then `execution` is `refused_by_client`).
 * - `cancelled`: with `execution` `not_written`, nothing ran. Otherwise the handler stopped, and `partial` is its
 *   partial result, if it gave one.
 * - `expired`: the command was never written to a client.
 * - `outcome_unknown`: the command may have run, and nothing more is known.
 * - `pending`: the command has not ended. The wait reached its stage or its time limit, or, over HTTP, the relay that
 *   held the wait shut down. Await the handle to continue waiting.
 */
export type Invocation<T = unknown> = Evidence & Outcome<T>;

export type Outcome<T = unknown> =
  | { readonly outcome: 'completed'; readonly result: T; readonly code?: 'result_expired' }
  | { readonly outcome: 'failed'; readonly error: Failure }
  | { readonly outcome: 'cancelled'; readonly partial: unknown; readonly code?: 'result_expired' }
  | { readonly outcome: 'expired'; readonly error: Failure }
  | { readonly outcome: 'outcome_unknown'; readonly error: Failure }
  | { readonly outcome: 'pending' };

/**
 * The result of a cancel. `cancelled`: the command was not written to its client and never will be. `requested`: the
 * client was asked to stop it. `too_late`: the command had already ended.
 */
export type Receipt = { readonly handle: Handle; readonly state: WireCancelState };

/**
 * Invokes actions on clients. Every end of an admitted command is returned as an Invocation, never thrown. Methods
 * reject with a CallerError (the relay refused the request or could not be reached), or with the reason of the aborted
 * signal.
 */
export interface Caller extends AsyncDisposable {
  /**
   * Invokes an action and waits. `params` is an object or `rawJson(text)` of one; default `{}`. When a connection
   * breaks, the request is sent again under the same command id.
   */
  invoke<T = unknown>(target: Target, params?: object, options?: InvokeOptions): Promise<Invocation<T>>;
  await<T = unknown>(handle: Handle, options?: AwaitOptions): Promise<Invocation<T>>;
  cancel(handle: Handle, reason?: string): Promise<Receipt>;
  /** Ends every wait with CallerError `closed`. The commands continue. */
  close(): Promise<void>;
}

/**
 * A caller of known actions: the type of what `defineActions` returned gives the types of params and results.
 * `createHttpCaller<typeof actions>(options)` creates one, and so does `createLinkCaller`. Only the client checks them.
 */
export interface ActionCaller<A extends ActionSpecs> extends Omit<Caller, 'invoke'> {
  invoke<N extends keyof A & string>(
    target: Omit<Target, 'action'> & { readonly action: N },
    ...rest: {} extends ParamsIn<A[N]>
      ? [params?: ParamsIn<A[N]> | RawJson, options?: InvokeOptions]
      : [params: ParamsIn<A[N]> | RawJson, options?: InvokeOptions]
  ): Promise<Invocation<ResultOf<A[N]>>>;
}

export type CallerErrorDetails = LibraryErrorDetails & {
  readonly handle?: Handle | null;
  readonly by?: string | null | undefined;
  readonly share?: string | null | undefined;
};

/**
 * The error with which a Caller's methods reject when they give no Invocation or Receipt. `code` is one of callboard's
 * codes (`not_connected`, `policy_denied`, ...) when the relay refused the request. A refused invocation leaves no
 * record. Otherwise `code` is one of the caller's own codes:
 *
 * - `unreachable`: the relay could not be reached, or its answer did not arrive within the budget. `mayHaveRun` says
 *   which. If the command may have run, await `handle`, or invoke it again under its id.
 * - `bad_answer`: the response does not come from a relay.
 * - `overloaded`: too many waits are queued in this caller already; nothing was sent.
 * - `closed`: the caller was closed.
 *
 * If the relay closed the link permanently, `code` is the name of the close code.
 */
export class CallerError extends LibraryError {
  /** The command that the error concerns; null when it concerns none. */
  readonly handle: Handle | null;
  /** The check that refused the invocation, if the relay names it: `policy`, `target`, `capacity`, ... */
  readonly by: string | null;
  /** The name of the share that is used up, for `share_exceeded` and `store_full`: `links`, `queued_bytes`, ... */
  readonly share: string | null;

  constructor(code: string, message: string, details: CallerErrorDetails = {}) {
    super('CallerError', code, message, details);
    this.handle = details.handle ?? null;
    this.by = details.by ?? null;
    this.share = details.share ?? null;
  }
}

// Reads the answers of the relay, and checks their form.

/** An outcome as the relay writes it, in a response or in a frame. */
type WireOutcome = Readonly<Record<string, unknown>>;
/** What an outcome has at different places over HTTP and over a link. */
type OutcomeParts<T> = {
  readonly result: T;
  readonly error: { readonly code: string; readonly message: string } | null;
};

export type Ended<T> = Omit<Evidence, 'handle'> & Outcome<T>;

/** Reads an outcome; null if it has an unknown word. Without `outcome`, the command has not ended. */
export function readOutcome<T>(wire: WireOutcome, { result, error }: OutcomeParts<T>): Ended<T> | null {
  const stage = wordOf(STAGES, wire['stage']);
  const execution = wordOf(EXECUTIONS, wire['execution']);
  if (stage === undefined || execution === undefined) return null;
  const outcome = textOf(wire['outcome']);
  // A command that has not ended has reached its stage.
  const lastProvenStage = wordOf(STAGES, wire['last_proven_stage']) ?? (outcome === null ? stage : null);
  const evidence = { rpcId: textOf(wire['rpc_id']), stage, lastProvenStage, execution };
  // A newer relay may send a code that this version does not name.
  const code = (error?.code ?? outcome ?? 'internal') as Code;
  const failure = { code, message: error?.message ?? 'The relay gave no reason.' };
  const expired: { code?: 'result_expired' } = code === 'result_expired' ? { code } : {};
  switch (outcome) {
    case null:
      return { ...evidence, outcome: 'pending' };
    case 'completed':
      return { ...evidence, outcome, result, ...expired };
    case 'cancelled':
      return { ...evidence, outcome, partial: result, ...expired };
    case 'failed':
    case 'expired':
    case 'outcome_unknown':
      return { ...evidence, outcome, error: failure };
    default:
      return null;
  }
}

/**
 * Reads the outcome from a response of any status, such as 504. Throws the error that `errorOf` makes of a refusal, or
 * of `bad_answer` for a response that does not come from a relay.
 */
export function readHttpOutcome<T>(answer: HttpAnswer, errorOf: (refusal: AnswerRefusal) => Error): Ended<T> {
  const { status, body } = answer;
  if (status >= 300 && textOf(body['outcome']) === null) throw errorOf(refusalIn(answer));
  // The type is the caller's assumption. Nothing checks it.
  const read = readOutcome(body, { result: (body['result'] ?? null) as T, error: failureOf(body) });
  if (read === null) throw errorOf(badAnswer(status));
  return read;
}

/** Returns the value if it is one of the words. */
export function wordOf<T extends string>(words: readonly T[], value: unknown): T | undefined {
  return words.find((word) => word === value);
}

function failureOf(body: HttpAnswer['body']): { readonly code: string; readonly message: string } | null {
  const error = isRecord(body['error']) ? body['error'] : body;
  const code = textOf(error['code']);
  return code === null ? null : { code, message: textOf(error['message'] ?? body['detail']) ?? code };
}

/** Creates a Receipt with the state of an answer. Throws CallerError `bad_answer` for an unknown state. */
export function toReceipt(handle: Handle, state: unknown): Receipt {
  const word = wordOf(CANCEL_STATES, state);
  if (word !== undefined) return { handle, state: word };
  throw answerWithout(handle, 'receipt');
}

/** Creates the error for an answer that is not what was asked for. */
export function answerWithout(handle: Handle, expected: string, cause?: unknown): CallerError {
  return new CallerError('bad_answer', `The relay gave no ${expected}.`, { handle, cause });
}

// What both kinds of caller do alike.

/** Returns the total time of an invocation, in milliseconds: its connect budget plus its response budget. */
export function budgetOf({
  connectWithinMs = CONNECT_WITHIN_MS.default,
  respondWithinMs = RESPOND_WITHIN_MS.default,
}: InvokeOptions): number {
  return connectWithinMs + respondWithinMs;
}

const TARGET: MembersOf<Target> = [{ userId: USER, clientId: ID, action: NAME }, { instanceId: ID }];
const HANDLE: MembersOf<Handle> = [{ userId: USER, clientId: ID, commandId: ID }, {}];
const WAIT = { waitFor: WAIT_STAGE, onStage: FUNCTION, onProgress: FUNCTION, signal: SIGNAL };
const AWAIT: MembersOf<AwaitOptions> = [{}, { ...WAIT, withinMs: AWAIT_MS }];
const INVOKE: MembersOf<InvokeOptions> = [
  {},
  {
    ...WAIT,
    ...{ commandId: ID, contextId: ID, respondWithinMs: RESPOND_MS, connectWithinMs: CONNECT_MS },
    ...{ traceId: TRACE_ID, parentSpanId: TRACE_ID },
  },
];

/** Throws TypeError for a handle that names no command. A handle may be a part of a larger object, such as a row. */
function checkHandle(handle: Handle): void {
  checkValue('handle', handle, OBJECT);
  const { userId, clientId, commandId } = handle;
  checkMembers('handle.', { userId, clientId, commandId }, HANDLE);
}

/** Returns the total time of an await, in milliseconds. One that waits for less than a second only reads the record. */
export function awaitBudget({ withinMs = AWAIT_WITHIN_MS.default }: AwaitOptions): number {
  return withinMs < 1_000 ? AT_ONCE_MS : withinMs;
}

export type InvokeCall = {
  readonly handle: Handle;
  readonly target: Target;
  /** A JSON object. */
  readonly params: JsonText;
  readonly options: InvokeOptions;
};

/** A caller that records a span for each `invoke` and each `await`, as a child of the span that is active. */
export abstract class TracingCaller implements Caller {
  readonly #tracing: TraceApi | undefined;
  protected readonly clock: Clock;

  constructor({ tracing, clock = systemClock }: { readonly tracing?: TraceApi; readonly clock?: Clock }) {
    this.#tracing = tracing;
    this.clock = clock;
  }

  async invoke<T>(target: Target, params: object = {}, options: InvokeOptions = {}): Promise<Invocation<T>> {
    checkMembers('target.', target, TARGET);
    checkMembers('options.', options, INVOKE);
    checkValue('params', params, OBJECT);
    const { userId, clientId, action } = target;
    const { traceId, parentSpanId, commandId = timeOrderedId('c-', this.clock.now()) } = options;
    const handle = { userId, clientId, commandId };
    const call = { handle, target, params: paramsText(params, handle, this.bounds), options };
    const run = (trace: WireTrace): Promise<Invocation<T>> => this.sendInvoke(call, trace);
    const tracing = (traceId ?? parentSpanId) ? undefined : this.#tracing;
    return tracing ? traced(tracing, { handle, action, run }) : run({});
  }

  async await<T>(handle: Handle, options: AwaitOptions = {}): Promise<Invocation<T>> {
    checkHandle(handle);
    checkMembers('options.', options, AWAIT);
    const run = (trace: WireTrace): Promise<Invocation<T>> => this.sendAwait(handle, options, trace);
    return this.#tracing ? traced(this.#tracing, { handle, action: null, run }) : run({});
  }

  async cancel(handle: Handle, reason?: string): Promise<Receipt> {
    checkHandle(handle);
    if (reason !== undefined) checkValue('reason', reason, REASON);
    return this.sendCancel(handle, reason);
  }

  /** The bounds of what is sent. */
  protected get bounds(): LinkBounds {
    return BOUNDS;
  }

  /** Sends an invocation as part of the trace, and waits for it. */
  protected abstract sendInvoke<T>(call: InvokeCall, trace: WireTrace): Promise<Invocation<T>>;
  protected abstract sendAwait<T>(handle: Handle, options: AwaitOptions, trace: WireTrace): Promise<Invocation<T>>;
  protected abstract sendCancel(handle: Handle, reason: string | undefined): Promise<Receipt>;
  abstract close(): Promise<void>;

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * Returns params as JSON text. Throws TypeError for what is no object, and CallerError for what is too large or nested
 * too deeply.
 */
function paramsText(params: object, handle: Handle, bounds: LinkBounds): JsonText {
  const errorOf = (code: Code, message: string): CallerError => new CallerError(code, message, { handle });
  const json = payloadText('params', params, errorOf, bounds);
  if (!/^\s*{/.test(json)) throw wrong('params', json, 'an object');
  return json;
}

type TracedCall<T> = {
  readonly handle: Handle;
  /** The action to invoke. Null: the call awaits a command. */
  readonly action: string | null;
  readonly run: (trace: WireTrace) => Promise<Invocation<T>>;
};

async function traced<T>(tracing: TraceApi, { handle, action, run }: TracedCall<T>): Promise<Invocation<T>> {
  const attributes = { ...spanAttributes(handle.commandId), ...(action && { 'rpc.method': action }) };
  const span = tracing.getTracer(SCOPE).startSpan(action ?? 'callboard.await', { kind: CLIENT, attributes });
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const trace = {
    trace_id: traceId,
    parent_span_id: spanId,
    trace_flags: `0${traceFlags & 1}`,
    trace_state: traceState?.serialize(),
  };
  try {
    // Without an SDK, a span has ids of zeros only. Such ids are not sent.
    const answer = await run(/[^0]/.test(traceId) ? trace : {});
    endSpan(span, answer.outcome, 'error' in answer ? answer.error.code : undefined);
    return answer;
  } catch (error) {
    const code = error instanceof CallerError ? error.code : 'aborted';
    endSpan(span, code, code);
    throw error;
  }
}

// The caller over HTTP.

export type HttpCallerOptions = RelayRequestOptions & {
  /** The `trace` object of `@opentelemetry/api`, to record a span for each call. */
  readonly tracing?: TraceApi;
  /** Receives what `onProgress` throws. Default: nothing does. */
  readonly onError?: ErrorSink;
};

type CommandRequest = Omit<RelayRequest, 'signal' | 'onProgress' | 'fault'> & { readonly handle: Handle };

/**
 * Creates a caller over the relay's REST API. Each wait is one request. `onStage` is never called. Throws TypeError for
 * invalid options.
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

  /** Sends a request. `last`: the number before that of the first report of progress; undefined: unknown. */
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

/** Returns what the relay reads of a call, besides its ids and its params, over HTTP as over a link. */
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
