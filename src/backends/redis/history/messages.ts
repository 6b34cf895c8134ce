import type { Message } from '../../../core/history/message.ts';
import { PAGE_READ_BYTES } from '../../../core/limits-queries.ts';
import type { HistoryStore, MessageFilter, MessagePage } from '../../../core/history/store.ts';
import {
  SCAN_BUDGET,
  sortable,
  type ObservedSource,
  type PageRequest,
  type Position,
  type Scan,
} from '../../../core/page.ts';
import { decodeEntries, gapsOf, streamHash, type HistoryParts, type StoredMessage, type StreamName } from './rows.ts';
import { listOf } from '../replies.ts';
import type { ReadCommand } from '../types.ts';

/** Entries that a filtered scan reads at once, at most. */
const BATCH = 256;
/** Entries of the first read of a page. How many the next ones have goes by the size of those. */
const FIRST_BATCH = 64;
/** Payload bytes that one read after the first should have: Redis and this process serve nobody else meanwhile. */
const BATCH_BYTES = 1024 * 1024;

type Found = { readonly row: Message; readonly position: Position };

/** The messages of a stream and of a command. An act looks first how things stand; the entries are then read past the script, which no large page may block. */
export function createMessageReads(parts: HistoryParts): Pick<HistoryStore, 'messages' | 'ofCommand'> {
  return {
    async messages(userId, suffix, filter, page) {
      const { exists, now, droppedAt } = await lookAt(parts, { userId, suffix });
      const gaps = gapsOf(parts, { source: 'messages', now }, droppedAt);
      // It may be one of those that were dropped whole: then "there is none" would say more than is known.
      if (!exists) return gaps.length > 0 ? { rows: [], next: null, gaps } : null;
      const range = rangeOf(filter, page, now - parts.retentionMs);
      const { first, order } = page;
      const entries = range ? entriesOf(parts, { userId, suffix }, { ...range, filter, first, order }) : [];
      return { ...(await takePage(entries, filter, page)), gaps };
    },
    ofCommand: (userId, commandId, page) => scanCommand(parts, { userId, commandId }, page),
  };
}

export type Look = { readonly exists: boolean; readonly now: number; readonly droppedAt: string | null };

/** How a stream stands, after what is due was forgotten. */
export async function lookAt({ store, retentionMs }: HistoryParts, name: StreamName): Promise<Look> {
  const partition = store.partitionOfUser(name.userId);
  const args = [retentionMs, name.userId, streamHash(store, name)];
  const [now, exists, droppedAt] = listOf(await store.act(partition, 'history-look', args));
  return { now: Number(now), exists: exists === 1, droppedAt: droppedAt ? String(droppedAt) : null };
}

type Range = { readonly start: string; readonly end: string };

/** The bounds of the ids of entries; null where nothing can be within them. A position is the (seq, at) of a message. */
function rangeOf(
  { afterTime, beforeTime }: MessageFilter,
  { after, order }: MessagePage,
  tooOld: number,
): Range | null {
  const from = time(Math.floor(Math.max(tooOld, afterTime ?? 0)) + 1);
  const to = beforeTime === null ? null : time(Math.ceil(beforeTime));
  if (to !== null && from >= to) return null;
  const bounds = { start: `${from}-0`, end: to === null ? '+' : `(${to}-0` };
  if (after === null) return bounds;
  const [seq = '', at = ''] = after;
  const behind = `(${unsorted(at)}-${unsorted(seq)}`;
  if (order === 'newest_first') return to !== null && unsorted(at) >= to ? bounds : { ...bounds, end: behind };
  return unsorted(at) < from ? bounds : { ...bounds, start: behind };
}

function time(ms: number): number {
  return Math.min(Math.max(0, ms), Number.MAX_SAFE_INTEGER);
}

/** The number that `sortable` wrote. */
function unsorted(text: string): number {
  return Number.parseInt(text, 36) || 0;
}

type Asked = Range & Pick<MessagePage, 'first' | 'order'> & { readonly filter: MessageFilter };

async function* entriesOf(parts: HistoryParts, name: StreamName, asked: Asked): AsyncGenerator<StoredMessage> {
  const { store } = parts;
  const partition = store.partitionOfUser(name.userId);
  const stream = store.key(partition, 'stream', streamHash(store, name));
  const seen = { rows: 0, bytes: 0 };
  const backwards = asked.order === 'newest_first';
  let { start, end } = asked;
  for (;;) {
    const wanted = asked.filter.kinds === null ? asked.first + 1 - seen.rows : BATCH;
    const count = batchOf(wanted, seen);
    const [command, from, to] = backwards ? (['XREVRANGE', end, start] as const) : (['XRANGE', start, end] as const);
    const [reply] = await store.read([[command, stream, from, to, 'COUNT', count]]);
    const entries = decodeEntries(name, reply);
    yield* entries;
    for (const { message } of entries) addTo(seen, message);
    const last = entries.at(-1);
    if (!last || entries.length < count) return;
    if (backwards) end = `(${last.entryId}`;
    else start = `(${last.entryId}`;
  }
}

