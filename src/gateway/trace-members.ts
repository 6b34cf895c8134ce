/** Reads the trace ids, flags and state that a caller's frame may contain. */
import type { TracedRequest } from '../core/core.ts';
import { traceFlagsIn, traceStateIn } from '../core/trace-context.ts';

type TraceMembers = {
  readonly trace_id?: string | undefined;
  readonly parent_span_id?: string | undefined;
  readonly trace_flags?: string | undefined;
  readonly trace_state?: string | undefined;
};

/** Reads the trace of a frame. Leaves out malformed flags and states, as the HTTP handlers do for headers. */
export function traceOf({ trace_id, parent_span_id, trace_flags, trace_state }: TraceMembers): TracedRequest {
  const more = { traceFlags: traceFlagsIn(trace_flags), traceState: traceStateIn(trace_state) };
  return { traceId: trace_id, parentSpanId: parent_span_id, ...more };
}
