/** Core's HistoryStore in one process: retention, pages and samples. */
import type { Clock } from '../../core/clock.ts';
import type { Message, NewMessage } from '../../core/history/message.ts';
import type {
  HistoryStore,
  IngestResult,
  IngestedMessage,
  MessageFilter,
  MessagePage,
  StreamSummary,
} from '../../core/history/store.ts';
import {
  comparePositions,
  scanSorted,
  sortable,
  type EvidenceSource,
  type ObservedSource,
  type Position,
  type Scan,
} from '../../core/page.ts';
import { SHARE_BOUNDS } from '../../core/shares/bounds.ts';
import { createShares, type Shares } from '../../core/shares/shares.ts';
import { silentLog } from '../../core/log.ts';
import { createMemoryDedup, type MemoryDedup } from './dedup.ts';
import type { About, MessagePart } from './history-command-row.ts';
import type { Row } from './history-row.ts';
import { sampleRows } from './history-sample.ts';
import {
  createRows,
  HISTORY_LIMITS,
  lengthOf,
  rowAt,
  rowsOfCommand,
  type HistoryLimits,
  type Rows,
  type Stream,
  type Totals,
} from './history-rows.ts';
import { lowerBound } from './sorted.ts';

export type { HistoryLimits } from './history-rows.ts';

export type MemoryHistoryOptions = {
  readonly clock: Clock;
  readonly limits?: Partial<HistoryLimits> | undefined;
  /** The deduplicator, shared with the acts that record ends of commands; a separate one if absent. */
  readonly dedup?: MemoryDedup;
  /** What each user holds of the shares; a separate table if absent. */
  readonly shares?: Shares;
};

/** The port, retaining in the same tick, so that an act on a command can retain its messages within the act. */
export interface MemoryHistory extends HistoryStore {
  /**
   * The messages' `at` never decreases over all streams: if the clock goes back, `at` stays the same until the clock
   * has caught up.
   */
  retain(message: NewMessage): Message;
  /**
   * As `retain`, for a message about a command and without an answer: no Message object is made before the first read.
   */
  keep(about: About, part: MessagePart, now: number): void;
  ingest(message: IngestedMessage): IngestResult;
  /** What is held now, and what was dropped for lack of room since the start. */
  totals(): Readonly<Totals>;
}

/**
 * History of one process. Every method first drops expired messages (each message once), so that no answer shows or
 * counts them. What the bounds on bytes and on a user's streams dropped is a gap `evicted` for as long as it would have
 * been shown.
 */