type Seen = { rows: number; bytes: number };

/** How many of the wanted entries to read next, by the size of those that were read. At least one. */
function batchOf(wanted: number, { rows, bytes }: Seen): number {
  const fitting = rows === 0 ? FIRST_BATCH : Math.floor((BATCH_BYTES * rows) / Math.max(1, bytes));
  return Math.max(1, Math.min(wanted, fitting));
}

function addTo(seen: Seen, { payload, payloadBytes }: Message): void {
  seen.rows++;
  if (payload !== null) seen.bytes += payloadBytes;
}

/** Ends early after PAGE_READ_BYTES of payloads. */
async function takePage(
  entries: AsyncIterable<StoredMessage> | Iterable<StoredMessage>,
  { kinds }: MessageFilter,
  { first }: PageRequest,
): Promise<Pick<Scan<Message>, 'rows' | 'next'>> {
  const rows: Found[] = [];
  const seen = { rows: 0, bytes: 0 };
  let last: Position | null = null;
  for await (const { message } of entries) {
    const full = rows.length === first || seen.rows === SCAN_BUDGET || seen.bytes >= PAGE_READ_BYTES;
    if (full) return { rows, next: last };
    addTo(seen, message);
    last = [sortable(message.seq), sortable(message.at)];
    if (kinds === null || kinds.includes(message.kind)) rows.push({ row: message, position: last });
  }
  return { rows, next: null };
}

type CommandName = { readonly userId: string; readonly commandId: string };
/** Where a message of a command stands: its entry, and the text by which the index has it. */
type Place = { readonly text: string; readonly suffix: string; readonly entryId: string; readonly position: Position };
type Index = { readonly places: readonly Place[]; readonly gaps: readonly ObservedSource[] };

/** Rows that went from their stream before their place went from the index are passed over. */
async function scanCommand(parts: HistoryParts, name: CommandName, page: MessagePage): Promise<Scan<Message>> {
  const rows: Found[] = [];
  const seen = { rows: 0, bytes: 0 };
  let after = page.after;
  for (;;) {
    const count = batchOf(Math.max(page.first - rows.length + 1, Math.min(BATCH, seen.rows)), seen);
    const { places, gaps } = await readIndex(parts, name, { first: count, after, order: page.order });
    const messages = await readPlaces(parts, name, places);
    for (const [i, { position }] of places.entries()) {
      const full = rows.length === page.first || seen.rows === SCAN_BUDGET || seen.bytes >= PAGE_READ_BYTES;
      if (full) return { rows, next: after, gaps };
      after = position;
      const row = messages[i];
      if (row) {
        addTo(seen, row);
        rows.push({ row, position });
      } else seen.rows++;
    }
    if (places.length < count) return { rows, next: null, gaps };
  }
}

async function readIndex(parts: HistoryParts, { userId, commandId }: CommandName, page: MessagePage): Promise<Index> {
  const { store, retentionMs } = parts;
  const from = page.after && placeText(page.after);
  const backwards = page.order === 'newest_first' ? 1 : null;
  const args = [retentionMs, userId, store.hash(userId), commandId, page.first, from, backwards];
  const reply = listOf(await store.act(store.partitionOfUser(userId), 'history-command', args));
  const [stamp, droppedAt, full, ...texts] = reply;
  const now = Number(stamp);
  const gaps = gapsOf(parts, { source: 'messages', now }, droppedAt);
  // A command with that many messages has lost the oldest ones from its index, as if for want of room.
  if (full === 1 && gaps.length === 0) gaps.push(...gapsOf(parts, { source: 'messages', now }, String(now)));
  return { places: texts.map((text) => placeIn(String(text))), gaps };
}

function placeText([at = '', suffix = '', seq = '']: Position): string {
  const padded = (text: string): string => String(unsorted(text)).padStart(16, '0');
  return `${padded(at)}\0${suffix}\0${padded(seq)}`;
}

function placeIn(text: string): Place {
  const [at = '', suffix = '', seq = ''] = text.split('\0');
  const [time, place] = [Number(at), Number(seq)];
  return { text, suffix, entryId: `${time}-${place}`, position: [sortable(time), suffix, sortable(place)] };
}

async function readPlaces(
  { store }: HistoryParts,
  { userId, commandId }: CommandName,
  places: readonly Place[],
): Promise<readonly (Message | null)[]> {
  const partition = store.partitionOfUser(userId);
  const reads = places.map(({ suffix, entryId }): ReadCommand => {
    return ['XRANGE', store.key(partition, 'stream', streamHash(store, { userId, suffix })), entryId, entryId];
  });
  const replies = await store.read(reads);
  return places.map(({ suffix }, i) => {
    const [stored] = decodeEntries({ userId, suffix }, replies[i]);
    return stored?.message.commandId === commandId ? stored.message : null;
  });
}
