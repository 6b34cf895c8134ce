/** Records a trace span for each request that invokes an action or awaits a command. */
import { callSpanOf } from '../commands/dispatch-spans.ts';
import {
  OTHER_METHOD,
  SPAN_ATTRIBUTE,
  SPAN_NAME,
  hasKnownAction,
  methodAttributes,
  outcomeEnd,
  recordAttributes,
  subjectAttributes,
} from '../commands/span-attributes.ts';
import type { Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { CallboardError } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Span, SpanAttributes, SpanEnd, Tracing } from '../ports.ts';
import { DECLINED, traceContextIn, traceparentOf, type TraceContext, type TraceFields } from '../trace-context.ts';
import { endOf, type CallSpan, type Invocation, type TracedRequest } from './call.ts';

type SpanDeps = Pick<Deps, 'tracing' | 'nodeId'>;

/** A request that gets a span. `action` is null if the request only awaits the command of an earlier call. */
type SpannedRequest = TracedRequest & {
  readonly userId?: string;
  readonly clientId?: string;
  readonly commandId?: string | null | undefined;
  readonly action: string | null;
};

/** The result for every request whose span the sampler declined. */
const DECLINED_CALL: CallSpan = { callSpan: DECLINED, traceId: null, target() {} };

/** The recorded span of one request. */
class RecordedCall implements CallSpan {
  readonly callSpan: string | null;
  readonly traceId: string | null;
  /** Whether the connected client advertises the action. Only then may the action's name stand in the span. */
  #isAdvertised = false;
  readonly #tracing: Tracing;
  readonly #nodeId: string;
  readonly #request: SpannedRequest;
  readonly #span: Span;

  constructor(span: Span, { tracing, nodeId }: SpanDeps & { readonly tracing: Tracing }, request: SpannedRequest) {
    this.#tracing = tracing;
    this.#nodeId = nodeId;
    this.#request = request;
    this.#span = span;
    const { context } = span;
    this.callSpan = context && traceparentOf(context);
    this.traceId = context && context.traceId;
    if (context) request.onSpan?.(context);
  }

  target(live: Connection | null, action: string): void {
    this.#isAdvertised = live !== null && live.actions.some(({ name }) => name === action);
  }

  answered(invocation: Invocation | null): void {
    if (invocation === null) return this.#end(refusalEnd('not_found'));
    if (invocation.kind === 'refused') return this.#end(refusalEnd(invocation.code, invocation.by), invocation);
    const { commandId, outcome, error } = endOf(invocation);
    this.#end(outcomeEnd(outcome, error?.code ?? null), { commandId, ...invocation });
  }

  thrown(error: unknown): void {
    this.#end(refusalEnd(error instanceof CallboardError ? error.code : 'internal'));
  }

  #end({ failed, attributes }: SpanEnd, answer: Answer = {}): void {
    const { action, userId, clientId } = this.#request;
    const commandId = answer.commandId ?? this.#request.commandId ?? undefined;
    const { command } = answer;
    // If another request admitted the command, this request's span links to that request's span.
    const first = command && command.callSpan !== this.callSpan ? callSpanOf(command) : null;
    if (first) this.#span.link(first);
    const isKnown = this.#isAdvertised || (command !== undefined && hasKnownAction(command));
    const about = subjectAttributes(this.#tracing, this.#nodeId, { userId, clientId, commandId });
    if (action !== null) Object.assign(about, methodAttributes(action, isKnown));
    if (command) Object.assign(about, recordAttributes(command));
    Object.assign(about, callerTraceOf(this.#request), attributes);
    this.#span.end({ failed, attributes: about, ...(action !== null && !isKnown && { name: OTHER_METHOD }) });
  }
}

type Answer = {
  readonly commandId?: string | null;
  readonly command?: Extract<Invocation, { command: object }>['command'];
};

/**
 * Runs a request within a span. The span ends when the request has its answer. If the relay does not trace, the request
 * runs without a span.
 */
export function withCallSpan<T extends Invocation | null>(
  { tracing, nodeId }: SpanDeps,
  request: SpannedRequest,
  run: (span: CallSpan | null) => MaybePromise<T>,
): MaybePromise<T> {
  if (tracing === null) return run(null);
  const started = tracing.start('server', request.action ?? SPAN_NAME.await, parentOf(request));
  if (!started.recorded) return run(started.declined ? DECLINED_CALL : null);
  const span = new RecordedCall(started, { tracing, nodeId }, request);
  const answered = (invocation: T): T => {
    span.answered(invocation);
    return invocation;
  };
  const thrown = (error: unknown): never => {
    span.thrown(error);
    throw error;
  };
  try {
    const answer = run(span);
    return answer instanceof Promise ? answer.then(answered, thrown) : answered(answer);
  } catch (error) {
    return thrown(error);
  }
}

function refusalEnd(code: string, by: string | null = null): SpanEnd {
  const attributes: SpanAttributes = { [SPAN_ATTRIBUTE.status]: code, [SPAN_ATTRIBUTE.errorType]: code };
  if (by !== null) attributes[SPAN_ATTRIBUTE.refusedBy] = by;
  return { failed: true, attributes };
}

/**
 * Returns the parent of the request's span. If the request names trace ids, they are the parent; otherwise the trace
 * headers of the request are. If the named ids are not those of W3C Trace Context, there is no parent, and a new trace
 * begins.
 */
function parentOf(request: SpannedRequest): TraceContext | null {
  const named = fieldsOf(request);
  return named.traceId === null && named.parentSpanId === null ? (request.trace ?? null) : traceContextIn(named);
}

function fieldsOf({
  traceId = null,
  parentSpanId = null,
  traceFlags = null,
  traceState = null,
}: SpannedRequest): TraceFields {
  return { traceId, parentSpanId, traceFlags, traceState };
}

function callerTraceOf(request: SpannedRequest): SpanAttributes {
  const { traceId } = fieldsOf(request);
  return traceId === null || parentOf(request) ? {} : { [SPAN_ATTRIBUTE.callerTraceId]: traceId };
}
