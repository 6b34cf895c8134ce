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
} from '../../../core/delivery/commands.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { PROGRESS_ROW_MS, SIGHTINGS_PER_COMMAND } from '../../../core/limits.ts';
import { commandHash, keptArgs, type CommandParts } from './parts.ts';
import { markHash } from '../history/store.ts';
import { decodeCommand } from './record.ts';
import { jsonOr, listOf, type Fields } from '../replies.ts';

type Args = readonly (string | number | null)[];

/** One act on a command: what Lua answered, its kind first. */
async function ask({ store }: CommandParts, of: ClientKey, name: string, args: Args): Promise<readonly Fields[]> {
  return listOf(await store.act(store.partitionOfUser(of.userId), name, args));
}

export async function dispatch(
  parts: CommandParts,
  key: CommandKey,
  { nodeId, epoch, instanceId, attempt }: Binding & { readonly attempt: string | null },
): Promise<DispatchResult> {
  const client = parts.store.hash(key.userId, key.clientId);
  const args = [commandHash(parts.store, key), nodeId, epoch, instanceId, attempt, client];
  const [kind, record, params, remainingMs] = await ask(parts, key, 'commands-dispatch', args);
  if (kind !== 'dispatch') return { kind: 'skip' };
  return { kind, command: decodeCommand(record ?? null), params: jsonOr(params), remainingMs: Number(remainingMs) };
}

export async function report(parts: CommandParts, key: CommandKey, told: Report): Promise<ReportResult> {
  const { instanceId, kind, kept } = told;
  const row = [kept === null ? null : '1', ...keptArgs(kept)];
  const args = [commandHash(parts.store, key), instanceId, kind, ...row, PROGRESS_ROW_MS, parts.settings.rows];
  const [answer, record] = await ask(parts, key, 'commands-report', args);
  const command = record ? decodeCommand(record) : null;
  return answer === 'recorded' && command ? { kind: answer, command } : { kind: 'ignored', command };
}

export async function finish(parts: CommandParts, key: CommandKey, end: End): Promise<FinishResult> {
  const { store, sha256, settings } = parts;
  const { kind, payload, error, instanceId } = end;
  const messageId = endMessageId(key.commandId, end);
  const mark = markHash(store, { ...key, messageId });
  const digest = sha256(`${kind}\n${payload ?? ''}\n${error?.code ?? ''}`);
  const [answer, record] = await ask(parts, key, 'commands-finish', [
    ...[commandHash(store, key), instanceId, kind, payload, ...keptArgs(end.kept)],
    ...[error && JSON.stringify(error), end.refused ? '1' : null],
    ...[messageId, mark, randomUUID(), digest, SIGHTINGS_PER_COMMAND, settings.rows],
  ]);
  const known = answer === 'finished' || answer === 'duplicate' || answer === 'late' || answer === 'fenced';
  return known ? { kind: answer, command: decodeCommand(record ?? null) } : { kind: 'unknown' };
}

export async function settle(parts: CommandParts, key: CommandKey, settlement: Settlement): Promise<SettleResult> {
  const { store, settings } = parts;
  const { userId, clientId, commandId } = key;
  const name = `${userId}\0${clientId}\0${commandId}`;
  const args = [commandHash(store, key), name, store.hash(userId, clientId), settlement.kind, settings.ends];
  const [answer, record] = await ask(parts, key, 'commands-settle', [...args, ...settlementArgs(settlement)]);
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

/** Part by part, each one act, so that a long queue holds up nobody. */
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