export function createMemoryHistory({ clock, limits: given, dedup, shares }: MemoryHistoryOptions): MemoryHistory {
  const limits: HistoryLimits = { ...HISTORY_LIMITS, ...given };
  const { bytes } = limits;
  const guarantee = Math.min(SHARE_BOUNDS.history_bytes.guarantee, bytes);
  const held = shares ?? createShares({ history_bytes: { guarantee, total: bytes } });
  const rows = createRows(limits, held);
  const marks = dedup ?? createMemoryDedup({ clock, shares: held, log: silentLog });
  let lastAt = 0;

  /** The time of a new row, after expired rows were dropped. */
  const next = (now: number): number => {
    lastAt = Math.max(lastAt, now);
    rows.expire(lastAt - limits.retentionMs);
    return lastAt;
  };
  /** The present rows, and a function that makes the gap for their evictions. */
  const look = (): { readonly rows: Rows; gaps(source: EvidenceSource, droppedAt: number): ObservedSource[] } => {
    const now = clock.now();
    const before = now - limits.retentionMs;
    rows.expire(before);
    return { rows, gaps: (source, droppedAt) => (droppedAt > before ? [evicted(source, now)] : []) };
  };

  return {
    retentionMs: limits.retentionMs,
    retain: (message) => rows.add(message, next(clock.now())).message,
    keep: (about, part, now) => rows.addOfCommand(about, part, next(now)),
    ingest(message) {
      const { userId, clientId, id: messageId } = message;
      const first = marks.see({ userId, clientId, messageId });
      return first
        ? { kind: 'retained', message: rows.add(message, next(clock.now())).message }
        : { kind: 'duplicate', messageId };
    },
    totals: () => rows.totals,
    streams(userId, prefix, page) {
      const { gaps } = look();
      const scan = scanSorted(streamsOf(rows, userId, { prefix, after: page.after }), page, ({ suffix }) => [suffix]);
      return { ...scan, gaps: gaps('streams', rows.evictions.wholeStreamAt(userId)) };
    },
    ofUsers(userIds, first) {
      const { gaps } = look();
      return userIds.map((userId) => ({
        total: rows.users.get(userId)?.streams.size ?? 0,
        rows: [...streamsOf(rows, userId, { prefix: null, after: null }).take(first)],
        gaps: gaps('streams', rows.evictions.wholeStreamAt(userId)),
      }));
    },
    messages(userId, suffix, filter, page) {
      const { gaps } = look();
      const stream = rows.users.get(userId)?.streams.get(suffix);
      const missing = gaps('messages', stream ? stream.evictedAt : rows.evictions.wholeStreamAt(userId));
      if (stream) return { ...scanMessages(stream, filter, page), gaps: missing };
      // The stream may have been dropped completely, so answering that it does not exist would claim more than is
      // known.
      return missing.length > 0 ? { rows: [], next: null, gaps: missing } : null;
    },
    ofCommand(userId, commandId, page) {
      const { gaps } = look();
      const user = rows.users.get(userId);
      const found = (user ? rowsOfCommand(user, commandId) : []).map(({ message }) => message);
      const sign = page.order === 'newest_first' ? -1 : 1;
      const compare = (a: Position, b: Position): number => sign * comparePositions(a, b);
      const after = found
        .filter((message) => page.after === null || compare(timePosition(message), page.after) > 0)
        .sort((a, b) => compare(timePosition(a), timePosition(b)));
      return { ...scanSorted(after, page, timePosition), gaps: gaps('messages', rows.evictions.droppedAt(userId)) };
    },
    sample(of, bounds) {
      const { gaps } = look();
      const stream = of && rows.users.get(of.userId)?.streams.get(of.suffix);
      if (of && !stream) return null;
      const droppedAt = stream ? stream.evictedAt : rows.evictions.anyDroppedAt();
      return { ...sampleRows(stream ? newestOf(stream) : rows.newest(), bounds), gaps: gaps('messages', droppedAt) };
    },
    users(page) {
      const { gaps } = look();
      const users = rows.users.values({ after: page.after?.[0] ?? null });
      const counts = users.map(({ userId, streams }) => ({ userId, count: streams.size }));
      const scan = scanSorted(counts, page, ({ userId }) => [userId]);
      return { ...scan, gaps: gaps('streams', rows.evictions.anyWholeStreamAt()) };
    },
  };
}

function* newestOf(stream: Stream): Generator<Row> {
  for (let index = stream.rows.length - 1; index >= stream.head; index--) {
    const row = stream.rows[index];
    if (row) yield row;
  }
}

type StreamRange = { readonly prefix: string | null; readonly after: Position | null };

function* streamsOf(rows: Rows, userId: string, { prefix, after }: StreamRange): Generator<StreamSummary> {
  const streams = rows.users.get(userId)?.streams;
  if (!streams) return;
  for (const stream of streams.values({ after: after?.[0] ?? null, from: prefix })) {
    if (!stream.suffix.startsWith(prefix ?? '')) return;
    const messageCount = lengthOf(stream);
    const firstAt = rowAt(stream, 0)?.at ?? null;
    const lastAt = rowAt(stream, messageCount - 1)?.at ?? null;
    yield { userId, suffix: stream.suffix, messageCount, firstAt, lastAt };
  }
}

function scanMessages(stream: Stream, filter: MessageFilter, page: MessagePage): Scan<Message> {
  const keep = ({ kind }: Message): boolean => filter.kinds === null || filter.kinds.includes(kind);
  return scanSorted(messagesIn(stream, filter, page), page, ({ seq }) => [sortable(seq)], keep);
}

/**
 * Messages within the time bounds and behind the position. Order by time and by `seq` agree within a stream, so each
 * end is found by binary search.
 */
function* messagesIn(stream: Stream, { afterTime, beforeTime }: MessageFilter, page: MessagePage): Generator<Message> {
  const length = lengthOf(stream);
  const leading = (holds: (row: Row) => boolean): number =>
    lowerBound(length, (index) => {
      const row = rowAt(stream, index);
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
    const row = rowAt(stream, backwards ? end - 1 - i : start + i);
    if (row) yield row.message;
  }
}

function timePosition({ at, suffix, seq }: Message): Position {
  return [sortable(at), suffix, sortable(seq)];
}

function evicted(source: EvidenceSource, asOf: number): ObservedSource {
  return { source, nodeId: null, complete: false, observed: 0, limit: null, reason: 'evicted', asOf };
}
