/** Holds the retained rows of direct mode in two tables with separate limits: messages, and link histories. */
import { LINK_STREAM } from '../../core/history/message.ts';
import { LINK_BYTES, LINK_BYTES_GUARANTEE, LINK_MESSAGES } from '../../core/limits.ts';
import { SHARE_BOUNDS } from '../../core/shares/bounds.ts';
import { createShares, type Shares } from '../../core/shares/shares.ts';
import { createRows, HISTORY_LIMITS, type RowLimits, type Rows, type Stream } from './history-rows.ts';

export type TableLimits = RowLimits & {
  /** The most rows of one user's link history. */
  readonly linkMessages: number;
  /** The most bytes of all link histories together. Each row counts as a message does for `bytes`. */
  readonly linkBytes: number;
};

export const TABLE_LIMITS: TableLimits = { ...HISTORY_LIMITS, linkMessages: LINK_MESSAGES, linkBytes: LINK_BYTES };

/**
 * The two tables of retained rows: messages, and the link histories of all users. They have no limit in common, so no
 * message is dropped because many links open and end. A link history is read by its name. It is neither listed nor
 * counted among the streams of its user.
 */
export interface Tables {
  readonly messages: Rows;
  /** Returns the table that holds the stream with this suffix. */
  of(suffix: string): Rows;
  stream(userId: string, suffix: string): Stream | undefined;
  /** Drops the rows of both tables that were retained at `before` or earlier. */
  expire(before: number): void;
}

/**
 * Creates the two tables. `shares` counts the bytes that the messages of each user take. Link histories have a table of
 * shares of their own.
 */
export function createTables(limits: TableLimits, shares: Shares | undefined): Tables {
  const { bytes, linkBytes, linkMessages, retentionMs } = limits;
  const messages = createRows(limits, shares ?? sharesOf(SHARE_BOUNDS.history_bytes.guarantee, bytes));
  const linkLimits = { streamMessages: linkMessages, retentionMs, bytes: linkBytes, streamsPerUser: 1 };
  const links = createRows(linkLimits, sharesOf(LINK_BYTES_GUARANTEE, linkBytes));
  const both = [messages, links];
  const of = (suffix: string): Rows => (suffix === LINK_STREAM ? links : messages);
  return {
    messages,
    of,
    stream: (userId, suffix) => of(suffix).users.get(userId)?.streams.get(suffix),
    expire: (before) => both.forEach((rows) => rows.expire(before)),
  };
}

function sharesOf(guarantee: number, total: number): Shares {
  return createShares({ history_bytes: { guarantee: Math.min(guarantee, total), total } });
}
