/** The base class of both callers: checks of arguments, time budgets, and trace spans. */
import { AWAIT_WITHIN_MS, CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../protocol/bounds.ts';
import type { Code } from '../../protocol/codes.ts';
import type { JsonText } from '../../protocol/json.ts';
import { CLIENT, type TraceApi } from '../../protocol/trace.ts';
import { timeOrderedId } from '../link/ids.ts';
import { BOUNDS, type LinkBounds } from '../link/link-status.ts';
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
import { systemClock, type Clock } from '../link/platform.ts';
import { AT_ONCE_MS, payloadText } from '../link/request-with-retries.ts';
import { SCOPE, endSpan, spanAttributes, type WireTrace } from '../link/spans.ts';
import {
  type InvokeOptions,
  type Target,
  type Handle,
  type AwaitOptions,
  type Caller,
  type Invocation,
  type Receipt,
  CallerError,
} from './caller.ts';

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
    commandId: ID,
    contextId: ID,
    respondWithinMs: RESPOND_MS,
    connectWithinMs: CONNECT_MS,
    traceId: TRACE_ID,
    parentSpanId: TRACE_ID,
  },
];

/**
 * Throws TypeError if the handle does not name a command. A handle may have further members, so a row of a listing can
 * be passed.
 */
function checkHandle(handle: Handle): void {
  checkValue('handle', handle, OBJECT);
  const { userId, clientId, commandId } = handle;
  checkMembers('handle.', { userId, clientId, commandId }, HANDLE);
}

/**
 * Returns the time limit of an await, in milliseconds. If the await waits for less than a second, the relay only reads
 * the record.
 */
export function awaitBudget({ withinMs = AWAIT_WITHIN_MS.default }: AwaitOptions): number {
  return withinMs < 1_000 ? AT_ONCE_MS : withinMs;
}

export type InvokeCall = {
  readonly handle: Handle;
  readonly target: Target;
  /** The params, as the JSON text of an object. */
  readonly params: JsonText;
  readonly options: InvokeOptions;
};

/** A caller that records a span for each `invoke` and each `await`. The parent is the active span. */
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

  /** The most bytes and levels of what may be sent. */
  protected get bounds(): LinkBounds {
    return BOUNDS;
  }

  /** Sends an invocation with its trace context, and waits for the answer. */
  protected abstract sendInvoke<T>(call: InvokeCall, trace: WireTrace): Promise<Invocation<T>>;
  protected abstract sendAwait<T>(handle: Handle, options: AwaitOptions, trace: WireTrace): Promise<Invocation<T>>;
  protected abstract sendCancel(handle: Handle, reason: string | undefined): Promise<Receipt>;
  abstract close(): Promise<void>;

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * Returns params as JSON text. Throws TypeError if they are not an object, and CallerError if they are too large or
 * nested too deeply.
 */
function paramsText(params: object, handle: Handle, bounds: LinkBounds): JsonText {
  const errorOf = (code: Code, message: string): CallerError => new CallerError(code, message, { handle });
  const json = payloadText('params', params, errorOf, bounds);
  if (!/^\s*{/.test(json)) throw wrong('params', json, 'an object');
  return json;
}

type TracedCall<T> = {
  readonly handle: Handle;
  /** The action that is invoked; null if the call awaits a command. */
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
    // If the program has no OpenTelemetry SDK, span ids consist of zeros. They are not sent.
    const answer = await run(/[^0]/.test(traceId) ? trace : {});
    endSpan(span, answer.outcome, 'error' in answer ? answer.error.code : undefined);
    return answer;
  } catch (error) {
    const code = error instanceof CallerError ? error.code : 'aborted';
    endSpan(span, code, code);
    throw error;
  }
}
