/**
 * Calls the Lua acts that change a command after its admission: dispatch it, record reports, end it, move it to another
 * link. Also reads results. The rules are in the Lua files.
 */
import { randomUUID } from 'node:crypto';
import {
  endMessageId,
  type Binding,
  type DispatchResult,
  type End,
  type FinishResult,
  type LinkMove,
  type RebindResult,
  type Report,
  type ReportResult,
  type Settlement,
  type SettleResult,
} from '../../../core/commands/stores.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import type { JsonText } from '../../../core/json.ts';
import { PROGRESS_ROW_MS, SIGHTINGS_PER_COMMAND } from '../../../core/limits.ts';
import { isTerminal } from '../../../core/commands/command.ts';
import { keptArgs, nameArgs, type CommandParts } from './parts.ts';
import { markHash } from '../dedup.ts';
import { hold } from './held.ts';
import { endKnown, markKnown, type Attempt } from './known.ts';
import { decodeCommand, decodeEnded } from './record.ts';
import { jsonOr, listOf, type Fields } from '../types.ts';

type Args = readonly (string | number | null)[];

/** Runs one act on a command. Resolves to the reply. The first item of the reply is its kind. */
async function ask({ store }: CommandParts, of: ClientKey, name: string, args: Args): Promise<readonly Fields[]> {
  return listOf(await store.act(store.partitionOfUser(of.userId), name, args));
}

export async function dispatch(parts: CommandParts, key: CommandKey, attempting: Attempt): Promise<DispatchResult> {
  // No await before this call: the acts of one tick run in the order in which they were requested.
  const marking = markKnown(parts, key, attempting);
  const marked = marking && (await marking);
  if (marked) return marked;
  const { nodeId, epoch, instanceId, attempt } = attempting;
  const [client, commandId] = nameArgs(parts.store, key);
  const args = [client, commandId, nodeId, epoch, instanceId, attempt];
  const [kind, record, params, remainingMs] = await ask(parts, key, 'commands-dispatch', args);
  if (kind !== 'dispatch') return { kind: 'skip' };
  hold(parts, key, record);
  return { kind, command: decodeCommand(record ?? null), params: jsonOr(params), remainingMs: Number(remainingMs) };
}

export async function report(parts: CommandParts, key: CommandKey, reported: Report): Promise<ReportResult> {
  const { instanceId, kind, kept } = reported;
  const row = [kept === null ? null : '1', ...keptArgs(kept)];
  const [client, ...named] = nameArgs(parts.store, key);
  const args = [client, instanceId, kind, ...row, PROGRESS_ROW_MS, parts.settings.rows, ...named];
  const [answer, record] = await ask(parts, key, 'commands-report', args);
  const command = record ? decodeCommand(record) : null;
  hold(parts, key, record);
  return answer === 'recorded' && command ? { kind: answer, command } : { kind: 'ignored', command };
}

/**
 * Records an end, and replies to the callers of this node, for which Redis posts no row. If an answer was lost and the
 * end is reported again, Redis returns the record, and the result is read for the callers.
 */
export async function finish(parts: CommandParts, key: CommandKey, end: End): Promise<FinishResult> {
  const answer = await record(parts, key, end);
  if (answer.kind === 'unknown' || !isTerminal(answer.command) || !parts.waits.awaits(key)) return answer;
  const { kind, command } = answer;
  parts.waits.end({ command, result: kind === 'finished' ? end.payload : await readResult(parts, key) });
  return answer;
}

/** Reads the result of an ended command; null if there is none, or it is no longer shown. */
export async function readResult({ store, retentionMs }: CommandParts, key: CommandKey): Promise<JsonText | null> {
  const args = [...nameArgs(store, key), retentionMs];
  return jsonOr(await store.act(store.partitionOfUser(key.userId), 'commands-result', args));
}

async function record(parts: CommandParts, key: CommandKey, end: End): Promise<FinishResult> {
  const { store, sha256, settings, held } = parts;
  const { kind, payload, error, instanceId } = end;
  const messageId = endMessageId(key.commandId, end);
  const ending = endKnown(parts, key, { end, messageId });
  held.drop(key);
  const predicted = ending && (await ending);
  if (predicted) return { kind: 'finished', command: predicted };
  const [client, ...named] = nameArgs(store, key);
  const mark = markHash(store, { ...key, messageId });
  const digest = sha256(`${kind}\n${payload ?? ''}\n${error?.code ?? ''}`);
  const [answer, text = null] = await ask(parts, key, 'commands-finish', [
    ...[client, instanceId, kind, payload, ...keptArgs(end.kept)],
    ...[error && JSON.stringify(error), end.refused ? '1' : null],
    ...[messageId, mark, randomUUID(), digest, SIGHTINGS_PER_COMMAND, settings.rows],
    ...named,
  ]);
  if (answer === 'finished') return { kind: answer, command: decodeEnded(text) };
  const repeated = answer === 'duplicate' || answer === 'late' || answer === 'fenced';
  return repeated ? { kind: answer, command: decodeCommand(text) } : { kind: 'unknown' };
}

export async function settle(parts: CommandParts, key: CommandKey, settlement: Settlement): Promise<SettleResult> {
  const { store, settings } = parts;
  const args = [...nameArgs(store, key), settlement.kind, settings.ends];
  const [answer, record] = await ask(parts, key, 'commands-settle', [...args, ...settlementArgs(settlement)]);
  if (answer === 'settled') parts.held.drop(key);
  const known = answer === 'settled' || answer === 'requested' || answer === 'unchanged';
  return known ? { kind: answer, command: decodeCommand(record ?? null) } : { kind: 'unknown' };
}

function settlementArgs(settlement: Settlement): Args {
  if (settlement.kind === 'expire') return [];
  if (settlement.kind === 'give_up') return [settlement.code, settlement.instanceId];
  const { by, reason } = settlement;
  return [by, reason === null ? null : '1', reason];
}

type Move = { readonly binding: Binding; readonly link: LinkMove };

/** Moves a client's queue in parts, one act for each part, so that a long queue does not block other calls. */
export async function rebind(parts: CommandParts, key: ClientKey, move: Move): Promise<RebindResult> {
  const { nodeId, instanceId, epoch } = move.binding;
  const args = [parts.store.hash(key.userId, key.clientId), nodeId, instanceId, epoch, move.link, parts.settings.ends];
  let requeued = 0;
  for (let place: string | null = null; ;) {
    const [queued, unfinished, orphaned, came] = await ask(parts, key, 'commands-rebind', [...args, place]);
    requeued += Number(queued);
    place = typeof came === 'string' ? came : null;
    if (place === null)
      return {
        requeued,
        unfinished: listOf(unfinished).map(decodeCommand),
        orphaned: listOf(orphaned).map(decodeCommand),
      };
  }
}
