/** Reads pages of messages from Redis: the messages of a stream, or those about one command. */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import {
  LINK_STREAM,
  type Message,
  type HistoryStore,
  type MessageFilter,
  type MessagePage,
} from '../../core/history/message.ts';
import { PAGE_READ_BYTES } from '../../core/limits.ts';
import type { ObservedSource } from '../../core/completeness.ts';
import { SCAN_BUDGET, sortable, type Position, type Scan } from '../../core/page.ts';
import {
  decodeBlocks,
  decodeRows,
  gapsOf,
  headOf,
  leastSeq,
  mayHaveKind,
  placeOf,
  rawBlocks,
  streamHash,
  type HistoryDeps,
  type RawBlock,
  type StreamName,
} from './history-rows.ts';
import { listOf, textOr, type ReadCommand, type Reply } from './replies.ts';

/** The most blocks that one read gets. A block has up to 64 rows, and up to 32 KiB if it has several. */
const BATCH = 256;
/** The most blocks in the first read of a page. Their rows and bytes decide how many the next reads get. */
const FIRST_BATCH = 2;
/** A read gets at most this many times as many blocks as the read before it, because later blocks may be larger. */
const GROWTH = 8;
/**
 * The number of rows and bytes that each later read should return. Redis and this process each need about 2 ms for such
 * a read, and are blocked in this time.
 */
const BATCH_ROWS = 1024;
const BATCH_BYTES = 1024 * 1024;
/** After this many rows of one reply, other work of this process may run before the next rows are decoded. */
const TURN_ROWS = 1024;

/**
 * Creates the reads of the messages of a stream and of a command. They use plain Redis commands, so that no script runs
 * long for a large page.
 */
export function createMessageReads(deps: HistoryDeps): Pick<HistoryStore, 'messages' | 'ofCommand'> {
  return {
    async messages(userId, suffix, filter, page) {
      const { exists, now, droppedAt, least } = await lookAt(deps, { userId, suffix });
      const gaps = gapsOf(deps, { source: 'messages', now }, droppedAt);
      // A gap means that streams were dropped to make room. This stream may be one of them, so the answer is an
      // incomplete page and not "no such stream".
      if (!exists) return gaps.length > 0 ? { rows: [], next: null, gaps } : null;
      const range = rangeOf(filter, page, now - deps.retentionMs);
      if (range === null) return { rows: [], next: null, gaps };
      return { ...(await scanStream(deps, { userId, suffix }, { ...range, filter, page, least })), gaps };
    },
    ofCommand: (userId, commandId, page) => scanCommand(deps, { userId, commandId }, page),
  };
}

type Look = {
  readonly exists: boolean;
  readonly now: number;
  /** The time of the newest row that was dropped to make room; 0 for none. */
  readonly droppedAt: number;
  /** The least `seq` that is shown. */
  readonly least: number;
};

/** Reads which rows of a stream are shown. */
export async function lookAt(deps: HistoryDeps, name: StreamName): Promise<Look> {
  const { store, clock, retentionMs } = deps;
  const partition = store.partitionOfUser(name.userId);
  const [text, evictedAt] = await store.read([
    ['HGET', store.key(partition, 'streamheads', store.hash(name.userId)), streamHash(store, name)],
    ['ZSCORE', store.key(partition, 'evicted'), name.userId],
  ]);
  const now = clock.now();
  const found = headOf(text);
  const head = found && found.at + retentionMs > now ? found : null;
  // Rows of a link history are never dropped to make room.
  const droppedAt = name.suffix === LINK_STREAM ? 0 : (head?.evictedAt ?? Number(evictedAt ?? 0));
  return { now, exists: head !== null, droppedAt, least: leastSeq(deps, name, head?.seq ?? 0) };
}

/**
 * The range of block ids that a page reads. `beyond`: the `seq` of the last row of the page before; the block that
 * contains this row may have more rows.
 */
type Range = { readonly start: string; readonly end: string; readonly beyond: number | null };

/**
 * Returns the range of a page; null if no message can be in it. A position consists of the `seq` and the time of a
 * message.
 */
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

/** Decodes a number that `sortable` encoded. */
function unsorted(text: string): number {
  return Number.parseInt(text, 36) || 0;
}

type PageQuery = Range & { readonly filter: MessageFilter; readonly page: MessagePage; readonly least: number };

/**
 * Reads blocks until the page is full. The page ends early once SCAN_BUDGET rows, or PAGE_READ_BYTES of payloads, were
 * read. With a filter of kinds, the text of whole blocks counts instead of the payloads.
 */
