/** The port of the audit: a chain of rows that only grows at its end, and is trimmed at its beginning. */
import type { MaybePromise } from '../maybe-promise.ts';
import type { SealedRow } from './row.ts';

/** The newest row of the chain. `seq` 0 and an empty MAC: the chain has no rows. */
export type AuditHead = { readonly seq: number; readonly mac: string };

/** The kept rows: `count` of them, of which the oldest has this number and time; both are null if there are none. */
export type AuditExtent = {
  readonly count: number;
  readonly firstSeq: number | null;
  readonly firstAt: number | null;
};

export type AuditAppend = {
  readonly sealed: SealedRow;
  /** Removes every row up to this number in the same act; null: none. */
  readonly dropThrough: number | null;
  /**
   * Refuses the row of an act if its `who` already has this many rows of the same action within the time; null: no
   * limit.
   */
  readonly rate: AuditRate | null;
};
export type AuditRate = { readonly limit: number; readonly windowMs: number };

export type AppendResult =
  | { readonly kind: 'appended'; readonly extent: AuditExtent }
  /** The newest row is not the predecessor that the new row names. Nothing was written. */
  | { readonly kind: 'moved'; readonly head: AuditHead }
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

/** The row of an act, and the row of its outcome if there is one, as they are stored. */
export type ListedAct = { readonly seq: number; readonly act: string; readonly outcome: string | null };

/**
 * The rows of one chain. Appending is atomic, also between processes, so the chain never forks. Throws
 * `store_unavailable` if the store does not answer; the row may then have been written or not.
 */
export interface AuditStore {
  /** The unfinished last row that was removed when the store was opened; null or absent: there was none. */
  readonly torn?: { readonly bytes: number; readonly sha256: string } | null;
  head(): MaybePromise<AuditHead>;
  /** Appends a row if its `prev` and `seq` follow the newest row. It is durable when this resolves. */
  append(append: AuditAppend): MaybePromise<AppendResult>;
  /**
   * At most `first` rows of acts, newest first, with numbers below `before` (null: from the newest on). `userId`: only
   * acts that concern this user; null: all.
   */
  list(
    userId: string | null,
    page: { readonly before: number | null; readonly first: number },
  ): MaybePromise<readonly ListedAct[]>;
  /** The stored lines of rows after this number, in order, at most `first`. */
  lines(after: number, first: number): MaybePromise<readonly string[]>;
  close?(): MaybePromise<void>;
}
