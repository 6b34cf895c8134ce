/** Core's HistoryStore in memory: retains messages, and reads pages and samples of them. */
import type { CommandMessage } from '../../core/commands/transaction.ts';
import { CallboardError } from '../../core/errors.ts';
import { Sampling } from '../../core/history/raw-sample.ts';
import {
  LINK_STREAM,
  type HistoryStore,
  type IngestResult,
  type IngestedMessage,
  type Message,
  type MessageFilter,
  type MessagePage,
  type NewMessage,
  type RawSample,
  type SampleBounds,
  type StreamSummary,
} from '../../core/history/message.ts';
import { trustJson, type JsonText } from '../../core/json.ts';
import { LINK_BYTES, LINK_MESSAGES } from '../../core/limits.ts';
import type { EvidenceSource, ObservedSource } from '../../core/completeness.ts';
import { comparePositions, scanSorted, sortable, type Position, type Scan } from '../../core/page.ts';
import { silentLog, type Clock } from '../../core/ports.ts';
import { SHARE_BOUNDS } from '../../core/shares/share-bounds.ts';
import { createShares, type Shares } from '../../core/shares/shares.ts';
import { lowerBound } from './sorted-map.ts';
import { createEvidence, type EvidenceKinds } from './evidence.ts';
import { createMemoryDedup, type MemoryDedup } from './dedup.ts';
import type { CommandRows, Row, Stream } from './history-row.ts';
import { HISTORY_LIMITS, Rows, rowsOfCommand, type RowDrops, type RowLimits, type Totals } from './history-rows.ts';

type MemoryHistoryOptions = {
  readonly clock: Clock;
  readonly limits?: Partial<TableLimits> | undefined;
  /** The deduplicator, shared with the acts that record ends of commands. If absent, the store creates its own. */
  readonly dedup?: MemoryDedup;
  /** The holdings of users. If absent, the store creates its own. */
  readonly shares?: Shares;
  /** The evidence of the process. If absent, the tables of this store are the only evidence of their kind. */
  readonly evidence?: Pick<EvidenceKinds, 'messages' | 'links'>;
  /** Receives the rows that are dropped for lack of room. */
  readonly drops?: RowDrops;
};

/**
 * Core's HistoryStore, with methods that retain a message in the same tick, so that an act on a command can retain its
 * messages before it returns.
 */
export interface MemoryHistory extends HistoryStore {
  /**
   * Retains a message. The time `at` never decreases from one message to the next, over all streams. If the clock goes
   * back, `at` stays the same until the clock has caught up.
   */
  retain(message: NewMessage): Message;
  /**
   * Retains a message about a command, and returns the number of its row. The Message object is created only when the
   * message is first read. `seq`: as for `Rows.add`.
   */
  keep(rows: CommandRows, part: CommandMessage, now: number, seq?: number): number | null;
  /** Retains a message without creating its Message object. `seq`: as for `Rows.add`. */
  keepRow(message: NewMessage, now?: number, seq?: number): Row | null;
  /** The time of the latest row, in epoch milliseconds. No later row gets an earlier time. */
  readonly lastAt: number;
  /** Sets `lastAt` to this time, unless it is later already. */
  advanceTo(at: number): void;
  /** The tables of rows, for a journal. `links` contains the link histories. */
  readonly tables: { readonly messages: Rows; readonly links: Rows };
  ingest(message: IngestedMessage): IngestResult;
  /**
   * Returns how much is held, including messages that expired since the last read, and how much was dropped for lack of
   * room since the start. Link histories are not included.
   */
  totals(): Readonly<Totals>;
}

/**
 * Creates the history of one process. Every method except `totals` first drops expired messages of the tables that it
 * uses, so that no answer shows or counts them. A message may be dropped early because of a limit on bytes or on a
 * user's streams. Answers then have a gap `evicted` for as long as the message would have been shown.
 */
