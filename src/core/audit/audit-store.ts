/** The port of the audit: a chain of rows that only grows at its end, and is trimmed at its beginning. */
import type { MaybePromise } from '../maybe-promise.ts';
import type { SealedRow } from './audit-rows.ts';

/** The newest row of the chain. `seq` 0 and an empty MAC: the chain has no rows. */
export type AuditHead = { readonly seq: number; readonly mac: string };

/**
 * The part of the chain that is kept. `count` is the number of its rows. `firstSeq` and `firstAt` are the number and
 * the time of its oldest row; null if there are no rows.
 */
export type AuditExtent = {
  readonly count: number;
  readonly firstSeq: number | null;
  readonly firstAt: number | null;
};

export type AuditAppend = {
  readonly sealed: SealedRow;
  /**
   * The last row number to remove when the new row is appended: that row and all before it are removed in the same act.
   * Null: none is removed.
   */
  readonly dropThrough: number | null;
  /**
   * Limits how often one principal acts. The row of an act is refused if its `who` already has `limit` rows of the same
   * action within `windowMs`. Null: no limit.
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
  /**
   * Appends a row if its `prev` and `seq` follow the newest row. When this resolves, the row is as durable as the
   * store.
   */
  append(append: AuditAppend): MaybePromise<AppendResult>;
  /**
   * Lists at most `first` rows of acts, newest first, with numbers below `before` (null: from the newest on). `userId`:
   * only acts that concern this user; null: all.
   */
  list(
    userId: string | null,
    page: { readonly before: number | null; readonly first: number },
  ): MaybePromise<readonly ListedAct[]>;
  /** Returns the stored lines of at most `first` rows whose numbers are above `after`, in order. */
  lines(after: number, first: number): MaybePromise<readonly string[]>;
  close?(): MaybePromise<void>;
}
