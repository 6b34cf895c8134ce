/**
 * Implements core's Tracing with the `trace` object of `@opentelemetry/api`, which the host program passes in, and
 * decides which new traces are recorded.
 */
import type { Span, SpanEnd, SpanKind, Tracing } from '../core/ports.ts';
import type { TraceContext } from '../core/trace-context.ts';
import {
  CLIENT,
  INTERNAL,
  NO_PARENT,
  SERVER,
  STATUS_ERROR,
  traceStateOf,
  type ContextLike,
  type SpanContextLike,
  type SpanLike,
  type TraceApi,
  type TracerLike,
} from '../protocol/trace.ts';

export type { TraceApi } from '../protocol/trace.ts';

type TracingOptions = {
  readonly version: string;
  /** Whether spans may contain the names of users and clients. */
  readonly namesUsers: boolean;
};

const KINDS: Readonly<Record<SpanKind, number>> = { internal: INTERNAL, server: SERVER, client: CLIENT };

/** The name of the tracer: the instrumentation scope of all spans. */
const SCOPE = 'callboard';

/**
 * Creates core's Tracing; null if `api` is undefined. The SDK behind `api` decides what is recorded. Without an SDK,
 * trace contexts are passed on unchanged.
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

/** The trace id of a span that the API creates without an SDK. */
const NO_TRACE_ID = '0'.repeat(32);
const NO_SPAN: Span = { recorded: false, declined: false, context: null, event() {}, link() {}, end() {} };
/** The span of every call that a sampler declined. One object serves them all, because most calls are not sampled. */
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
 * Returns an OpenTelemetry context that contains only this parent. The active context is never used, so nothing leaks
 * between calls.
 */
function contextOf(api: TraceApi, parent: TraceContext | null): ContextLike {
  return parent === null ? NO_PARENT : api.setSpanContext(NO_PARENT, spanContextOf(parent));
}

function spanContextOf({ traceId, parentSpanId, traceFlags, traceState }: TraceContext): SpanContextLike {
  const flags = Number.parseInt(traceFlags, 16);
  const context = { traceId, spanId: parentSpanId, traceFlags: flags, isRemote: true };
  return traceState === null ? context : { ...context, traceState: traceStateOf(traceState) };
}

/**
 * Returns a tracer that records the fraction `ratio` (0 to 1) of the new traces. If `ratio` is null, `tracer` decides
 * instead. The decision is made before `tracer` is called, because for a call that is not recorded, that call would
 * cost more than all other tracing. Only `startSpan` decides, because the relay starts its spans in no other way.
 */
export function decideRoots(tracer: TracerLike, ratio: number | null): TracerLike {
  if (ratio === null) return tracer;
  return {
    startSpan: (name, options, context) =>
      context === NO_PARENT && Math.random() >= ratio ? DECLINED : tracer.startSpan(name, options, context),
    startActiveSpan: (name, options, context, run) => tracer.startActiveSpan(name, options, context, run),
  };
}

/**
 * A span that is not recorded. The relay takes a span with invalid ids for one of an SDK that is switched off, so this
 * one has valid ids: a sampler has decided not to record it. The ids are never sent.
 */
const DECLINED: SpanLike = {
  spanContext: () => ({ traceId: 'f'.repeat(32), spanId: 'f'.repeat(16), traceFlags: 0 }),
  isRecording: () => false,
  setAttributes() {},
  addEvent() {},
  addLink() {},
  setStatus() {},
  updateName() {},
  end() {},
};
