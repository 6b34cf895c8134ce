/** Encodes and decodes mailbox rows and the reports of nodes. */
import type { DispatcherNode, MailboxRow, NodeReport, NodeRow } from '../../core/commands/node-store.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import { heldCommand, decodeCommand, decodeEnded, type LiveCommand } from './commands/record.ts';
import { listOf, type Reply } from './replies.ts';

/**
 * A row of a mailbox, before a large result is fetched. `id`: the id of its entry. `place`: its index among the rows of
 * the entry. `last`: whether it is the last row of the entry.
 */
export type RawRow = {
  readonly id: string;
  readonly place: number;
  readonly last: boolean;
  readonly fields: ReadonlyMap<string, string>;
};

/** Encodes the fields of a row after its kind, as alternating names and values. */
export function encodeRow(row: Exclude<NodeRow, { kind: 'pulse' }>): readonly (string | number)[] {
  switch (row.kind) {
    case 'kick': {
      const { client, epoch, cause, instanceId } = row;
      const named = ['userId', client.userId, 'clientId', client.clientId];
      const successor = instanceId === null ? [] : ['instanceId', instanceId];
      return [...named, 'epoch', epoch, 'cause', cause, ...successor];
    }
    case 'drain':
      return ['withinMs', row.withinMs];
    case 'question':
      return ['questionId', row.questionId, 'from', row.from, 'topic', row.topic, 'text', row.text];
    case 'answer':
      return ['questionId', row.questionId, 'text', row.text];
  }
}

type DecodedRow = Exclude<MailboxRow, { kind: 'pulse' }>;
type RowContents = { readonly result: JsonText | null; readonly offered: LiveCommand | null };

/**
 * Decodes a row into several rows if it names several commands, and into none if only a newer version of callboard
 * knows its kind. `result`: the result in a reply. `offered`: the command that the row contains. A reply is for all
 * callers of the node that wait for the command, so its rpc id is ''.
 */
export function decodeRows(fields: ReadonlyMap<string, string>, contents: RowContents): readonly DecodedRow[] {
  const row = decodeRow(fields, contents);
  if (row?.kind !== 'command') return row ? [row] : [];
  const { key } = row;
  return key.commandId.split('\0').map((commandId) => ({ kind: 'command', key: { ...key, commandId } }));
}

function decodeRow(fields: ReadonlyMap<string, string>, { result, offered }: RowContents): DecodedRow | null {
  const text = (name: string): string => fields.get(name) ?? '';
  const { client, key } = namedIn(fields, offered);
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
    case 'question': {
      const topic = text('topic');
      if (topic !== 'series' && topic !== 'leaving' && topic !== 'waits' && topic !== 'answers') return null;
      return { kind, questionId: text('questionId'), from: text('from'), topic, text: text('text') };
    }
    case 'answer':
      return { kind, questionId: text('questionId'), text: text('text') };
    case 'reply': {
      const command = result === null ? decodeCommand(text('record')) : decodeEnded(text('record'));
      return { kind, reply: { rpcId: '', command, result } };
    }
    default:
      return null;
  }
}

/**
 * Returns the client and the command that a row names, either in fields of its own or in the request of the command
 * that it contains.
 */
function namedIn(
  fields: ReadonlyMap<string, string>,
  offered: LiveCommand | null,
): { readonly client: ClientKey; readonly key: CommandKey } {
  const text = (name: 'userId' | 'clientId' | 'commandId'): string =>
    offered ? offered.command[name] : (fields.get(name) ?? '');
  const client = { userId: text('userId'), clientId: text('clientId') };
  return { client, key: { ...client, commandId: text('commandId') } };
}

/** Decodes the command that a row contains; null for a row that only names a command, and for rows of another kind. */
export function heldOf(fields: ReadonlyMap<string, string>): LiveCommand | null {
  const [state, request] = [fields.get('state'), fields.get('request')];
  if (state === undefined || request === undefined) return null;
  return heldCommand({ state, request, waits: fields.get('waits') ?? '', params: fields.get('params') ?? null });
}

/** Returns the rows of one stream in a reply of XREAD or XRANGE, in order. */
export function rawRows(entries: unknown): readonly RawRow[] {
  if (!Array.isArray(entries)) return [];
  return (entries as readonly (readonly [string, Reply])[]).flatMap(([id, flat]) => {
    const rows = rowsIn(listOf(flat).map(String));
    return rows.map((fields, place) => ({ id, place, last: place === rows.length - 1, fields }));
  });
}

/** Splits the fields of an entry into rows. Each row begins with its field `kind`. */
function rowsIn(flat: readonly string[]): readonly ReadonlyMap<string, string>[] {
  const rows: Map<string, string>[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const [name = '', value = ''] = [flat[i], flat[i + 1]];
    if (name === 'kind') rows.push(new Map());
    rows.at(-1)?.set(name, value);
  }
  return rows;
}

export function encodeReport(report: NodeReport): string {
  return JSON.stringify({ ...report, counters: Object.fromEntries(report.counters) });
}

/** Decodes the report of a node; null if the node has not reported. */
export function decodeNode(nodeId: string, reply: Reply): DispatcherNode | null {
  const [report, updatedAt] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
  if (typeof report !== 'string') return null;
  type Stored = Omit<NodeReport, 'counters' | 'process'> & {
    readonly counters: Readonly<Record<string, number>>;
    readonly process?: NodeReport['process'];
  };
  const stored = JSON.parse(report) as Stored;
  const counters = new Map(Object.entries(stored.counters));
  return { ...stored, counters, process: stored.process ?? null, nodeId, updatedAt: Number(updatedAt) };
}
