/** Records the spans of calls: one for each `invoke` and each `await`. */
import { CLIENT, type TraceApi } from '../../protocol/trace-api.ts';
import { endSpan, SCOPE, spanAttributes } from '../link/tracing.ts';
import type { WireTrace } from '../link/trace-headers.ts';
import { CallerError } from './errors.ts';
import type { Handle, Invocation } from './types.ts';

export type TracedCall<T> = {
  readonly handle: Handle;
  /** The action to invoke. Null: the call awaits a command. */
  readonly action: string | null;
  /** Sends the request as part of this trace. */
  readonly run: (trace: WireTrace) => Promise<Invocation<T>>;
};

/** Runs a call within a span, as a child of the span that is active. Without `tracing` it only runs. */
export function traced<T>(tracing: TraceApi | undefined, call: TracedCall<T>): Promise<Invocation<T>> {
  return tracing ? runTraced(tracing, call) : call.run({});
}

async function runTraced<T>(tracing: TraceApi, { handle, action, run }: TracedCall<T>): Promise<Invocation<T>> {
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
