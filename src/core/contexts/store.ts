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

/** `snapshot` replaces all of the client's contexts (or windows); without it, what is named is set or removed and the rest stays. */
export type Report = {
  readonly contexts: {
    readonly snapshot: boolean;
    readonly set: readonly ReportedContext[];
    readonly removed: readonly string[];
  } | null;
  readonly windows: {
    readonly snapshot: boolean;
    readonly set: readonly ReportedWindow[];
    readonly removed: readonly string[];
  } | null;
};

export type Reporter = ClientKey & { readonly instanceId: string; readonly clientType: ClientType };

/** `full`: the client would hold more than CLIENT_CONTEXTS contexts or CLIENT_WINDOWS windows; nothing of the report was taken. */
export type ReportOutcome = 'taken' | 'full';

export type ContextFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  readonly status: ContextStatus | null;
  readonly ownership: Ownership | null;
  readonly windowId: string | null;
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

/**
 * Current registry state, not history: a context goes when its client says so, with a snapshot that leaves it out, or with its client's row.
 * The backend stamps the times.
 */
export interface ContextStore {
  /** Atomic: the whole report or nothing. */
  report(reporter: Reporter, report: Report): Maybe<ReportOutcome>;
  /** The link went down or silent (`lost`) or came back; marks all that the client reported. */
  mark(key: ClientKey, link: 'lost' | 'back'): Maybe<void>;
  /** The client's row was forgotten, or another instance took over: all that it reported goes. */
  drop(key: ClientKey): Maybe<void>;
  /** In order of (user, client, context). */
  list(filter: ContextFilter, page: PageRequest): Maybe<Scan<ExecutionContext>>;
  count(filter: ContextFilter): Maybe<{ readonly count: number; readonly complete: boolean }>;
  /** In order of (user, client, window). */
  windows(filter: WindowFilter, page: PageRequest): Maybe<Scan<CountedWindow>>;
  windowCount(filter: WindowFilter): Maybe<{ readonly count: number; readonly complete: boolean }>;
  /** A user's window by its id; of several clients' the first in order. */
  window(userId: string, windowId: string): Maybe<CountedWindow | null>;
}
