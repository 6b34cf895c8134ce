/** The storage port of the audit: a chain of rows that is extended at its end and trimmed at its beginning. */
import type { MaybePromise } from '../maybe-promise.ts';
import type { SealedRow } from './audit-rows.ts';

/** The newest row of the chain. If the chain has no rows, `seq` is 0 and `mac` is empty. */
export type AuditHead = { readonly seq: number; readonly mac: string };

/**
 * The stored part of the chain. `count`: the number of its rows. `firstSeq`, `firstAt`: the number and the time of its
 * oldest row; null if there are no rows.
 */
export type AuditExtent = {
  readonly count: number;
  readonly firstSeq: number | null;
  readonly firstAt: number | null;
};

export type AuditAppend = {
  readonly sealed: SealedRow;
  /**
   * The number of the last row to remove. This row and all rows before it are removed in the same act that appends the
   * new row. Null: no row is removed.
   */
  readonly dropThrough: number | null;
  /**
   * A limit for this principal (`who`) and action. If `who` has already `limit` rows of the same action within the last
   * `windowMs`, the new row is refused. Null: no limit.
   */
  readonly rate: AuditRate | null;
};
export type AuditRate = { readonly limit: number; readonly windowMs: number };

export type AppendResult =
  | { readonly kind: 'appended'; readonly extent: AuditExtent }
  /** The newest row is not the one that the new row names as its predecessor. Nothing was written. */
  | { readonly kind: 'moved'; readonly head: AuditHead }
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

/** The stored row of an action, and the stored row of its outcome; null if there is none yet. */
export type ListedAct = { readonly seq: number; readonly act: string; readonly outcome: string | null };

/**
 * The rows of one chain. Appending is atomic, even between processes, so the chain never forks. If the store does not
 * answer, `append` throws `store_unavailable`; the row may then have been written or not.
 */
export interface AuditStore {
  /** The unfinished last row that was removed when the store was opened. Null or absent if there was none. */
  readonly torn?: { readonly bytes: number; readonly sha256: string } | null;
  head(): MaybePromise<AuditHead>;
  /**
   * Appends a row if its `prev` and `seq` follow the newest row. When this resolves, the row is as durable as the store
   * can make it.
   */
  append(append: AuditAppend): MaybePromise<AppendResult>;
  /**
   * Lists the rows of at most `first` actions with numbers below `before`, newest first; `before` null: from the newest
   * on. `userId`: only actions that concern this user; null: all actions.
   */
  list(
    userId: string | null,
    page: { readonly before: number | null; readonly first: number },
  ): MaybePromise<readonly ListedAct[]>;
  /** Returns the stored lines of at most `first` rows whose numbers are above `after`, in order. */
  lines(after: number, first: number): MaybePromise<readonly string[]>;
  close?(): MaybePromise<void>;
}