async function scanStream(
  { store }: HistoryDeps,
  name: StreamName,
  asked: PageQuery,
): Promise<Pick<Scan<Message>, 'rows' | 'next' | 'cut'>> {
  const stream = store.key(store.partitionOfUser(name.userId), 'stream', streamHash(store, name));
  const taking = new PageBuilder(name, asked);
  const seen = { rows: 0, blocks: 0, bytes: 0 };
  const backwards = asked.page.order === 'newest_first';
  let { start, end } = asked;
  // The block that contains the last row of the page before may have more rows.
  const { at, seq } = placeOf(start.slice(1));
  const reads = asked.beyond === null || backwards ? [] : [blockAt(stream, at, seq)];
  for (let count = FIRST_BATCH; ; count = batchOf(taking.wanted, seen, count)) {
    asked.page.reading?.check();
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

type ReadTotals = { readonly rows: number; readonly blocks: number; readonly bytes: number };

/** Estimates, from the blocks read so far, how many blocks to read next to get `wanted` rows. At least one. */
function batchOf(wanted: number, { rows, blocks, bytes }: ReadTotals, before: number): number {
  const needed = Math.ceil(Math.min(wanted, BATCH_ROWS) / Math.max(1, rows / Math.max(1, blocks)));
  const fitting = Math.floor((BATCH_BYTES * blocks) / Math.max(1, bytes));
  return Math.max(1, Math.min(needed, fitting, before * GROWTH, BATCH));
}

type PageRow = { readonly row: Message; readonly position: Position };

/** Collects the rows of a page from blocks, in the order of the page. */
class PageBuilder {
  readonly rows: PageRow[] = [];
  readonly #name: StreamName;
  readonly #asked: PageQuery;
  #scanned = 0;
  #bytes = 0;
  #last: { readonly seq: number; readonly at: number } | null = null;

  constructor(name: StreamName, asked: PageQuery) {
    this.#name = name;
    this.#asked = asked;
  }

  /** The number of rows still to read: enough to fill the page, and one more to know whether another page follows. */
  get wanted(): number {
    const { page, filter } = this.#asked;
    return filter.kinds === null ? page.first + 1 - this.#scanned : Infinity;
  }

  /** Returns the page with the position of the next page. */
  page(): Pick<Scan<Message>, 'rows' | 'next' | 'cut'> {
    const next = this.#last && [sortable(this.#last.seq), sortable(this.#last.at)];
    const cut = this.#scanned === SCAN_BUDGET && this.rows.length < this.#asked.page.first;
    return { rows: this.rows, next, ...(cut && { cut }) };
  }

  /** Adds those rows of a block that are shown. Returns false if the page becomes full before all of them are added. */
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

  /** Counts the rows that the filter excludes, without decoding them. */
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

  /** Returns the range of rows of a block that the page may show, as indexes in the block; `to` is excluded. */
  #shownOf({ seq, rows }: RawBlock): { readonly from: number; readonly to: number } {
    const { least, beyond, page } = this.#asked;
    const backwards = page.order === 'newest_first';
    const from = beyond === null || backwards ? least : Math.max(least, beyond + 1);
    const to = beyond !== null && backwards ? beyond - seq : rows;
    return { from: Math.max(0, from - seq), to: Math.min(rows, to) };
  }
}

/** The most messages that are read at once. For each message, Redis sends the whole block that contains it. */
const PLACES_BATCH = 32;

type CommandName = { readonly userId: string; readonly commandId: string };
/** Where a message about a command is stored. `text`: the place in the form that the index uses. */
type Place = {
  readonly text: string;
  readonly suffix: string;
  readonly at: number;
  readonly seq: number;
  readonly position: Position;
};
type Index = { readonly places: readonly Place[]; readonly gaps: readonly ObservedSource[] };

/** Reads one page. Skips places whose stream no longer contains the message. */
async function scanCommand(deps: HistoryDeps, name: CommandName, page: MessagePage): Promise<Scan<Message>> {
  const rows: { readonly row: Message; readonly position: Position }[] = [];
  let after = page.after;
  let [scanned, bytes] = [0, 0];
  for (;;) {
    page.reading?.check();
    const count = Math.min(PLACES_BATCH, page.first - rows.length + 1);
    const { places, gaps } = await readIndex(deps, name, { first: count, after, order: page.order });
    const messages = await readPlaces(deps, name, places);
    for (const [i, { position }] of places.entries()) {
      const full = rows.length === page.first || scanned === SCAN_BUDGET || bytes >= PAGE_READ_BYTES;
      if (full) return { rows, next: after, gaps };
      after = position;
      scanned++;
      const row = messages[i];
      if (!row) continue;
      if (row.payload !== null) bytes += row.payloadBytes;
      rows.push({ row, position });
    }
    if (places.length < count) return { rows, next: null, gaps };
  }
}

/** The most places of a command outside the spans of its user (see lib-history-commands). */
const MORE_PLACES = 100_000;

async function readIndex(deps: HistoryDeps, { userId, commandId }: CommandName, page: MessagePage): Promise<Index> {
  const { store, clock, retentionMs } = deps;
  const partition = store.partitionOfUser(userId);
  const uh = store.hash(userId);
  const from = page.after && placeText(page.after);
  const backwards = page.order === 'newest_first';
  const now = clock.now();
  const oldest = String(Math.max(0, now - retentionMs + 1)).padStart(16, '0');
  const more = store.key(partition, 'cmdmore', uh, createHash('sha1').update(commandId).digest('hex'));
  const least = !backwards && from !== null && from > oldest ? `(${from}` : `[${oldest}`;
  const [spans, droppedAt, count, places] = await store.read([
    ['HGET', store.key(partition, 'streamheads', uh), 's'],
    ['ZSCORE', store.key(partition, 'evicted'), userId],
    ['ZCARD', more],
    backwards
      ? ['ZREVRANGEBYLEX', more, from === null ? '+' : `(${from}`, least, 'LIMIT', 0, page.first]
      : ['ZRANGEBYLEX', more, least, '+', 'LIMIT', 0, page.first],
  ]);
  const starts = (textOr(spans) ?? '').match(/\d+(?=:)/g) ?? [];
  const own = await store.read(starts.map((start) => ['HGET', store.key(partition, 'cmdrows', uh, start), commandId]));
  const few = own.flatMap(placesIn).filter((place) => place >= oldest);
  const gaps = gapsOf(deps, { source: 'messages', now }, droppedAt);
  // If the index of the command is full, it may lack the oldest messages. They are reported like messages that were
  // dropped to make room.
  if (Number(count) >= MORE_PLACES && gaps.length === 0) gaps.push(...gapsOf(deps, { source: 'messages', now }, now));
  return { places: picked([...few, ...listOf(places).map(String)], { from, backwards, first: page.first }), gaps };
}

/** Returns the places of a command in a span, each in the form of the ZSET of further places. */
function placesIn(text: Reply): readonly string[] {
  const fields = (textOr(text) ?? '').split('\0');
  return Array.from({ length: Math.floor(fields.length / 3) }, (_, i) => {
    const [at = '', suffix = '', seq = ''] = fields.slice(3 * i, 3 * i + 3);
    return `${at.padStart(16, '0')}\0${suffix}\0${seq.padStart(16, '0')}`;
  });
}

/** Returns the next places, in byte order of their texts. */
function picked(
  texts: readonly string[],
  { from, backwards, first }: { readonly from: string | null; readonly backwards: boolean; readonly first: number },
): readonly Place[] {
  const turn = backwards ? -1 : 1;
  const compare = (a: Buffer, b: Buffer): number => turn * Buffer.compare(a, b);
  const after = from === null ? null : Buffer.from(from);
  return texts
    .map((text) => Buffer.from(text))
    .filter((bytes) => after === null || compare(bytes, after) > 0)
    .sort(compare)
    .slice(0, first)
    .map((bytes) => placeIn(bytes.toString()));
}

function placeText([at = '', suffix = '', seq = '']: Position): string {
  const padded = (text: string): string => String(Number.parseInt(text, 36) || 0).padStart(16, '0');
  return `${padded(at)}\0${suffix}\0${padded(seq)}`;
}

function placeIn(text: string): Place {
  const [time = '', suffix = '', place = ''] = text.split('\0');
  const [at, seq] = [Number(time), Number(place)];
  return { text, suffix, at, seq, position: [sortable(at), suffix, sortable(seq)] };
}

/** Reads the message at each place; null if its stream no longer shows it. */
async function readPlaces(
  deps: HistoryDeps,
  { userId, commandId }: CommandName,
  places: readonly Place[],
): Promise<readonly (Message | null)[]> {
  const { store } = deps;
  const partition = store.partitionOfUser(userId);
  const hashes = [...new Set(places.map(({ suffix }) => streamHash(store, { userId, suffix })))];
  const heads: readonly ReadCommand[] =
    hashes.length === 0 ? [] : [['HMGET', store.key(partition, 'streamheads', store.hash(userId)), ...hashes]];
  const reads = places.map(({ suffix, at, seq }) =>
    blockAt(store.key(partition, 'stream', streamHash(store, { userId, suffix })), at, seq),
  );
  const [known, ...replies] = await store.read([...heads, ...reads]);
  const last = new Map(listOf(known).map((head, i) => [hashes[i] ?? '', headOf(head)?.seq ?? 0]));
  return places.map(({ suffix, seq }, i) => {
    const least = leastSeq(deps, { suffix }, last.get(streamHash(store, { userId, suffix })) ?? 0);
    if (seq < least) return null;
    const rows = decodeBlocks({ userId, suffix }, replies[i]).flatMap((block) => block.rows);
    const found = rows.find(({ message }) => message.seq === seq)?.message;
    return found?.commandId === commandId ? found : null;
  });
}

/**
 * Returns the command that reads the block with the row of this time and `seq`. If there is no such row, Redis answers
 * with another block of this time, or with none.
 */
function blockAt(stream: string, at: number, seq: number): ReadCommand {
  return ['XREVRANGE', stream, `${at}-${seq}`, at, 'COUNT', 1];
}
