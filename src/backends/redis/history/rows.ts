import {
  MESSAGE_KINDS,
  type Message,
  type MessageKind,
  type NewMessage,
  type PayloadRef,
  type TerminalError,
} from '../../../core/history/message.ts';
import { trustJson, utf8Length } from '../../../core/json.ts';
import type { EvidenceSource, ObservedSource } from '../../../core/page.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import type { Reply } from '../types.ts';

/** What history over Redis is made of. */
export type HistoryParts = {
  readonly store: Store;
  readonly retentionMs: number;
  readonly streamMessages: number;
  readonly streamsPerUser: number;
};

export type StreamName = { readonly userId: string; readonly suffix: string };
/** A message and the id of its entry in its STREAM. */
export type StoredMessage = { readonly message: Message; readonly entryId: string };

export function payloadBytesOf({ payload, spill }: NewMessage): number {
  return payload === null ? (spill?.bytes ?? 0) : utf8Length(payload);
}

/** A row's names and values in turn, as the acts that append take them. */
export function rowArgs(parts: HistoryParts, message: NewMessage): readonly (string | number | null)[] {
  const { store, retentionMs, streamMessages, streamsPerUser } = parts;
  const { error, spill, ...plain } = message;
  const row = {
    ...plain,
    error: error && JSON.stringify(error),
    spill: spill && JSON.stringify(spill),
    bytes: payloadBytesOf(message),
    uh: store.hash(message.userId),
    sth: streamHash(store, message),
    retentionMs,
    streamMessages,
    streamsPerUser,
  };
  return Object.entries(row).flatMap(([name, value]) => (value === null ? [] : [name, value]));
}

export function streamHash(store: Store, { userId, suffix }: StreamName): string {
  return store.hash(userId, suffix);
}

/** The entries that XRANGE or XREVRANGE answered, as messages of their stream. */
export function decodeEntries({ userId, suffix }: StreamName, reply: Reply | undefined): readonly StoredMessage[] {
  return listOf(reply).map((entry) => {
    const [id, flat] = listOf(entry);
    const entryId = String(id);
    return { entryId, message: { userId, suffix, ...placeOf(entryId), ...membersOf(listOf(flat)) } };
  });
}

/** `<at>-<seq>`. */
export function placeOf(entryId: string): { readonly at: number; readonly seq: number } {
  const [at, seq] = entryId.split('-').map(Number);
  return { at: at ?? 0, seq: seq ?? 0 };
}

function membersOf(flat: readonly Reply[]): Omit<Message, 'userId' | 'suffix' | 'at' | 'seq'> {
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(String(flat[i]), String(flat[i + 1]));
  const text = (name: string): string | null => fields.get(name) ?? null;
  const payload = text('payload');
  return {
    id: text('id') ?? '',
    kind: kindOf(text('kind')),
    clientId: text('clientId'),
    instanceId: text('instanceId'),
    commandId: text('commandId'),
    traceId: text('traceId'),
    parentSpanId: text('parentSpanId'),
    error: parsed<TerminalError>(text('error')),
    payload: payload === null ? null : trustJson(payload),
    spill: parsed<PayloadRef>(text('spill')),
    payloadBytes: Number(text('payloadBytes') ?? 0),
  };
}

function kindOf(text: string | null): MessageKind {
  return MESSAGE_KINDS.find((kind) => kind === text) ?? 'event';
}

/** What this backend has written itself. */
function parsed<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}

/** What was read, and when by the clock of Redis. */
type Seen = { readonly source: EvidenceSource; readonly now: number };

/** The gap that dropping a message of this time for want of room has left, as long as the message would still be shown. */
export function gapsOf(
  { retentionMs }: HistoryParts,
  { source, now }: Seen,
  droppedAt: Reply | undefined,
): ObservedSource[] {
  if (Number(droppedAt ?? 0) <= now - retentionMs) return [];
  return [{ source, nodeId: null, complete: false, observed: 0, limit: null, reason: 'evicted', asOf: now }];
}
