/**
 * The names and attributes of spans. Names that begin with `rpc.` and `error.` follow the semantic conventions 1.45 of
 * OpenTelemetry, whose part about RPC is a release candidate. docs/tracing.md has the table.
 */
import type { CommandKey } from '../ids.ts';
import type { SpanAttributes, SpanEnd, Tracing } from '../ports.ts';
import type { Command, Outcome } from './command.ts';

export const SPAN_ATTRIBUTE = {
  system: 'rpc.system.name',
  method: 'rpc.method',
  methodOriginal: 'rpc.method_original',
  status: 'rpc.status_code',
  errorType: 'error.type',
  commandId: 'callboard.command_id',
  nodeId: 'callboard.node_id',
  clientType: 'callboard.client_type',
  stage: 'callboard.last_proven_stage',
  execution: 'callboard.execution',
  attempts: 'callboard.attempts',
  refusedBy: 'callboard.refused_by',
  callerTraceId: 'callboard.caller_trace_id',
  linkClosed: 'callboard.link_closed',
  userId: 'callboard.user_id',
  clientId: 'callboard.client_id',
} as const;

/**
 * The method in a span if it is not known that the client has the action. Callers can invent any number of action
 * names, which would give too many different methods.
 */
export const OTHER_METHOD = '_OTHER';

/** The names of spans that are not named after an action. */
export const SPAN_NAME = {
  await: 'callboard.await',
  dispatch: 'callboard.dispatch',
  resume: 'callboard.resume',
  late: 'callboard.late_result',
} as const;

/** Returns the attributes of the node and the command, and of the user and the client if spans may name them. */
export function subjectAttributes(
  { namesUsers }: Tracing,
  nodeId: string,
  { userId, clientId, commandId }: { readonly [K in keyof CommandKey]?: string | undefined },
): SpanAttributes {
  const attributes: SpanAttributes = { [SPAN_ATTRIBUTE.system]: 'callboard', [SPAN_ATTRIBUTE.nodeId]: nodeId };
  if (commandId !== undefined) attributes[SPAN_ATTRIBUTE.commandId] = commandId;
  if (namesUsers && userId !== undefined) attributes[SPAN_ATTRIBUTE.userId] = userId;
  if (namesUsers && clientId !== undefined) attributes[SPAN_ATTRIBUTE.clientId] = clientId;
  return attributes;
}

/**
 * Returns the attributes that name the action. If it is not known that the client has the action, the method is
 * OTHER_METHOD.
 */
export function methodAttributes(action: string, isKnown: boolean): SpanAttributes {
  if (isKnown) return { [SPAN_ATTRIBUTE.method]: action };
  return { [SPAN_ATTRIBUTE.method]: OTHER_METHOD, [SPAN_ATTRIBUTE.methodOriginal]: action };
}

/** Returns the attributes that come from a command's record. */
export function recordAttributes(command: Command): SpanAttributes {
  const { lastProvenStage, execution, attempts, clientType } = command;
  const attributes: SpanAttributes = {
    [SPAN_ATTRIBUTE.stage]: lastProvenStage,
    [SPAN_ATTRIBUTE.execution]: execution,
    [SPAN_ATTRIBUTE.attempts]: attempts,
  };
  if (clientType !== null) attributes[SPAN_ATTRIBUTE.clientType] = clientType;
  return attributes;
}

/**
 * Whether it is known that the client has the action: it advertised the action when the command was admitted, or it
 * acknowledged the command.
 */
export function hasKnownAction({ clientType, acknowledgedAt }: Command): boolean {
  return clientType !== null || acknowledgedAt !== null;
}

/**
 * Returns the attributes with which a command's span ends: its status and the type of its error. The status of a live
 * command is `pending`.
 */
export function outcomeEnd(outcome: Outcome | null, errorCode: string | null): SpanEnd {
  const failed = outcome === 'failed' || outcome === 'expired' || outcome === 'outcome_unknown';
  const attributes: SpanAttributes = { [SPAN_ATTRIBUTE.status]: outcome ?? 'pending' };
  if (failed) attributes[SPAN_ATTRIBUTE.errorType] = errorCode ?? outcome;
  return { failed, attributes };
}
