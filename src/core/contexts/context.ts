/** Execution contexts and browser windows that clients report, and the storage port for them. */
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

/** A context as its client reports it. The status `stale` is computed and never reported. */
export type ReportedContext = {
  readonly contextId: string;
  readonly status: Exclude<ContextStatus, 'stale'>;
  readonly ownership: Ownership;
  readonly windowId: string | null;
  /**
   * The task that the client says it has assigned to the context. It proves neither a durable job nor an external
   * effect.
   */
  readonly taskId: string | null;
  readonly title: string | null;
  readonly metadata: JsonText | null;
};

/** The client instance that last reported a row, and the time of the report (epoch milliseconds). */
export type Reported = ClientKey & {
  readonly clientType: ClientType;
  readonly instanceId: string;
  readonly reportedAt: number;
  /** True while the client's link is down or silent. The context is then shown as `stale`, unless it is `closed`. */
  readonly linkLost: boolean;
};

/** An execution context as its client last reported it. Immutable. */
export type ExecutionContext = Reported &
  ReportedContext & {
    /** When the current task was first reported, in epoch milliseconds; null if there is no task. */
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
  /** The counts as the client reports them. They are shown if the client reports no contexts. */
  readonly workerCount: number;
  readonly idleCount: number;
  readonly busyCount: number;
};

export type BrowserWindow = Reported & ReportedWindow;

/**
 * Numbers of a window's worker contexts that are not closed: all of them, those without a task (`idle`), and those with
 * one (`busy`).
 */
export type WindowCounts = { readonly workers: number; readonly idle: number; readonly busy: number };

export function contextStatus({ status, linkLost }: Pick<ExecutionContext, 'status' | 'linkLost'>): ContextStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}

export function windowStatus({ status, linkLost }: Pick<BrowserWindow, 'status' | 'linkLost'>): WindowStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}

// The storage port of reported contexts and windows.

/**
 * The part of a report about one kind of rows. If `snapshot` is true, `set` replaces all of the client's rows of this
 * kind, and `removed` is empty. If it is false, the named rows are set or removed and the others stay. No id occurs
 * twice.
 */
export type ReportPart<T> = {
  readonly snapshot: boolean;
  readonly set: readonly T[];
  readonly removed: readonly string[];
};

/** A client's report of its contexts and windows. A kind that is null was not reported and stays unchanged. */
export type ContextReport = {
  readonly contexts: ReportPart<ReportedContext> | null;
  readonly windows: ReportPart<ReportedWindow> | null;
};

/**
 * What the store did with a report. `taken`: it stored the report. `full`: the client would have more than
 * CLIENT_CONTEXTS contexts or CLIENT_WINDOWS windows. `fenced`: the link is down, or the client is bound to another
 * link. After `full` and `fenced`, nothing of the report is stored.
 */
export type ReportOutcome = 'taken' | 'full' | 'fenced';

/** A filter for contexts. A context must match every member that is not null. */
export type ContextFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  /** The statuses of which the context must have one; null: any status. */
  readonly statuses: readonly ContextStatus[] | null;
  readonly ownership: Ownership | null;
  readonly windowId: string | null;
  /** Whether the context must have a task (true) or must have none (false); null: either. */
  readonly assigned: boolean | null;
  readonly taskId: string | null;
} & OfClients;

/** `clientIds`: the clients whose rows match. Absent: the rows of all clients match. */
type OfClients = { readonly clientIds?: ReadonlySet<string> };

export type WindowFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  readonly status: WindowStatus | null;
  readonly ownership: Ownership | null;
} & OfClients;

/**
 * A window and the counts of its contexts. `live`: null if the client reports no contexts; the window's own counts are
 * shown then.
 */
export type CountedWindow = { readonly window: BrowserWindow; readonly live: WindowCounts | null };

export type ContextKey = ClientKey & { readonly contextId: string };
export type WindowKey = ClientKey & { readonly windowId: string };

/** A number of rows. `complete`: false if counting stopped at COUNT_SCAN rows. */
export type RowCount = WithGaps & { readonly count: number; readonly complete: boolean };

/**
 * Stores the current contexts and windows, but not their history. A client's rows exist as long as its row in the
 * ConnectionStore: they are deleted when that row is deleted, or when another instance takes it over. While the status
 * of that row is not `connected`, they are shown with `linkLost`. The backend sets the times, and takes the instance
 * and the client type from the connection's row.
 *
 * With a `reading`, a method remembers in it what it read, so that the contexts and windows of a client are read and
 * decoded once for a whole document. Without one, each call reads again.
 */
export interface ContextStore {
  /** Atomic: stores the whole report or nothing. Stores it only while the link with this epoch is open and bound. */
  report(key: ClientKey, epoch: number, report: ContextReport): MaybePromise<ReportOutcome>;
  /** Lists contexts in order of user, client and context. */
  list(filter: ContextFilter, page: PageRequest, reading?: DocumentReading): MaybePromise<Scan<ExecutionContext>>;
  /**
   * Returns the first page of `list` for each filter. If several filters name the same client, its contexts are read
   * once.
   */
  lists(
    filters: readonly ContextFilter[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Scan<ExecutionContext>[]>;
  count(filter: ContextFilter, reading?: DocumentReading): MaybePromise<RowCount>;
  /** Lists windows in order of user, client and window. */
  windows(filter: WindowFilter, page: PageRequest, reading?: DocumentReading): MaybePromise<Scan<CountedWindow>>;
  /** Returns the first page of `windows` for each filter, like `lists`. */
  windowLists(
    filters: readonly WindowFilter[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Scan<CountedWindow>[]>;
  windowCount(filter: WindowFilter, reading?: DocumentReading): MaybePromise<RowCount>;
  /**
   * Returns a user's windows with this id, ordered by client: at most two, because two already show that the id alone
   * is ambiguous.
   */
  windowsNamed(userId: string, windowId: string, reading?: DocumentReading): MaybePromise<readonly CountedWindow[]>;
  /** Returns one context per key, in the order of the keys; null if there is no row. */
  getContexts(keys: readonly ContextKey[]): MaybePromise<readonly (ExecutionContext | null)[]>;
  getWindows(keys: readonly WindowKey[]): MaybePromise<readonly (CountedWindow | null)[]>;
}
