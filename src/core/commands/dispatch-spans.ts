/** Starts and ends the trace spans of commands that are written to a link. */
import type { Deps } from '../deps.ts';
import type { CommandKey } from '../ids.ts';
import { promised } from '../maybe-promise.ts';
import type { SpanEnd, Tracing } from '../ports.ts';
import { DECLINED, isSampled, readTraceparent, type TraceContext, type TraceFields } from '../trace-context.ts';
import type { Command } from './command.ts';
import type { LinkQueue } from './link-queue.ts';
import {
  SPAN_ATTRIBUTE,
  SPAN_NAME,
  hasKnownAction,
  methodAttributes,
  outcomeEnd,
  recordAttributes,
  subjectAttributes,
} from './span-attributes.ts';

type TracedNode = Pick<Deps, 'tracing' | 'nodeId'>;

/** Returns the span of the call that admitted the command; null if that call was not traced. */
export function callSpanOf({ callSpan, traceState }: Pick<Command, 'callSpan' | 'traceState'>): TraceContext | null {
  return callSpan === null || callSpan === DECLINED ? null : readTraceparent(callSpan, traceState);
}

/** The trace fields for a client if a sampler declined the call and the caller gave no trace ids. */
const DECLINED_FIELDS: TraceFields = { traceId: null, parentSpanId: null, traceFlags: '00', traceState: null };

/**
 * Starts the span of a command that is written to a link. Returns the trace context that the client's own span belongs
 * to; null if this is the context that the caller gave.
 */
export function beginDispatchSpan({ tracing }: TracedNode, linkQueue: LinkQueue, command: Command): TraceFields | null {
  if (tracing === null || command.callSpan === null) return null;
  if (command.callSpan === DECLINED) return command.traceId === null ? DECLINED_FIELDS : null;
  const context = begin(tracing, linkQueue, { command, name: SPAN_NAME.dispatch });
  // If the caller gave trace ids of its own, the client gets those ids, and not those of the relay's trace.
  return command.traceId === null || command.traceId === context?.traceId ? context : null;
}

/**
 * Starts a span on a new link for each sampled command that was written to an earlier link of the client and has not
 * ended.
 */
export function beginResumeSpans({ tracing }: TracedNode, linkQueue: LinkQueue, commands: readonly Command[]): void {
  if (tracing === null) return;
  for (const command of commands) begin(tracing, linkQueue, { command, name: SPAN_NAME.resume });
}

type Begun = { readonly command: Command; readonly name: string };

function begin(tracing: Tracing, linkQueue: LinkQueue, { command, name }: Begun): TraceContext | null {
  const parent = callSpanOf(command);
  if (!parent || !isSampled(parent.traceFlags)) return parent;
  const span = tracing.start('client', name, parent);
  if (span.recorded) {
    linkQueue.spans ??= new Map();
    linkQueue.spans.set(command.commandId, { span, progressed: false });
  }
  return span.context ?? parent;
}

/** Adds an event to the command's span: the client acknowledged it, or reported progress for the first time. */
export function noteReport({ spans }: LinkQueue, commandId: string, kind: 'ack' | 'progress'): void {
  const open = spans?.get(commandId);
  if (!open) return;
  if (kind === 'ack') return open.span.event('acknowledged');
  if (!open.progressed) open.span.event('progress');
  open.progressed = true;
}

/**
 * Ends the span of a command. `command`: the record after its end; null if the caller does not have the record, which
 * is then read.
 */
export function endDispatchSpan(deps: Deps, linkQueue: LinkQueue, key: CommandKey, command: Command | null): void {
  if (!linkQueue.spans?.has(key.commandId)) return;
  const end = (ended: Command | null): void => endWith(deps, linkQueue, key.commandId, ended);
  if (command) return end(command);
  promised(() => deps.backend.commands.get([key])).then(
    ([read = null]) => end(read),
    () => end(null),
  );
}

/** Ends the span of a command. `command`: null if the record was removed or cannot be read. */
function endWith(parts: TracedNode, linkQueue: LinkQueue, commandId: string, command: Command | null): void {
  const open = linkQueue.spans?.get(commandId);
  if (!open || parts.tracing === null) return;
  linkQueue.spans?.delete(commandId);
  const about = subjectAttributes(parts.tracing, parts.nodeId, { ...linkQueue.client, commandId });
  if (!command) return open.span.end({ failed: false, attributes: about });
  const { failed, attributes } = outcomeEnd(command.outcome, command.error?.code ?? null);
  Object.assign(
    about,
    methodAttributes(command.action, hasKnownAction(command)),
    recordAttributes(command),
    attributes,
  );
  open.span.end({ failed, attributes: about });
}

/** Ends all spans of a link that is gone. The commands themselves may continue on the client's next link. */
export function endLinkSpans(parts: TracedNode, { spans, client }: LinkQueue): void {
  if (!spans || parts.tracing === null) return;
  for (const [commandId, { span }] of spans) {
    const about = subjectAttributes(parts.tracing, parts.nodeId, { ...client, commandId });
    const end: SpanEnd = {
      failed: true,
      attributes: { ...about, [SPAN_ATTRIBUTE.linkClosed]: true, [SPAN_ATTRIBUTE.errorType]: 'link_closed' },
    };
    span.end(end);
  }
  spans.clear();
}

/**
 * Records a span for the first result that came after the command's end, or from another instance. Further such results
 * are only counted in the record, because otherwise a client could add any number of spans to a trace.
 */
export function recordLateResult({ tracing, nodeId }: TracedNode, command: Command): void {
  const call = callSpanOf(command);
  if (tracing === null || !call || !isSampled(call.traceFlags) || command.lateResults !== 1) return;
  const span = tracing.start('internal', SPAN_NAME.late, call);
  const { attributes } = outcomeEnd(command.outcome, command.error?.code ?? null);
  const about = subjectAttributes(tracing, nodeId, command);
  span.end({ failed: false, attributes: { ...about, ...recordAttributes(command), ...attributes } });
}
