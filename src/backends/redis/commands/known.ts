import { randomUUID } from 'node:crypto';
import type { Command } from '../../../core/delivery/command.ts';
import type { Binding, DispatchResult, End } from '../../../core/delivery/commands.ts';
import type { CommandKey } from '../../../core/ids.ts';
import { jsonOr, listOf } from '../replies.ts';
import type { Held } from './held.ts';
import { keptArgs, nameArgs, type CommandParts } from './parts.ts';
import { askedField, endedState, fieldOf, markedState, splitState, startOf, type StateFields } from './predict.ts';
import { decodeCommand } from './record.ts';

export type Attempt = Binding & { readonly attempt: string | null };

/**
 * Marks a command whose record this process knows. Null: it does not know enough. The promise's null: the record is another one, and
 * nothing was done.
 */
export function markKnown(parts: CommandParts, key: CommandKey, asked: Attempt): Promise<DispatchResult | null> | null {
  const known = parts.held.get(key);
  if (!known || known.params === null) return null;
  const fields = splitState(known.state);
  const states = markedState(fields, asked);
  return states && mark(parts, key, { known, fields, states, asked });
}

type Marking = {
  readonly known: Held;
  readonly fields: StateFields;
  /** The next state, cut where the time stands. */
  readonly states: readonly string[];
  readonly asked: Attempt;
};

async function mark(
  { store, held }: CommandParts,
  key: CommandKey,
  { known, fields, states, asked }: Marking,
): Promise<DispatchResult | null> {
  const [client, commandId] = nameArgs(store, key);
  const link = `${asked.nodeId}\0${asked.epoch}\0`;
  const args = [client, commandId, link, startOf(fields), ...states, fieldOf(fields, 'deadline')];
  const time = await store.act(store.partitionOfUser(key.userId), 'commands-mark', args);
  if (typeof time !== 'string') return null;
  const state = states.join(time);
  held.put(key, { ...known, state });
  const command = decodeCommand(state + known.asked);
  return { kind: 'dispatch', command, params: jsonOr(known.params), remainingMs: command.deadline - Number(time) };
}

type KnownEnd = { readonly end: End; readonly messageId: string; readonly mark: string };

/** Ends a command whose record this process knows. Null as `markKnown` has it. */
export function endKnown(parts: CommandParts, key: CommandKey, known: KnownEnd): Promise<Command | null> | null {
  const before = parts.held.get(key);
  if (!before || before.waits === null) return null;
  const fields = splitState(before.state);
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
  return decodeCommand(ending.states.map((text, i) => text + (stamps[i] ?? '')).join('') + ending.before.asked);
}

/** The rows of an end are named by its kind, but for a cancellation. */
const ROW_KINDS = { result: 'result', error: 'error', cancelled: 'cancel' } as const;

const ASKED_ARGS = ['sh', 'scopeId', 'sth', 'traceId', 'parentSpanId'] as const;

function endArgs(
  { store, settings }: CommandParts,
  key: CommandKey,
  { end, messageId, mark: seen, before, fields, states }: Ending,
): readonly (string | number | null)[] {
  const asked = before.asked.split('\0');
  const error = end.error && JSON.stringify(end.error);
  return [
    ...[...nameArgs(store, key), startOf(fields), before.waits, ...states, end.payload],
    ...[messageId, ROW_KINDS[end.kind], ...keptArgs(end.kept), error, end.instanceId, fieldOf(fields, 'deadline')],
    ...[seen, randomUUID(), settings.rows, key.userId, key.clientId],
    ...ASKED_ARGS.map((name) => askedField(asked, name)),
  ];
}
