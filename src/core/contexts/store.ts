import type { ClientType } from '../connections/connection.ts';
import type { ClientKey } from '../ids.ts';
import type { Maybe } from '../maybe.ts';
import type { PageRequest, Scan } from '../page.ts';
import type {
  BrowserWindow,
  ContextStatus,
  ExecutionContext,
  Ownership,
  ReportedContext,
  ReportedWindow,
  WindowCounts,
  WindowStatus,
} from './context.ts';

/**
 * `snapshot` replaces all of the client's rows of this kind, and then `removed` is empty; without it, what is named is set or removed and
 * the rest stays. No id stands there twice.
 */
export type ReportPart<T> = {
  readonly snapshot: boolean;
  readonly set: readonly T[];
  readonly removed: readonly string[];
};

/** Null: nothing is said of that kind. */
export type Report = {
  readonly contexts: ReportPart<ReportedContext> | null;
  readonly windows: ReportPart<ReportedWindow> | null;
};

/**
 * `full`: the client would hold more than CLIENT_CONTEXTS contexts or CLIENT_WINDOWS windows. `fenced`: the link is down, or another one is
 * bound. Nothing of the report was taken then.
 */
export type ReportOutcome = 'taken' | 'full' | 'fenced';

/** Members that are null keep everything; the others narrow together. */
export type ContextFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  /** Any of these. */
  readonly statuses: readonly ContextStatus[] | null;
  readonly ownership: Ownership | null;
  readonly windowId: string | null;
  /** Whether it has a task. */
  readonly assigned: boolean | null;
  readonly taskId: string | null;
};

export type WindowFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  readonly status: WindowStatus | null;
  readonly ownership: Ownership | null;
};

/** A window beside the counts of its contexts; null where its client reports no contexts (then the window's own counts stand). */
export type CountedWindow = { readonly window: BrowserWindow; readonly live: WindowCounts | null };

/** `complete` is false when the count stopped at COUNT_SCAN rows. */
export type RowCount = { readonly count: number; readonly complete: boolean };

/**
 * Current registry state, not history. What a client reports stands and falls with its row of the ConnectionStore: it is shown as long as the
 * row is, with `linkLost` while that is not `connected`, and it goes for good when the row is forgotten or another instance takes it over.
 * The backend stamps the times, and the instance and client type of the row.
 */
export interface ContextStore {
  /** Atomic: the whole report or nothing, and only while the link of this epoch is up. */
  report(key: ClientKey, epoch: number, report: Report): Maybe<ReportOutcome>;
  /** In order of (user, client, context). */
  list(filter: ContextFilter, page: PageRequest): Maybe<Scan<ExecutionContext>>;
  /** Per filter: the first page that `list` gives. One round trip. */
  lists(filters: readonly ContextFilter[], first: number): Maybe<readonly Scan<ExecutionContext>[]>;
  count(filter: ContextFilter): Maybe<RowCount>;
  /** In order of (user, client, window). */
  windows(filter: WindowFilter, page: PageRequest): Maybe<Scan<CountedWindow>>;
  /** Per filter: the first page that `windows` gives. One round trip. */
  windowLists(filters: readonly WindowFilter[], first: number): Maybe<readonly Scan<CountedWindow>[]>;
  windowCount(filter: WindowFilter): Maybe<RowCount>;
  /** A user's window by its id; of several clients' the first in order. */
  window(userId: string, windowId: string): Maybe<CountedWindow | null>;
}
