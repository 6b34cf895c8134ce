import type { DispatcherNode, MailboxRow, NodeReport } from '../../../core/delivery/nodes.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import type { JsonText } from '../../../core/json.ts';
import type { Held } from '../commands/held.ts';
import { askedField } from '../commands/predict.ts';
import { decodeCommand, encodeCommand } from '../commands/record.ts';
import { fieldsOf } from '../replies.ts';
import type { Reply } from '../types.ts';

/** A row as it stands in a mailbox, before a large result is fetched. */
export type RawRow = { readonly id: string; readonly fields: ReadonlyMap<string, string> };

/** Name and value in turn, after the kind. */
export function encodeRow(row: Exclude<MailboxRow, { kind: 'pulse' }>): readonly (string | number)[] {
  switch (row.kind) {
    case 'command':
    case 'ended':
      return keyFields(row.key);
    case 'cancel':
      return [...keyFields(row.key), ...present('reason', row.reason)];
    case 'kick': {
      const { client, epoch, cause, instanceId } = row;
      return [...keyFields(client), 'epoch', epoch, 'cause', cause, ...present('instanceId', instanceId)];
    }
    case 'drain':
      return ['withinMs', row.withinMs];
    case 'reply': {
      const { rpcId, command, result } = row.reply;
      return ['rpcId', rpcId, 'record', encodeCommand(command), ...present('result', result)];
    }
  }
}

/** The row, or null where a newer version of callboard wrote a kind that this one does not know. `result` is that of a reply. */
export function decodeRow(
  fields: ReadonlyMap<string, string>,
  result: JsonText | null,
): Exclude<MailboxRow, { kind: 'pulse' }> | null {
  const text = (name: string): string => fields.get(name) ?? '';
  const { client, key } = namedIn(fields);
  const kind = text('kind');
  switch (kind) {
    case 'command':
    case 'ended':
      return { kind, key };
    case 'cancel':
      return { kind, key, reason: fields.get('reason') ?? null };
    case 'kick': {
      const cause = text('cause') === 'operator' ? 'operator' : 'replaced';
      return { kind, client, epoch: Number(text('epoch')), cause, instanceId: fields.get('instanceId') ?? null };
    }
    case 'drain':
      return { kind, withinMs: Number(text('withinMs')) };
    case 'reply': {
      const command = decodeCommand(text('record'));
      return { kind, reply: { rpcId: text('rpcId'), command, result } };
    }
    default:
      return null;
  }
}

/** The client and the command that a row names, by themselves or by what was asked for. */
function namedIn(fields: ReadonlyMap<string, string>): { readonly client: ClientKey; readonly key: CommandKey } {
  const asked = fields.get('asked')?.split('\0');
  const text = (name: 'userId' | 'clientId' | 'commandId'): string =>
    asked ? askedField(asked, name) : (fields.get(name) ?? '');
  const client = { userId: text('userId'), clientId: text('clientId') };
  return { client, key: { ...client, commandId: text('commandId') } };
}

/** What a row that offers a command says of it; null for another row, and for one that names it alone. */
export function heldOf(fields: ReadonlyMap<string, string>): Held | null {
  const [state, asked] = [fields.get('state'), fields.get('asked')];
  if (state === undefined || asked === undefined) return null;
  return { state, asked, waits: fields.get('waits') ?? '', params: fields.get('params') ?? null };
}

/** What XREAD or XRANGE answers for one stream. */
export function rawRows(entries: unknown): readonly RawRow[] {
  if (!Array.isArray(entries)) return [];
  return (entries as readonly (readonly [string, Reply])[]).map(([id, flat]) => ({ id, fields: fieldsOf(flat) }));
}

export function encodeReport(report: NodeReport): string {
  return JSON.stringify({ ...report, counters: Object.fromEntries(report.counters) });
}

/** Null where the node has not said anything. */
export function decodeNode(nodeId: string, reply: Reply): DispatcherNode | null {
  const [report, updatedAt] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
  if (typeof report !== 'string') return null;
  type Stored = Omit<NodeReport, 'counters'> & { readonly counters: Readonly<Record<string, number>> };
  const stored = JSON.parse(report) as Stored;
  return { ...stored, counters: new Map(Object.entries(stored.counters)), nodeId, updatedAt: Number(updatedAt) };
}

function keyFields(ids: Readonly<Record<string, string>>): string[] {
  const { userId, clientId, commandId } = ids;
  return [...present('userId', userId), ...present('clientId', clientId), ...present('commandId', commandId)];
}

function present(name: string, value: string | null | undefined): string[] {
  return value === null || value === undefined ? [] : [name, value];
}
