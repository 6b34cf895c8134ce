/**
 * The attributes and ends of the trace spans of all client libraries. The program passes in the `trace` object that
 * records the spans.
 */
import { STATUS_ERROR, type SpanLike, type SpanValues } from '../../protocol/trace.ts';

export type { TraceApi } from '../../protocol/trace.ts';

/** The name of the tracer, which is the instrumentation scope of the spans. */
export const SCOPE = 'callboard';

/** Returns the attributes with which the span of a command starts. */
export function spanAttributes(commandId: string): SpanValues {
  return { 'rpc.system.name': SCOPE, 'callboard.command_id': commandId };
}

/** Ends a span. `error`: the error code if the work failed. */
export function endSpan(span: SpanLike, status: string, error?: string): void {
  span.setAttributes({ 'rpc.status_code': status, ...(error && { 'error.type': error }) });
  if (error) span.setStatus({ code: STATUS_ERROR });
  span.end();
}

/** A trace context as members of a frame. Without members, the request belongs to no trace. */
export type WireTrace = {
  readonly trace_id?: string | undefined;
  readonly parent_span_id?: string | undefined;
  readonly trace_flags?: string | undefined;
  readonly trace_state?: string | undefined;
};

export function traceHeaders({
  trace_id,
  parent_span_id,
  trace_flags,
  trace_state,
}: WireTrace): Record<string, string> {
  return {
    ...(trace_id && { traceparent: `00-${trace_id}-${parent_span_id}-${trace_flags}` }),
    ...(trace_state && { tracestate: trace_state }),
  };
}
