/** Execution contexts and browser windows, as clients report them, and the port that stores them. */
import type { ClientType } from '../connections/connection.ts';
import type { ClientKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { WithGaps } from '../completeness.ts';
import type { DocumentReading } from '../document-reading.ts';
import type { PageRequest, Scan } from '../page.ts';

export type ContextStatus = 'active' | 'idle' | 'closed' | 'stale';
export type Ownership = 'user-owned' | 'worker';
export type WindowStatus = 'open' | 'stale' | 'closed';

/** A context as its client reports it. The status `stale` is derived and never reported. */
export type ReportedContext = {
  readonly contextId: string;
  readonly status: Exclude<ContextStatus, 'stale'>;
  readonly ownership: Ownership;
  readonly windowId: string | null;
  /** The current assignment, as reported: it proves neither a durable job nor an external effect. */
  readonly taskId: string | null;
  readonly title: string | null;
  readonly metadata: JsonText | null;
};

/** Names the instance of the client that last reported a row, and when it did (epoch milliseconds). */
export type Reported = ClientKey & {
  readonly clientType: ClientType;
  readonly instanceId: string;
  readonly reportedAt: number;
  /** True while the client's link is down or silent. The status is then shown as `stale`, unless it is `closed`. */
  readonly linkLost: boolean;
};

/** An execution context as its client last reported it. Immutable. */
export type ExecutionContext = Reported &
  ReportedContext & {
    /** When the current task was first reported, epoch milliseconds; null without a task. */
    readonly taskAssignedAt: number | null;
  };

export type ReportedWindow = {
  readonly windowId: string;
  readonly ownership: Ownership;
  readonly focused: boolean;
  readonly type: string;
  readonly state: string;
  readonly incognito: boolean;
  readonly tabCount: number;
  readonly capacity: number | null;
  readonly draining: boolean;
  readonly status: Exclude<WindowStatus, 'stale'>;
  /** The client's own counts, which are shown if it reports no contexts. */
  readonly workerCount: number;
  readonly idleCount: number;
  readonly busyCount: number;
};

export type BrowserWindow = Reported & ReportedWindow;

/**
 * The numbers of a window's worker contexts that are not closed: in all, without a task (`idle`), and with one
 * (`busy`).
 */
export type WindowCounts = { readonly workers: number; readonly idle: number; readonly busy: number };

export function contextStatus({ status, linkLost }: Pick<ExecutionContext, 'status' | 'linkLost'>): ContextStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}

export function windowStatus({ status, linkLost }: Pick<BrowserWindow, 'status' | 'linkLost'>): WindowStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}

// The port of reported contexts and windows.

/**
 * The rows of one kind in a report. With `snapshot`, `set` replaces all of the client's rows of this kind, and
 * `removed` is empty. Without it, the named rows are set or removed and the others stay. No id occurs twice.
 */
export type ReportPart<T> = {
  readonly snapshot: boolean;
  readonly set: readonly T[];
  readonly removed: readonly string[];
};

/** What one client reports of its contexts and windows. A kind that is null is not reported and stays as it is. */
export type ContextReport = {
  readonly contexts: ReportPart<ReportedContext> | null;
  readonly windows: ReportPart<ReportedWindow> | null;
};

/**
 * What became of a report. `full`: the client would hold more than CLIENT_CONTEXTS contexts or CLIENT_WINDOWS windows.
 * `fenced`: the link is down, or another link is bound. In both cases nothing of the report is stored.
 */
export type ReportOutcome = 'taken' | 'full' | 'fenced';

/** Selects contexts. A context must match every member that is not null. */
export type ContextFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  /** The statuses to match, any of them; null: all. */
  readonly statuses: readonly ContextStatus[] | null;
  readonly ownership: Ownership | null;
  readonly windowId: string | null;
  /** Whether the context has a task; null: either. */
  readonly assigned: boolean | null;
  readonly taskId: string | null;
} & OfClients;

/** `clientIds`: the only clients whose rows match. Absent: those of all clients do. */
type OfClients = { readonly clientIds?: ReadonlySet<string> };

export type WindowFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  readonly status: WindowStatus | null;
  readonly ownership: Ownership | null;
} & OfClients;

/**
 * A window, and in `live` the counts of its contexts. `live` is null if the client reports no contexts; then the
 * window's own counts are shown.
 */
export type CountedWindow = { readonly window: BrowserWindow; readonly live: WindowCounts | null };

export type ContextKey = ClientKey & { readonly contextId: string };
export type WindowKey = ClientKey & { readonly windowId: string };

/** A number of rows. `complete` is false if the count stopped after COUNT_SCAN rows. */
export type RowCount = WithGaps & { readonly count: number; readonly complete: boolean };

/**
 * Stores the current contexts and windows, not their history. A client's reports are kept and shown as long as its row
 * in the ConnectionStore. While the status of that row is not `connected`, they are shown with `linkLost`. They are
 * deleted when the row is forgotten or another instance takes it over. The backend sets the times, and takes instance
 * and client type from the connection's row.
 *
 * With a `reading`, methods remember in it what they read: the contexts and the windows of a client are then read and
 * decoded once for a whole document. Without one, each call reads anew.
 */
export interface ContextStore {
  /** Atomic: stores the whole report or nothing, and only while the link of this epoch is up. */
  report(key: ClientKey, epoch: number, report: ContextReport): MaybePromise<ReportOutcome>;
  /** Lists contexts in order of user, client and context. */
  list(filter: ContextFilter, page: PageRequest, reading?: DocumentReading): MaybePromise<Scan<ExecutionContext>>;
  /**
   * Returns for each filter the first page that `list` gives. The contexts of a client that several filters name are
   * read once.
   */
  lists(
    filters: readonly ContextFilter[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Scan<ExecutionContext>[]>;
  count(filter: ContextFilter, reading?: DocumentReading): MaybePromise<RowCount>;
  /** Lists windows in order of user, client and window. */
  windows(filter: WindowFilter, page: PageRequest, reading?: DocumentReading): MaybePromise<Scan<CountedWindow>>;
  /** Does the same as `lists`, for windows. */
  windowLists(
    filters: readonly WindowFilter[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Scan<CountedWindow>[]>;
  windowCount(filter: WindowFilter, reading?: DocumentReading): MaybePromise<RowCount>;
  /**
   * Returns a user's windows of this id, in order of client. It returns at most two, because two are enough to know
   * that the id alone is ambiguous.
   */
  windowsNamed(userId: string, windowId: string, reading?: DocumentReading): MaybePromise<readonly CountedWindow[]>;
  /** Returns one context per key, in the order of the keys; null where there is no row. */
  getContexts(keys: readonly ContextKey[]): MaybePromise<readonly (ExecutionContext | null)[]>;
  getWindows(keys: readonly WindowKey[]): MaybePromise<readonly (CountedWindow | null)[]>;
}
