/** Reads pages of the messages of a stream, or of a command, from Redis. */
import { setImmediate } from 'node:timers/promises';
import {
  LINK_STREAM,
  type HistoryStore,
  type Message,
  type MessageFilter,
  type MessagePage,
} from '../../../core/history/message.ts';
import { PAGE_READ_BYTES } from '../../../core/limits.ts';
import { checkStopped, SCAN_BUDGET, sortable, type Position, type Scan } from '../../../core/page.ts';
import { blockAt, scanCommand } from './places.ts';
import {
  decodeRows,
  gapsOf,
  leastSeq,
  mayHaveKind,
  placeOf,
  rawBlocks,
  streamHash,
  type HistoryParts,
  type RawBlock,
  type StreamName,
} from './rows.ts';
import { listOf } from '../types.ts';

/** The most blocks that one read gets. A block has up to 64 rows, and up to 32 KiB if it has several. */
const BATCH = 256;
/** The most blocks in the first read of a page. Their rows and bytes decide how many the next reads get. */
const FIRST_BATCH = 2;
/** A read gets at most this many times the blocks of the read before, because later blocks may be larger. */
const GROWTH = 8;
/**
 * The rows and the bytes that each later read should get: Redis and this process block while they handle a read, each
 * for about 2 ms.
 */
const BATCH_ROWS = 1024;
const BATCH_BYTES = 1024 * 1024;
/** After this many rows of one reply, other work of this process may run. */
const TURN_ROWS = 1024;

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
      if (range === null) return { rows: [], next: null, gaps };
      return { ...(await scanStream(parts, { userId, suffix }, { ...range, filter, page, least })), gaps };
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
  // A link history loses nothing when rows are dropped to make room.
  const isComplete = !droppedAt || name.suffix === LINK_STREAM;
  return { now: Number(now), exists: exists === 1, droppedAt: isComplete ? null : String(droppedAt), least };
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

type Asked = Range & { readonly filter: MessageFilter; readonly page: MessagePage; readonly least: number };

/**
 * Reads blocks until the page is full. The page ends early once SCAN_BUDGET rows or PAGE_READ_BYTES of payloads were
 * read; with a filter of kinds, the text of whole blocks counts instead of the payloads.
 */
async function scanStream(
  { store }: HistoryParts,
  name: StreamName,
  asked: Asked,
): Promise<Pick<Scan<Message>, 'rows' | 'next' | 'cut'>> {
  const stream = store.key(store.partitionOfUser(name.userId), 'stream', streamHash(store, name));
  const taking = new Taking(name, asked);
  const seen = { rows: 0, blocks: 0, bytes: 0 };
  const backwards = asked.page.order === 'newest_first';
  let { start, end } = asked;
  // The block with the last row of the page before may have further rows.
  const { at, seq } = placeOf(start.slice(1));
  const reads = asked.beyond === null || backwards ? [] : [blockAt(stream, at, seq)];
  for (let count = FIRST_BATCH; ; count = batchOf(taking.wanted, seen, count)) {
    checkStopped(asked.page);
    const [command, from, to] = backwards ? (['XREVRANGE', end, start] as const) : (['XRANGE', start, end] as const);
    const replies = await store.read([...reads.splice(0), [command, stream, from, to, 'COUNT', count]]);
    const blocks = replies.flatMap((reply) => rawBlocks(reply));
    let turn = 0;
    for (const block of blocks) {
      if (turn >= TURN_ROWS) {
        await setImmediate();
        turn = 0;
      }
      if (!taking.take(block)) return taking.page();
      turn += block.rows;
      seen.blocks++;
      seen.rows += block.rows;
      seen.bytes += block.text.length;
    }
    const last = blocks.at(-1);
    if (!last || listOf(replies.at(-1)).length < count) return { rows: taking.rows, next: null };
    if (backwards) end = `(${last.entryId}`;
    else start = `(${last.entryId}`;
  }
}

type Seen = { readonly rows: number; readonly blocks: number; readonly bytes: number };

