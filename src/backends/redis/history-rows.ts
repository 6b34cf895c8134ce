/**
 * Encodes messages as rows, decodes the blocks and heads of streams, and computes the gaps of answers. Pure functions.
 */
import { CallboardError } from '../../core/errors.ts';
import {
  isLinkKind,
  LINK_STREAM,
  MESSAGE_KINDS,
  type Message,
  type MessageKind,
  type NewMessage,
  type PayloadRef,
  type TerminalError,
} from '../../core/history/message.ts';
import { trustJson, utf8Length } from '../../core/json.ts';
import type { LinkDetails } from '../../core/connections/link-row.ts';
import type { EvidenceSource, ObservedSource } from '../../core/completeness.ts';
import type { Clock } from '../../core/ports.ts';
import { listOf, type Reply } from './replies.ts';
import type { Store } from './store.ts';

/** The dependencies and limits that the Redis files for history share. */
export type HistoryDeps = {
  readonly store: Store;
  /** The clock of the store. */
  readonly clock: Pick<Clock, 'now'>;
  readonly retentionMs: number;
  readonly streamMessages: number;
  /** The most rows of one user's link history. */
  readonly linkMessages: number;
};

export type StreamName = { readonly userId: string; readonly suffix: string };
/** A message with its id in the stream: `entryId` is `<time>-<seq>`. */
export type StoredMessage = { readonly message: Message; readonly entryId: string };

export function payloadBytesOf({ payload, spill }: NewMessage): number {
  return payload === null ? (spill?.bytes ?? 0) : utf8Length(payload);
}

/** Throws `internal` if a text of a message contains a NUL. */
export function refuseNul({ id, clientId, instanceId, commandId, traceId, parentSpanId, payload }: NewMessage): void {
  if ([id, clientId, instanceId, commandId, traceId, parentSpanId, payload].some((text) => text?.includes('\0')))
    throw new CallboardError('internal', 'A row of history holds no NUL.');
}

/**
 * Encodes a message as a row of a block: its fields, each followed by a NUL (see lib-history-blocks). Rare members are
 * appended to the number of bytes, as JSON after a blank, so that messages without them take no more bytes.
 */
export function rowText(message: NewMessage): string {
  const { id, kind, clientId, instanceId, commandId, traceId, parentSpanId, error, spill, payload, link } = message;
  const ids = [id, kind, clientId ?? '', instanceId ?? '', commandId ?? '', traceId ?? '', parentSpanId ?? ''];
  const texts = [error ? JSON.stringify(error) : '', spill ? JSON.stringify(spill) : ''];
  const whole = link ? JSON.stringify(link) : (payload ?? '');
  return [...ids, `${payloadBytesOf(message)}${optionalText(message)}`, ...texts, whole, ''].join('\0');
}

function optionalText({ contextId, callerLabel }: OptionalMembers): string {
  return contextId === undefined && !callerLabel ? '' : ` ${JSON.stringify({ contextId, callerLabel })}`;
}

type OptionalMembers = Pick<NewMessage, 'contextId' | 'callerLabel'>;

export function streamHash(store: Store, { userId, suffix }: StreamName): string {
  return store.hash(userId, suffix);
}

/** A block: the id of its entry, and its rows, which all have the same time. */
type Block = { readonly entryId: string; readonly rows: readonly StoredMessage[] };

/** A block with rows that are not decoded. The `seq` of its rows has no gaps. */
export type RawBlock = {
  readonly entryId: string;
  readonly at: number;
  /** The `seq` of the block's first row. */
  readonly seq: number;
  readonly rows: number;
  readonly text: string;
};

/** Returns the blocks in a reply of XRANGE or XREVRANGE (see lib-history-blocks in history-rows.lua). */
export function rawBlocks(reply: Reply | undefined): readonly RawBlock[] {
  return listOf(reply).map((entry) => {
    const [id, flat] = listOf(entry);
    const [rows, text] = listOf(flat).map(String);
    return { entryId: String(id), ...placeOf(String(id)), rows: Number(rows), text: text ?? '' };
  });
}

/** Whether a block may contain a row of one of these kinds. This costs much less than decoding the block. */
export function mayHaveKind({ text }: RawBlock, kinds: readonly MessageKind[]): boolean {
  // A row whose kind this version does not know is shown as an event.
  return kinds.some((kind) => kind === UNKNOWN_KIND || text.includes(`\0${kind}\0`));
}

/** The rows to decode: those of these kinds, from index `from` to before index `to` in the block. */
type RowsWanted = {
  readonly from: number;
  readonly to: number;
  /** Null: all kinds. */
  readonly kinds: readonly MessageKind[] | null;
};

/** Decodes rows of a block, in order of `seq`. Rows of other kinds are not decoded. */
export function decodeRows({ userId, suffix }: StreamName, block: RawBlock, wanted: RowsWanted): StoredMessage[] {
  const { at, seq, text } = block;
  const fields = text.split('\0');
  const to = Math.min(wanted.to, Math.floor(fields.length / FIELDS));
  const rows: StoredMessage[] = [];
  for (let i = wanted.from; i < to; i++) {
    const first = i * FIELDS;
    const kind = kindOf(fields[first + 1] ?? '');
    if (wanted.kinds !== null && !wanted.kinds.includes(kind)) continue;
    const place = { at, seq: seq + i };
    const message = { userId, suffix, ...place, ...membersOf(fields.slice(first, first + FIELDS)) };
    rows.push({ entryId: `${place.at}-${place.seq}`, message });
  }
  return rows;
}

