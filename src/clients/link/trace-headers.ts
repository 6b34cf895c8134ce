/** Writes the trace context of a request as members of a frame and as HTTP headers. */

/** A trace context as the members of a frame. Empty: the request belongs to no trace. */
export type WireTrace = {
  readonly trace_id?: string | undefined;
  readonly parent_span_id?: string | undefined;
  readonly trace_flags?: string | undefined;
  readonly trace_state?: string | undefined;
};

/** Returns the headers of W3C Trace Context for a trace context. */
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