/** Returns how many blocks to read next to get this many rows, estimated from the blocks read so far. At least one. */
function batchOf(wanted: number, { rows, blocks, bytes }: Seen, before: number): number {
  const needed = Math.ceil(Math.min(wanted, BATCH_ROWS) / Math.max(1, rows / Math.max(1, blocks)));
  const fitting = Math.floor((BATCH_BYTES * blocks) / Math.max(1, bytes));
  return Math.max(1, Math.min(needed, fitting, before * GROWTH, BATCH));
}

type Found = { readonly row: Message; readonly position: Position };

/** Takes rows of blocks into a page, in the order of the page. */
class Taking {
  readonly rows: Found[] = [];
  readonly #name: StreamName;
  readonly #asked: Asked;
  #scanned = 0;
  #bytes = 0;
  #last: { readonly seq: number; readonly at: number } | null = null;

  constructor(name: StreamName, asked: Asked) {
    this.#name = name;
    this.#asked = asked;
  }

  /** The number of rows to read until the page is full and one more is known, if any follows. */
  get wanted(): number {
    const { page, filter } = this.#asked;
    return filter.kinds === null ? page.first + 1 - this.#scanned : Infinity;
  }

  /** Returns a page after which more rows follow. */
  page(): Pick<Scan<Message>, 'rows' | 'next' | 'cut'> {
    const next = this.#last && [sortable(this.#last.seq), sortable(this.#last.at)];
    const cut = this.#scanned === SCAN_BUDGET && this.rows.length < this.#asked.page.first;
    return { rows: this.rows, next, ...(cut && { cut }) };
  }

  /** Takes the rows of a block that are shown. Returns false if the page is full before one of them. */
  take(block: RawBlock): boolean {
    const { filter, page } = this.#asked;
    const { from, to } = this.#shownOf(block);
    if (from >= to) return true;
    if (filter.kinds !== null && !mayHaveKind(block, filter.kinds)) return this.#skip(block, from, to);
    const backwards = page.order === 'newest_first';
    const found = decodeRows(this.#name, block, { from, to, kinds: filter.kinds });
    const upcoming = (backwards ? found.toReversed() : found).values();
    let next = upcoming.next().value;
    for (let i = 0; i < to - from; i++) {
      if (this.#full) return false;
      const seq = block.seq + (backwards ? to - 1 - i : from + i);
      this.#scanned++;
      this.#last = { seq, at: block.at };
      if (next?.message.seq !== seq) continue;
      const { message } = next;
      if (filter.kinds === null && message.payload !== null) this.#bytes += message.payloadBytes;
      this.rows.push({ row: message, position: [sortable(seq), sortable(message.at)] });
      next = upcoming.next().value;
    }
    if (filter.kinds !== null) this.#bytes += block.text.length;
    return true;
  }

  /** Counts rows that the filter leaves out, without decoding them. */
  #skip({ seq, at, text }: RawBlock, from: number, to: number): boolean {
    if (this.#full) return false;
    const most = Math.min(to - from, SCAN_BUDGET - this.#scanned);
    this.#scanned += most;
    this.#bytes += text.length;
    this.#last = { seq: seq + (this.#asked.page.order === 'newest_first' ? to - most : from + most - 1), at };
    return most === to - from;
  }

  get #full(): boolean {
    const { first } = this.#asked.page;
    return this.rows.length === first || this.#scanned === SCAN_BUDGET || this.#bytes >= PAGE_READ_BYTES;
  }

  /** The rows of a block that the page may show, counted from the first row of the block; `to` is excluded. */
  #shownOf({ seq, rows }: RawBlock): { readonly from: number; readonly to: number } {
    const { least, beyond, page } = this.#asked;
    const backwards = page.order === 'newest_first';
    const from = beyond === null || backwards ? least : Math.max(least, beyond + 1);
    const to = beyond !== null && backwards ? beyond - seq : rows;
    return { from: Math.max(0, from - seq), to: Math.min(rows, to) };
  }
}
