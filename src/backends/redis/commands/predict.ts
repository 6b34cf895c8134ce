import type { Binding, End } from '../../../core/delivery/commands.ts';
import { ASKED, STATE } from './record.ts';

/** Names of the fields of a record's state. */
type Field = (typeof STATE)[number];
type Fields = Partial<Record<Field, string>>;

const OUTCOMES = { result: 'completed', error: 'failed', cancelled: 'cancelled' } as const;
/** Stands where Redis puts a time or a span. Nothing else in a state has it: it is no character of an id, and JSON escapes it. */
const HERE = '\x01';

/** The fields of a state, in its order. */
export function fieldsOfState(state: string): Readonly<Record<Field, string>> {
  return named(STATE, state.split('\0'));
}

export function fieldsOfAsked(asked: string): Readonly<Record<(typeof ASKED)[number], string>> {
  return named(ASKED, asked.split('\0'));
}

/** What tells this state from every other that its command had or will have. */
export function startOf({ rev, admittedAt }: Pick<Record<Field, string>, 'rev' | 'admittedAt'>): string {
  return `${rev}\0${admittedAt}\0`;
}

/** A queued command's state once it is marked as dispatched, cut where the time stands. Null if it cannot be marked. */
export function markedState(
  state: string,
  { epoch, instanceId, attempt }: Binding & { readonly attempt: string | null },
): readonly string[] | null {
  const fields = fieldsOfState(state);
  if (fields.stage !== 'queued') return null;
  return changed(fields, 1, {
    stage: 'dispatched',
    lastProvenStage: 'dispatched',
    execution: 'may_have_run',
    attempts: String(Number(fields.attempts) + 1),
    boundInstanceId: instanceId,
    dispatchedAt: HERE,
    ...(attempt !== null && { markedBy: `${epoch}:${attempt}` }),
  });
}

/**
 * A running command's state once its client has reported this end, cut where Redis puts: when it ended, when it is forgotten, when the end
 * was first and last seen (one cut), the span of its result. Null if the end is not the first one, or not the bound instance's.
 */
export function endedState(state: string, end: End, messageId: string): readonly string[] | null {
  const fields = fieldsOfState(state);
  const running = fields.stage === 'dispatched' || fields.stage === 'acknowledged';
  if (!running || fields.boundInstanceId !== end.instanceId || fields.sightings !== '') return null;
  return changed(fields, 4, {
    stage: 'terminal',
    outcome: OUTCOMES[end.kind],
    execution: end.refused ? 'refused_by_client' : 'reported_by_client',
    terminalAt: HERE,
    forgetAt: HERE,
    ...(end.error && { error: JSON.stringify(end.error), reason: end.error.code.replaceAll('\0', '') }),
    sightings: `[{"messageId":"${messageId}","firstSeenAt":${HERE},"count":1}]`,
    resultIn: HERE,
  });
}

/** The state after these changes, cut at its places; null if there are not that many. */
function changed(fields: Readonly<Record<Field, string>>, cuts: number, changes: Fields): readonly string[] | null {
  const rev = String(Number(fields.rev) + 1);
  const version = String(Number(fields.version) + 1);
  const after: Readonly<Record<Field, string>> = { ...fields, rev, version, ...changes };
  const parts = STATE.map((name) => `${after[name]}\0`)
    .join('')
    .split(HERE);
  return parts.length === cuts + 1 ? parts : null;
}

function named<N extends string>(names: readonly N[], texts: readonly string[]): Readonly<Record<N, string>> {
  return Object.fromEntries(names.map((name, i) => [name, texts[i] ?? ''])) as Record<N, string>;
}