export function createMemoryHistory({
  clock,
  limits: given,
  dedup,
  shares,
  evidence,
  drops,
}: MemoryHistoryOptions): MemoryHistory {
  const limits: TableLimits = { ...TABLE_LIMITS, ...given };
  const kinds = evidence ?? createEvidence(shares ?? sharesOf(limits.bytes), limits.linkBytes);
  const tables = createTables(limits, kinds, drops);
  const { messages } = tables;
  const marks = dedup ?? createMemoryDedup({ clock, shares: shares ?? createShares(), log: silentLog });
  let lastAt = 0;

  /** Drops expired rows of a table. Returns the time for its next row. */
  const next = (rows: Rows, now: number): number => {
    lastAt = Math.max(lastAt, now);
    rows.expire(lastAt - limits.retentionMs);
    return lastAt;
  };
  const keepRow = (message: NewMessage, now = clock.now(), seq?: number): Row | null => {
    const rows = tables.of(message.suffix);
    return rows.add(message, next(rows, now), seq);
  };
  const retain = (message: NewMessage): Message => {
    const row = keepRow(message);
    // `add` returns null only for a row whose number was given.
    if (!row) throw new CallboardError('internal', 'a message without a number was not retained');
    return row.message;
  };
  /** Drops expired rows, and returns `gaps`, which returns the gap of an answer that may lack evicted rows. */
  const look = (): { gaps(source: EvidenceSource, droppedAt: number): ObservedSource[] } => {
    const now = clock.now();
    const before = now - limits.retentionMs;
    tables.expire(before);
    return { gaps: (source, droppedAt) => (droppedAt > before ? [evicted(source, now)] : []) };
  };

  return {
    retentionMs: limits.retentionMs,
    retain,
    keepRow,
    keep: (rows, part, now, seq) => messages.addOfCommand(rows, part, next(messages, now), seq),
    tables,
    get lastAt() {
      return lastAt;
    },
    advanceTo(at) {
      lastAt = Math.max(lastAt, at);
    },
    ingest(message) {
      const { userId, clientId, id: messageId } = message;
      const first = marks.see({ userId, clientId, messageId });
      return first ? { kind: 'retained', message: retain(message) } : { kind: 'duplicate', messageId };
    },
    totals: () => messages.totals,
    streams(userId, prefix, page) {
      const { gaps } = look();
      const streams = streamsOf(messages, userId, { prefix, after: page.after });
      const scan = scanSorted(streams, page, ({ suffix }) => [suffix]);
      return { ...scan, gaps: gaps('streams', messages.evictions.wholeStreamAt(userId)) };
    },
    ofUsers(userIds, first) {
      const { gaps } = look();
      return userIds.map((userId) => ({
        total: messages.users.get(userId)?.streams.size ?? 0,
        rows: [...streamsOf(messages, userId, { prefix: null, after: null }).take(first)],
        gaps: gaps('streams', messages.evictions.wholeStreamAt(userId)),
      }));
    },
    messages(userId, suffix, filter, page) {
      const { gaps } = look();
      const stream = tables.stream(userId, suffix);
      const { evictions } = tables.of(suffix);
      const missing = gaps('messages', stream ? stream.evictedAt : evictions.wholeStreamAt(userId));
      if (stream) return { ...scanMessages(stream, filter, page), gaps: missing };
      // The stream may have existed and been dropped completely, so the answer has a gap instead of "not found".
      return missing.length > 0 ? { rows: [], next: null, gaps: missing } : null;
    },
    ofCommand(userId, commandId, page) {
      const { gaps } = look();
      const user = messages.users.get(userId);
      const found = (user ? rowsOfCommand(user, commandId) : []).map(({ message }) => message);
      const sign = page.order === 'newest_first' ? -1 : 1;
      const compare = (a: Position, b: Position): number => sign * comparePositions(a, b);
      const after = found
        .filter((message) => page.after === null || compare(timePosition(message), page.after) > 0)
        .sort((a, b) => compare(timePosition(a), timePosition(b)));
      return { ...scanSorted(after, page, timePosition), gaps: gaps('messages', messages.evictions.droppedAt(userId)) };
    },
    sample(of, bounds) {
      const { gaps } = look();
      const stream = of && tables.stream(of.userId, of.suffix);
      if (of && !stream) return null;
      const droppedAt = stream ? stream.evictedAt : messages.evictions.anyDroppedAt();
      return {
        ...sampleRows(stream ? newestOf(stream) : messages.byAge.newest(), bounds),
        gaps: gaps('messages', droppedAt),
      };
    },
    users(page) {
      const { gaps } = look();
      const users = messages.users
        .values({ after: page.after?.[0] ?? null })
        .map(({ userId, streams }) => ({ userId, count: streams.size }));
      const scan = scanSorted(users, page, ({ userId }) => [userId]);
      return { ...scan, gaps: gaps('streams', messages.evictions.anyWholeStreamAt()) };
    },
  };
}

function* newestOf(stream: Stream): Generator<Row> {
  for (let index = stream.length - 1; index >= 0; index--) {
    const row = stream.row(index);
    if (row) yield row;
  }
}

type StreamRange = { readonly prefix: string | null; readonly after: Position | null };

function* streamsOf(messages: Rows, userId: string, { prefix, after }: StreamRange): Generator<StreamSummary> {
  const streams = messages.users.get(userId)?.streams.values({ after: after?.[0] ?? null, from: prefix });
  for (const stream of streams ?? []) {
    if (!stream.suffix.startsWith(prefix ?? '')) return;
    const messageCount = stream.length;
    const firstAt = stream.row(0)?.at ?? null;
    const lastAt = stream.row(messageCount - 1)?.at ?? null;
    yield { userId, suffix: stream.suffix, messageCount, firstAt, lastAt };
  }
}

