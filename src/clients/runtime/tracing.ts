/** Records the spans of commands, from their arrival to their end at this client. */
import { isTraceContext, NO_PARENT, SERVER, type ContextLike, type TraceApi } from '../../protocol/trace-api.ts';
import { traceStateOf } from '../../protocol/trace-state.ts';
import type { WireTrace } from '../link/trace-headers.ts';
import { endSpan, SCOPE, spanAttributes } from '../link/tracing.ts';
import type { EndReport } from './ends.ts';

/**
 * The name of the spans of all commands whose action this client does not have. Callers may invent any number of action
 * names, so these do not become names of spans.
 */
const OTHER_METHOD = '_OTHER';
const SAMPLED = '01';
const NOT_SAMPLED = '00';

type Command = WireTrace & { readonly command_id: string; readonly action: string };

/**
 * Runs a command within a span, which is active while the command runs. Its parent is the span that the relay's frame
 * names. `isKnown`: this client has the action.
 */
export function traced(
  tracing: TraceApi,
  frame: Command,
  { isKnown, run }: { readonly isKnown: boolean; readonly run: () => EndReport | Promise<EndReport> },
): Promise<EndReport> {
  const { action, command_id } = frame;
  const name = isKnown ? action : OTHER_METHOD;
  const method = { 'rpc.method': name, ...(!isKnown && { 'rpc.method_original': action }) };
  // The call is not sampled. There is no trace id with which to pass this on to a span, so no span is started.
  if (!frame.trace_id && frame.trace_flags === NOT_SAMPLED) return Promise.resolve(run());
  const options = { kind: SERVER, attributes: { ...spanAttributes(command_id), ...method } };
  return tracing.getTracer(SCOPE).startActiveSpan(name, options, parentOf(tracing, frame), async (span) => {
    const end = await run();
    if (end.type === 'error') endSpan(span, 'failed', end.code);
    else endSpan(span, end.type === 'result' ? 'completed' : 'cancelled');
    return end;
  });
}

function parentOf(
  tracing: TraceApi,
  { trace_id = '', parent_span_id = '', trace_flags = SAMPLED, trace_state }: WireTrace,
): ContextLike {
  if (!isTraceContext(trace_id, parent_span_id)) return NO_PARENT;
  const context = {
    traceId: trace_id,
    spanId: parent_span_id,
    traceFlags: Number.parseInt(trace_flags, 16),
    isRemote: true,
    ...(trace_state && { traceState: traceStateOf(trace_state) }),
  };
  return tracing.setSpanContext(NO_PARENT, context);
}
