/** Reads pages of the messages of a stream, or of a command, from Redis. */
import type { Message } from '../../../core/history/message.ts';
import { PAGE_READ_BYTES } from '../../../core/limits-queries.ts';
import type { HistoryStore, MessageFilter, MessagePage } from '../../../core/history/store.ts';
import { SCAN_BUDGET, sortable, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import { blockAt, scanCommand } from './places.ts';
import {
  decodeBlocks,
  gapsOf,
  leastSeq,
  placeOf,
  streamHash,
  type Block,
  type HistoryParts,
  type StoredMessage,
  type StreamName,
} from './rows.ts';
import { listOf } from '../replies.ts';

/** The most blocks that are read at once. */
const BATCH = 256;
/**
 * The most blocks in the first read of a page. A block has up to 64 rows. The rows and bytes of these blocks decide how
 * many the next reads get.
 */
const FIRST_BATCH = 2;
/** The payload bytes that each later read should have: Redis and this process block while they handle a read. */
const BATCH_BYTES = 1024 * 1024;

type Found = { readonly row: Message; readonly position: Position };

/**
 * Creates the reads of the messages of a stream and of a command. A short act finds where the messages are, and plain
 * reads then get the entries, so that no script runs long for a large page.
 */
export function createMessageReads(parts: HistoryParts): Pick<HistoryStore, 'messages' | 'ofCommand'> {
  return {
    async messages(userId, suffix, filter, page) {
      const { exists, now, droppedAt, least } = await lookAt(parts, { userId, suffix });
      const gaps = gapsOf(parts, { source: 'messages', now }, droppedAt);
      // A gap means that streams were dropped to make room. This stream may have been one of them, so the answer is an
      // incomplete page, not that there is no such stream.
      if (!exists) return gaps.length > 0 ? { rows: [], next: null, gaps } : null;
      const range = rangeOf(filter, page, now - parts.retentionMs);
      const { first, order } = page;
      const rows = range ? rowsOf(parts, { userId, suffix }, { ...range, filter, first, order, least }) : [];
      return { ...(await takePage(rows, filter, page)), gaps };
    },
    ofCommand: (userId, commandId, page) => scanCommand(parts, { userId, commandId }, page),
  };
}

export type Look = {
  readonly exists: boolean;
  readonly now: number;
  readonly droppedAt: string | null;
  /** The least `seq` that is shown. */
  readonly least: number;
};

/** Finds which rows of a stream are shown. Before that, the act forgets streams that are too old. */
export async function lookAt(parts: HistoryParts, name: StreamName): Promise<Look> {
  const { store, retentionMs } = parts;
  const partition = store.partitionOfUser(name.userId);
  const args = [retentionMs, name.userId, store.hash(name.userId), streamHash(store, name)];
  const [now, exists, droppedAt, last] = listOf(await store.act(partition, 'history-look', args));
  const least = leastSeq(parts, name, Number(last));
  return { now: Number(now), exists: exists === 1, droppedAt: droppedAt ? String(droppedAt) : null, least };
}

/**
 * The ids of blocks between which a page reads. `beyond`: the `seq` of the last row of the page before. The block with
 * that row may have further rows.
 */
type Range = { readonly start: string; readonly end: string; readonly beyond: number | null };

/** Returns the range of a page; null if no message can be in it. A position is the `seq` and the time of a message. */
function rangeOf(
  { afterTime, beforeTime }: MessageFilter,
  { after, order }: MessagePage,
  tooOld: number,
): Range | null {
  const from = time(Math.floor(Math.max(tooOld, afterTime ?? 0)) + 1);
  const to = beforeTime === null ? null : time(Math.ceil(beforeTime));
  if (to !== null && from >= to) return null;
  const bounds = { start: `${from}-0`, end: to === null ? '+' : `(${to}-0`, beyond: null };
  if (after === null) return bounds;
  const [seq = '', at = ''] = after;
  const [place, behind] = [unsorted(seq), `(${unsorted(at)}-${unsorted(seq)}`];
  if (order === 'newest_first') {
    return to !== null && unsorted(at) >= to ? bounds : { ...bounds, end: behind, beyond: place };
  }
  return unsorted(at) < from ? bounds : { ...bounds, start: behind, beyond: place };
}

function time(ms: number): number {
  return Math.min(Math.max(0, ms), Number.MAX_SAFE_INTEGER);
}

/** Reads the number that `sortable` wrote. */
function unsorted(text: string): number {
  return Number.parseInt(text, 36) || 0;
}

type Asked = Range & Pick<MessagePage, 'first' | 'order'> & { readonly filter: MessageFilter; readonly least: number };

async function* rowsOf(parts: HistoryParts, name: StreamName, asked: Asked): AsyncGenerator<StoredMessage> {
  const { store } = parts;
  const partition = store.partitionOfUser(name.userId);
  const stream = store.key(partition, 'stream', streamHash(store, name));
  const seen = { rows: 0, blocks: 0, bytes: 0 };
  const backwards = asked.order === 'newest_first';
  let { start, end } = asked;
  // The block with the last row of the page before may have further rows.
  const { at, seq } = placeOf(start.slice(1));
  const reads = asked.beyond === null || backwards ? [] : [blockAt(stream, at, seq)];
  for (;;) {
    const wanted = asked.filter.kinds === null ? asked.first + 1 - seen.rows : Infinity;
    const count = batchOf(wanted, seen);
    const [command, from, to] = backwards ? (['XREVRANGE', end, start] as const) : (['XRANGE', start, end] as const);
    const replies = await store.read([...reads.splice(0), [command, stream, from, to, 'COUNT', count]]);
    const blocks = replies.flatMap((reply) => decodeBlocks(name, reply));
    for (const block of blocks) {
      const rows = shownOf(block, asked);
      yield* backwards ? rows.toReversed() : rows;
      seen.blocks++;
      seen.rows += rows.length;
      seen.bytes += bytesOf(block);
    }
    const last = blocks.at(-1);
    if (!last || listOf(replies.at(-1)).length < count) return;
    if (backwards) end = `(${last.entryId}`;
    else start = `(${last.entryId}`;
  }
}

function shownOf({ rows }: Block, { least, beyond, order }: Asked): readonly StoredMessage[] {
  return rows.filter(({ message: { seq } }) => {
    if (seq < least) return false;
    return beyond === null || (order === 'newest_first' ? seq < beyond : seq > beyond);
  });
}

type Seen = { rows: number; blocks: number; bytes: number };

/** Returns how many blocks to read next for this many more rows, by the blocks read so far. At least one. */
function batchOf(wanted: number, { rows, blocks, bytes }: Seen): number {
  if (blocks === 0) return FIRST_BATCH;
  const needed = Math.ceil(wanted / Math.max(1, rows / blocks));
  const fitting = Math.floor((BATCH_BYTES * blocks) / Math.max(1, bytes));
  return Math.max(1, Math.min(needed, fitting, BATCH));
}

function bytesOf({ rows }: Block): number {
  return rows.reduce((sum, { message }) => sum + (message.payload === null ? 0 : message.payloadBytes), 0);
}

/** Fills one page. Ends it early once SCAN_BUDGET rows or PAGE_READ_BYTES of payloads were read. */
async function takePage(
  stored: AsyncIterable<StoredMessage> | Iterable<StoredMessage>,
  { kinds }: MessageFilter,
  { first }: PageRequest,
): Promise<Pick<Scan<Message>, 'rows' | 'next'>> {
  const rows: Found[] = [];
  const seen = { rows: 0, bytes: 0 };
  let last: Position | null = null;
  for await (const { message } of stored) {
    const full = rows.length === first || seen.rows === SCAN_BUDGET || seen.bytes >= PAGE_READ_BYTES;
    if (full) return { rows, next: last };
    seen.rows++;
    if (message.payload !== null) seen.bytes += message.payloadBytes;
    last = [sortable(message.seq), sortable(message.at)];
    if (kinds === null || kinds.includes(message.kind)) rows.push({ row: message, position: last });
  }
  return { rows, next: null };
}