function scanMessages(stream: Stream, filter: MessageFilter, page: MessagePage): Scan<Message> {
  const keep = ({ kind }: Message): boolean => filter.kinds === null || filter.kinds.includes(kind);
  return scanSorted(messagesIn(stream, filter, page), page, ({ seq }) => [sortable(seq)], keep);
}

/**
 * Reads the messages of a stream that lie within the times of the filter and after the position of the page. Within a
 * stream, the order by time is the order by `seq`, so both limits of the range are found by binary search.
 */
function* messagesIn(stream: Stream, { afterTime, beforeTime }: MessageFilter, page: MessagePage): Generator<Message> {
  const { length } = stream;
  const leading = (holds: (row: Row) => boolean): number =>
    lowerBound(length, (index) => {
      const row = stream.row(index);
      return row !== undefined && holds(row);
    });
  const [seq] = page.after ?? [];
  const backwards = page.order === 'newest_first';
  const start = Math.max(
    afterTime === null ? 0 : leading(({ at }) => at <= afterTime),
    seq === undefined || backwards ? 0 : leading((row) => sortable(row.seq) <= seq),
  );
  const end = Math.min(
    beforeTime === null ? length : leading(({ at }) => at < beforeTime),
    seq === undefined || !backwards ? length : leading((row) => sortable(row.seq) < seq),
  );
  for (let i = 0; i < end - start; i++) {
    const row = stream.row(backwards ? end - 1 - i : start + i);
    if (row) yield row.message;
  }
}

function timePosition({ at, suffix, seq }: Message): Position {
  return [sortable(at), suffix, sortable(seq)];
}

function evicted(source: EvidenceSource, asOf: number): ObservedSource {
  return { source, nodeId: null, complete: false, observed: 0, limit: null, reason: 'evicted', asOf };
}

// The retained rows of direct mode, in two tables with separate limits: messages, and link histories.

export type TableLimits = RowLimits & {
  /** The most rows of one user's link history. */
  readonly linkMessages: number;
  /** The most bytes of all link histories together. A row counts as many bytes as a message does in `bytes`. */
  readonly linkBytes: number;
};

const TABLE_LIMITS: TableLimits = { ...HISTORY_LIMITS, linkMessages: LINK_MESSAGES, linkBytes: LINK_BYTES };

/**
 * Creates the two tables of retained rows: messages, and the link histories of all users. They have no limit in common,
 * so no message is dropped because many links open and end. A link history can be read by its name, but is neither
 * listed nor counted among the streams of its user.
 */
function createTables(
  limits: TableLimits,
  evidence: Pick<EvidenceKinds, 'messages' | 'links'>,
  drops: RowDrops | undefined,
) {
  const { linkBytes, linkMessages, retentionMs } = limits;
  const messages = new Rows(limits, evidence.messages, drops);
  const linkLimits = { streamMessages: linkMessages, retentionMs, bytes: linkBytes, streamsPerUser: 1 };
  const links = new Rows(linkLimits, evidence.links, drops);
  const both = [messages, links];
  /** Returns the table that holds the stream with this suffix. */
  const of = (suffix: string): Rows => (suffix === LINK_STREAM ? links : messages);
  return {
    messages,
    links,
    of,
    stream: (userId: string, suffix: string) => of(suffix).users.get(userId)?.streams.get(suffix),
    /** Drops the rows of both tables that were retained at `before` or earlier. */
    expire: (before: number) => both.forEach((rows) => rows.expire(before)),
  };
}

function sharesOf(total: number): Shares {
  return createShares({ history_bytes: { guarantee: Math.min(SHARE_BOUNDS.history_bytes.guarantee, total), total } });
}

/** Takes rows from the start until the bounds are reached, for the raw view of the history. */
function sampleRows(rows: Iterable<Row>, bounds: SampleBounds): Omit<RawSample, 'gaps'> {
  const sampling = new Sampling(bounds);
  for (const row of rows) if (!sampling.offer(row.message, () => storedOf(row))) break;
  return sampling.sample;
}

/** Writes all members of a row as JSON, with the number of bytes that the row counts for in history. */
function storedOf({ message, bytes }: Row): JsonText {
  const { payload, ...members } = message;
  const shown = JSON.stringify({ adapter: 'memory', rowBytes: bytes, ...members });
  return trustJson(`${shown.slice(0, -1)},"payload":${payload ?? 'null'}}`);
}