/** Decodes the blocks in a reply of XRANGE or XREVRANGE, each with its rows in order of `seq`. */
export function decodeBlocks(name: StreamName, reply: Reply | undefined): readonly Block[] {
  return rawBlocks(reply).map((block) => ({
    entryId: block.entryId,
    rows: decodeRows(name, block, { from: 0, to: Infinity, kinds: null }),
  }));
}

/** Returns how many rows an entry contains, and the time and `seq` of its first row. */
export function extentOf(entry: Reply | undefined): {
  readonly at: number;
  readonly seq: number;
  readonly rows: number;
} {
  const [id, flat] = listOf(entry);
  return { ...placeOf(String(id)), rows: Number(listOf(flat)[0]) };
}

/** Reads the id of an entry, `<time>-<seq>`. */
export function placeOf(entryId: string): { readonly at: number; readonly seq: number } {
  const [at, seq] = entryId.split('-').map(Number);
  return { at: at ?? 0, seq: seq ?? 0 };
}

/** Returns the most rows that a stream may have. */
function mostOf(deps: HistoryDeps, { suffix }: Pick<StreamName, 'suffix'>): number {
  return suffix === LINK_STREAM ? deps.linkMessages : deps.streamMessages;
}

/** Returns the least `seq` that a stream shows. `last`: the `seq` of its last row. */
export function leastSeq(deps: HistoryDeps, name: Pick<StreamName, 'suffix'>, last: number): number {
  return last - mostOf(deps, name) + 1;
}

type Head = { readonly seq: number; readonly at: number; readonly evictedAt: number };

/**
 * Decodes the head of a stream (see lib-history in history.lua): `seq` and time of the last row, and the time of the
 * newest row that was dropped to make room.
 */
export function headOf(head: Reply | undefined): Head | null {
  if (typeof head !== 'string') return null;
  const [seq = 0, at = 0, , , evictedAt = 0] = head.split(' ').map(Number);
  return { seq, at, evictedAt };
}

/**
 * Returns how far the expiry of a stream, and its place in the indexes of streams, may lag behind its last write, in
 * milliseconds.
 */
export function lagOf(retentionMs: number): number {
  return Math.min(60_000, Math.floor(retentionMs / 8));
}

/** The details of a link as a row stores them. Rows of version 0.1.0 have no `closeCode`. */
type StoredLink = Omit<LinkDetails, 'closeCode'> & { readonly closeCode?: LinkDetails['closeCode'] };

/** The number of fields of a row in a block. */
const FIELDS = 11;

function membersOf(fields: readonly string[]): Omit<Message, 'userId' | 'suffix' | 'at' | 'seq'> {
  const [id = '', kind = '', clientId, instanceId, commandId, traceId, parentSpanId, bytes, error, spill, payload] =
    fields;
  const isLink = isLinkKind(kind);
  const link = isLink ? parsed<StoredLink>(payload) : null;
  const [, size, optional] = /^(\d*) ?(.*)$/.exec(bytes ?? '') ?? [];
  return {
    id,
    kind: kindOf(kind),
    clientId: clientId || null,
    instanceId: instanceId || null,
    commandId: commandId || null,
    traceId: traceId || null,
    parentSpanId: parentSpanId || null,
    error: parsed<TerminalError>(error),
    // A row of the link history stores its details in the field that other rows use for the payload.
    payload: payload && !isLink ? trustJson(payload) : null,
    ...(link && { link: { ...link, closeCode: link.closeCode ?? null } }),
    spill: parsed<PayloadRef>(spill),
    payloadBytes: Number(size),
    ...parsed<OptionalMembers>(optional),
  };
}

const UNKNOWN_KIND = 'event' satisfies MessageKind;

function kindOf(text: string): MessageKind {
  return MESSAGE_KINDS.find((kind) => kind === text) ?? UNKNOWN_KIND;
}

/** Parses JSON without validating it, because only this backend wrote it. */
function parsed<T>(text: string | undefined): T | null {
  return text ? (JSON.parse(text) as T) : null;
}

/** The source that was read, and the time of Redis at that read. */
type SourceRead = { readonly source: EvidenceSource; readonly now: number };

/**
 * Returns the gap left by messages that were dropped to make room. `droppedAt`: the time of the newest of them. Returns
 * no gap once that message would no longer be shown anyway.
 */
export function gapsOf(
  { retentionMs }: HistoryDeps,
  { source, now }: SourceRead,
  droppedAt: Reply | undefined,
): ObservedSource[] {
  if (Number(droppedAt ?? 0) <= now - retentionMs) return [];
  return [{ source, nodeId: null, complete: false, observed: 0, limit: null, reason: 'evicted', asOf: now }];
}
