/** Predicts the next state of a command whose record is known, as text. Pure: it neither reads nor writes Redis. */
import type { Binding, End } from '../../../core/commands/stores.ts';
import type { Command } from '../../../core/commands/command.ts';
import { REQUEST, STATE } from './record.ts';

type Field = (typeof STATE)[number];
type Changes = Partial<Record<Field, string>>;
/** The fields of a record's state, in the order of its text. */
export type StateFields = readonly string[];

const OUTCOMES = { result: 'completed', error: 'failed', cancelled: 'cancelled' } as const;
/** The character that marks where Redis inserts a time or a span. No id contains it, and JSON escapes it. */
const HERE = '\x01';
const AT = new Map(STATE.map((name, i) => [name, i]));
const REQUEST_AT = new Map(REQUEST.map((name, i) => [name, i]));

export function fieldOf(fields: StateFields, name: Field): string {
  return fields[AT.get(name) ?? -1] ?? '';
}

/** Returns a field of a request. `texts`: the text of the request, split at each NUL. */
export function requestField(texts: readonly string[], name: (typeof REQUEST)[number]): string {
  return texts[REQUEST_AT.get(name) ?? -1] ?? '';
}

/** Returns the start of a state's text. No other state that this command had or will have starts the same way. */
export function startOf(fields: StateFields): string {
  return `${fieldOf(fields, 'rev')}\0${fieldOf(fields, 'admittedAt')}\0`;
}

/**
 * Predicts a queued command's state once it is marked as dispatched, as texts between which Redis inserts the time.
 * Returns null if the command cannot be marked.
 */
export function markedState(
  fields: StateFields,
  { epoch, instanceId, attempt }: Binding & { readonly attempt: string | null },
): readonly string[] | null {
  if (fieldOf(fields, 'stage') !== 'queued') return null;
  return changed(fields, 1, {
    stage: 'dispatched',
    lastProvenStage: 'dispatched',
    execution: 'may_have_run',
    attempts: String(Number(fieldOf(fields, 'attempts')) + 1),
    boundInstanceId: instanceId,
    dispatchedAt: HERE,
    queuedBytes: '',
    ...(attempt !== null && { markedBy: `${epoch}:${attempt}` }),
  });
}

/** Returns a command as it was before it was marked as dispatched. One act has admitted and marked it. */
export function unmarked(command: Command): Command {
  const queued = { stage: 'queued', lastProvenStage: 'queued', execution: 'not_written' } as const;
  return { ...command, ...queued, version: 1, attempts: 0, boundInstanceId: null, dispatchedAt: null };
}

/**
 * Predicts a running command's state once its client has reported this end, as texts between which Redis inserts: when
 * it ended; when it is forgotten; when the end was first and last seen; the span of its result. Returns null if the
 * command is not running, already has a reported end, or is bound to another instance.
 */
export function endedState(fields: StateFields, end: End, messageId: string): readonly string[] | null {
  const stage = fieldOf(fields, 'stage');
  if (stage !== 'dispatched' && stage !== 'acknowledged') return null;
  if (fieldOf(fields, 'boundInstanceId') !== end.instanceId || fieldOf(fields, 'sightings') !== '') return null;
  return changed(fields, 4, {
    stage: 'terminal',
    outcome: OUTCOMES[end.kind],
    execution: end.refused ? 'refused_by_client' : 'reported_by_client',
    terminalAt: HERE,
    forgetAt: HERE,
    ...(end.error && { error: JSON.stringify(end.error) }),
    reason: end.error?.code.replaceAll('\0', '') ?? '',
    sightings: `[{"messageId":"${messageId}","firstSeenAt":${HERE},"count":1}]`,
    resultIn: HERE,
  });
}

/** Returns the state after these changes, cut at each marker; null if there are not exactly `cuts` markers. */
function changed(fields: StateFields, cuts: number, changes: Changes): readonly string[] | null {
  const after = [...fields];
  const raise = (name: Field): void => put(after, name, String(Number(fieldOf(fields, name)) + 1));
  raise('rev');
  raise('version');
  for (const name of STATE) {
    const value = changes[name];
    if (value !== undefined) put(after, name, value);
  }
  const parts = after.join('\0').split(HERE);
  return parts.length === cuts + 1 ? parts : null;
}

function put(fields: string[], name: Field, value: string): void {
  fields[AT.get(name) ?? fields.length] = value;
}
