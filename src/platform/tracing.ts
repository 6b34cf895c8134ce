/** Implements core's Tracing over the `trace` object of `@opentelemetry/api`, which the program passes in. */
import type { TraceContext } from '../core/trace-context.ts';
import type { Span, SpanEnd, SpanKind, Tracing } from '../core/tracing.ts';
import {
  CLIENT,
  INTERNAL,
  NO_PARENT,
  SERVER,
  STATUS_ERROR,
  type ContextLike,
  type SpanContextLike,
  type SpanLike,
  type TraceApi,
} from '../protocol/trace-api.ts';
import { traceStateOf } from '../protocol/trace-state.ts';

export type { TraceApi } from '../protocol/trace-api.ts';

export type TracingOptions = {
  readonly version: string;
  /** Whether spans may name users and clients. */
  readonly namesUsers: boolean;
};

const KINDS: Readonly<Record<SpanKind, number>> = { internal: INTERNAL, server: SERVER, client: CLIENT };

/** The name of the tracer: the instrumentation scope of all spans. */
const SCOPE = 'callboard';

/**
 * Creates core's Tracing; null without `api`. The SDK behind `api` decides whether a span is recorded. Without an SDK,
 * contexts are passed on unchanged.
 */
export function createTracing(api: TraceApi | undefined, { version, namesUsers }: TracingOptions): Tracing | null {
  if (!api) return null;
  const tracer = api.getTracer(SCOPE, version);
  return {
    namesUsers,
    start(kind: SpanKind, name: string, parent: TraceContext | null) {
      const span = tracer.startSpan(name, { kind: KINDS[kind] }, contextOf(api, parent));
      if (span.isRecording()) return new RecordedSpan(span);
      return span.spanContext().traceId === NO_TRACE_ID ? NO_SPAN : DECLINED_SPAN;
    },
  };
}

/** The trace id of a span that the API makes without an SDK. */
const NO_TRACE_ID = '0'.repeat(32);
const NO_SPAN: Span = { recorded: false, declined: false, context: null, event() {}, link() {}, end() {} };
/** The span of every call that a sampler declined. It is one object for all, because most calls are not sampled. */
const DECLINED_SPAN: Span = { ...NO_SPAN, declined: true };

class RecordedSpan implements Span {
  readonly recorded = true;
  readonly declined = false;
  readonly context: TraceContext;
  readonly #span: SpanLike;

  constructor(span: SpanLike) {
    this.#span = span;
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    this.context = {
      traceId,
      parentSpanId: spanId,
      traceFlags: traceFlags.toString(16).padStart(2, '0'),
      traceState: traceState?.serialize() || null,
    };
  }

  event(name: string): void {
    this.#span.addEvent(name);
  }

  link(to: TraceContext): void {
    this.#span.addLink({ context: spanContextOf(to) });
  }

  end({ name, failed, attributes }: SpanEnd): void {
    if (name !== undefined) this.#span.updateName(name);
    this.#span.setAttributes(attributes);
    if (failed) this.#span.setStatus({ code: STATUS_ERROR });
    this.#span.end();
  }
}

/**
 * Returns the context that names the parent. It is never the context that is active in this process, so nothing can
 * leak between calls.
 */
function contextOf(api: TraceApi, parent: TraceContext | null): ContextLike {
  return parent === null ? NO_PARENT : api.setSpanContext(NO_PARENT, spanContextOf(parent));
}

function spanContextOf({ traceId, parentSpanId, traceFlags, traceState }: TraceContext): SpanContextLike {
  const flags = Number.parseInt(traceFlags, 16);
  const context = { traceId, spanId: parentSpanId, traceFlags: flags, isRemote: true };
  return traceState === null ? context : { ...context, traceState: traceStateOf(traceState) };
}
