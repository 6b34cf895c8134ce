/**
 * Marks commands as dispatched and ends them with short acts, if this process knows their records. If the record in
 * Redis differs, the full acts follow.
 */
import type { Command } from '../../../core/commands/command.ts';
import type { Binding, DispatchResult, End } from '../../../core/commands/stores.ts';
import type { CommandKey } from '../../../core/ids.ts';
import { jsonOr, listOf } from '../types.ts';
import { heldCommand, type Held } from './held.ts';
import { keptArgs, nameArgs, type CommandParts } from './parts.ts';
import { requestField, endedState, fieldOf, markedState, startOf, type StateFields } from './predict.ts';
import { commandOf, endedCommandOf, textsOf } from './record.ts';

export type Attempt = Binding & { readonly attempt: string | null };

/**
 * Marks a command as dispatched, if this process knows its record; otherwise returns null. Resolves to null, without
 * writing anything, if the record in Redis differs.
 */
export function markKnown(
  parts: CommandParts,
  key: CommandKey,
  attempt: Attempt,
): Promise<DispatchResult | null> | null {
  const known = parts.held.get(key);
  if (!known || known.params === null) return null;
  const fields = known.texts.state;
  const states = markedState(fields, attempt);
  return states && mark(parts, key, { known, fields, states, attempt });
}

type Marking = {
  readonly known: Held;
  readonly fields: StateFields;
  /** The next state, cut where the time is inserted. */
  readonly states: readonly string[];
  readonly attempt: Attempt;
};

async function mark(
  { store, held }: CommandParts,
  key: CommandKey,
  { known, fields, states, attempt }: Marking,
): Promise<DispatchResult | null> {
  const [client, commandId, user] = nameArgs(store, key);
  const link = `${attempt.nodeId}\0${attempt.epoch}\0`;
  const args = [client, commandId, link, startOf(fields), ...states, fieldOf(fields, 'deadline')];
  const counted = [fieldOf(fields, 'queuedBytes'), user];
  const time = await store.act(store.partitionOfUser(key.userId), 'commands-mark', [...args, ...counted]);
  if (typeof time !== 'string') return null;
  const marked = heldCommand({ ...known, state: states.join(time) }, { request: known.texts.request });
  held.put(key, marked);
  const command = commandOf(marked.texts);
  return { kind: 'dispatch', command, params: jsonOr(known.params), remainingMs: command.deadline - Number(time) };
}

type KnownEnd = { readonly end: End; readonly messageId: string };

/**
 * Ends a command, if this process knows its record and its waiters; otherwise returns null. Resolves to null, without
 * writing anything, if the record in Redis differs.
 */
export function endKnown(parts: CommandParts, key: CommandKey, known: KnownEnd): Promise<Command | null> | null {
  const before = parts.held.get(key);
  if (!before || before.waits === null) return null;
  const fields = before.texts.state;
  const states = endedState(fields, known.end, known.messageId);
  return states && endAs(parts, key, { ...known, before, fields, states });
}

type Ending = KnownEnd & { readonly before: Held; readonly fields: StateFields; readonly states: readonly string[] };

async function endAs(parts: CommandParts, key: CommandKey, ending: Ending): Promise<Command | null> {
  const { store, windowMs } = parts;
  const args = endArgs(parts, key, ending);
  const answer = await store.act(store.partitionOfUser(key.userId), 'commands-end', args);
  if (answer === null) return null;
  const [time = '', resultIn = ''] = listOf(answer).map(String);
  const stamps = [time, String(Number(time) + windowMs), `${time},"lastSeenAt":${time}`, resultIn, ''];
  const state = textsOf(ending.states.map((text, i) => text + (stamps[i] ?? '')).join(''));
  return endedCommandOf({ state, request: ending.before.texts.request });
}

/** The kind of the history row for each kind of end. */
const ROW_KINDS = { result: 'result', error: 'error', cancelled: 'cancel' } as const;

const REQUEST_ARGS = ['sh', 'scopeId', 'sth', 'traceId', 'parentSpanId'] as const;

function endArgs(
  { store, settings }: CommandParts,
  key: CommandKey,
  { end, messageId, before, fields, states }: Ending,
): readonly (string | number | null)[] {
  const { request } = before.texts;
  const error = end.error && JSON.stringify(end.error);
  return [
    ...[...nameArgs(store, key), startOf(fields), before.waits, ...states, end.payload],
    ...[messageId, ROW_KINDS[end.kind], ...keptArgs(end.kept), error, end.instanceId],
    ...[settings.rows, key.userId, key.clientId],
    ...REQUEST_ARGS.map((name) => requestField(request, name)),
  ];
}
