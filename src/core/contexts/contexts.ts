/** Stores what clients report of their contexts and windows, and lists both for requesters who may see them. */
import { knownUser, readScope, readUser, requirePrincipal, subjectOf, type Principal } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { id, within } from '../ids.ts';
import { COUNT_SCAN, WORKER_LIST } from '../limits.ts';
import { both, type MaybePromise } from '../maybe-promise.ts';
import {
  SCAN_BUDGET,
  completenessOf,
  type Completeness,
  type EvidenceSource,
  type Listing,
  type ObservedSource,
  type Page,
  type PageArgs,
  type Scan,
} from '../page.ts';
import { DocumentReading } from '../reading.ts';
import { holderOf } from '../shares/shares.ts';
import { silentSources, withGaps } from '../silence.ts';
import type {
  ContextFilter,
  ContextKey,
  ContextStatus,
  ContextStore,
  CountedWindow,
  ExecutionContext,
  Ownership,
  RowCount,
  WindowFilter,
  WindowKey,
  WindowStatus,
} from './context.ts';

type Requester = Principal | null;

/** Creates the API of contexts, windows and workers. */
export function createContexts(deps: Deps): Contexts {
  const { clock, cursors } = deps;
  const store = deps.backend.contexts;
  const source = (name: EvidenceSource): Pick<ObservedSource, 'source' | 'nodeId' | 'asOf'> => ({
    source: name,
    nodeId: null,
    asOf: clock.now(),
  });
  const counted = (
    name: EvidenceSource,
    { count, complete }: RowCount,
    silent: readonly ObservedSource[],
  ): RegistryCount => {
    const limits = complete ? { limit: null, reason: null } : ({ limit: COUNT_SCAN, reason: 'limit_reached' } as const);
    const own = { ...source(name), ...limits, complete, observed: count };
    return { count, completeness: completenessOf([own, ...silent]) };
  };
  const contextPage = (listing: Listing, scan: Scan<ExecutionContext>): Page<ExecutionContext> =>
    cursors.page(listing, scan, source('contexts'), (row) => row);
  const windowPage = (listing: Listing, scan: Scan<CountedWindow>): Page<CountedWindow> =>
    cursors.page(listing, scan, source('windows'), (row) => row);
  return {
    async list(requester, query, page, reading) {
      const filter = contextFilter(requester, query);
      const listing = listingOf('contexts', requester, filter);
      const request = cursors.request(listing, page);
      const scan = deps.readTurns.run(holderOf(requester), () => store.list(filter, request, reading));
      const found = await Promise.all([scan, silentSources(deps, 'contexts')]);
      return contextPage(listing, withGaps(...found));
    },
    lists(requester, queries, first, reading) {
      const filters = queries.map((query) => contextFilter(requester, query));
      return both(store.lists(filters, first, reading), silentSources(deps, 'contexts'), (scans, silent) =>
        scans.map((scan, i) => contextPage(listingOf('contexts', requester, filters[i]), withGaps(scan, silent))),
      );
    },
    async count(requester, query, reading) {
      const found = [store.count(contextFilter(requester, query), reading), silentSources(deps, 'contexts')] as const;
      return counted('contexts', ...(await Promise.all(found)));
    },
    async windows(requester, query, page, reading) {
      const filter = windowFilter(requester, query);
      const listing = listingOf('windows', requester, filter);
      const request = cursors.request(listing, page);
      const found = await Promise.all([store.windows(filter, request, reading), silentSources(deps, 'windows')]);
      return windowPage(listing, withGaps(...found));
    },
    windowLists(requester, queries, first, reading) {
      const filters = queries.map((query) => windowFilter(requester, query));
      return both(store.windowLists(filters, first, reading), silentSources(deps, 'windows'), (scans, silent) =>
        scans.map((scan, i) => windowPage(listingOf('windows', requester, filters[i]), withGaps(scan, silent))),
      );
    },
    async windowCount(requester, query, reading) {
      const found = [
        store.windowCount(windowFilter(requester, query), reading),
        silentSources(deps, 'windows'),
      ] as const;
      return counted('windows', ...(await Promise.all(found)));
    },
    async window(requester, user, window, client = null, reading) {
      const windowId = id('window_id', window);
      const clientId = idOrNull('client_id', client);
      const userId = knownUser(requester, user);
      if (userId === null) return null;
      const [found = null, other = null] =
        clientId === null
          ? await store.windowsNamed(userId, windowId, reading)
          : await store.getWindows([{ userId, clientId, windowId }]);
      if (other) fail('ambiguous', 'Several clients report a window of this id. `client_id` selects one.');
      return found;
    },
    many: (keys) => store.getContexts(keys),
    manyWindows: (keys) => store.getWindows(keys),
    workers: createWorkers(deps),
  };
}

function contextFilter(requester: Requester, query: ContextQuery): ContextFilter {
  return {
    userId: readScope(requester, query.userId),
    clientId: idOrNull('client_id', query.clientId),
    clientType: query.clientType ?? null,
    statuses: query.status ? [query.status] : null,
    ownership: query.ownership ?? null,
    windowId: idOrNull('window_id', query.windowId),
    assigned: null,
    taskId: null,
  };
}

function windowFilter(requester: Requester, query: WindowQuery): WindowFilter {
  return {
    userId: readScope(requester, query.userId),
    clientId: idOrNull('client_id', query.clientId),
    clientType: query.clientType ?? null,
    status: query.status ?? null,
    ownership: query.ownership ?? null,
  };
}

function idOrNull(parameter: string, given: string | null | undefined): string | null {
  return given === null || given === undefined ? null : id(parameter, given);
}

function listingOf(name: string, requester: Requester, filter: unknown): Listing {
  return { name, filter, requester: subjectOf(requirePrincipal(requester)) };
}

// The interface for reading contexts, windows and workers. Types only.

/**
 * A filter of contexts. A context must match every member that is present. Without `userId`, a user gets its own
 * contexts and an administrator those of all users.
 */
export type ContextQuery = {
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly clientType?: ClientType | null | undefined;
  readonly status?: ContextStatus | null | undefined;
  readonly ownership?: Ownership | null | undefined;
  readonly windowId?: string | null | undefined;
};

export type WindowQuery = {
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly clientType?: ClientType | null | undefined;
  readonly status?: WindowStatus | null | undefined;
  readonly ownership?: Ownership | null | undefined;
};

/**
 * A worker is a context whose ownership is `worker` and that is not closed. `idle`: it has no task. `assigned`: it has
 * a task. `available`: it has no task, its client reports it as idle, and the client's link is up. `task`: it has the
 * task `taskId`.
 */
export type WorkerView =
  { readonly view: 'idle' | 'assigned' | 'available' } | { readonly view: 'task'; readonly taskId: string };

/** A query for the workers of one user. */
export type WorkerQuery = WorkerView & {
  readonly userId: string;
  readonly clientType?: ClientType | null | undefined;
};

export type WorkerList = { readonly items: readonly ExecutionContext[]; readonly completeness: Completeness };
type RegistryCount = { readonly count: number; readonly completeness: Completeness };

/**
 * The contexts and windows in which clients can run work, as they report them. Reading does not assign, renew or
 * release anything. A worker's task is its current assignment in this registry and proves neither a durable job nor an
 * effect. Calls with the same `reading` share what they read of the store.
 */
export interface Contexts {
  list(
    requester: Requester,
    query: ContextQuery,
    page: PageArgs,
    reading?: DocumentReading,
  ): Promise<Page<ExecutionContext>>;
  /** Returns for each query the first page that `list` gives. For nested fields. */
  lists(
    requester: Requester,
    queries: readonly ContextQuery[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Page<ExecutionContext>[]>;
  count(requester: Requester, query: ContextQuery, reading?: DocumentReading): Promise<RegistryCount>;
  windows(
    requester: Requester,
    query: WindowQuery,
    page: PageArgs,
    reading?: DocumentReading,
  ): Promise<Page<CountedWindow>>;
  /** Does the same as `lists`, for windows. */
  windowLists(
    requester: Requester,
    queries: readonly WindowQuery[],
    first: number,
    reading?: DocumentReading,
  ): MaybePromise<readonly Page<CountedWindow>[]>;
  windowCount(requester: Requester, query: WindowQuery, reading?: DocumentReading): Promise<RegistryCount>;
  /**
   * Returns a window. Null if there is no such window, or if it belongs to another user. `clientId`: the client that
   * reports it; null: any. Throws `ambiguous` if it is null and several clients report a window of this id.
   */
  window(
    requester: Requester,
    userId: string,
    windowId: string,
    clientId?: string | null,
    reading?: DocumentReading,
  ): Promise<CountedWindow | null>;
  /** Returns contexts that the requester may read: one answer per key, in order; null where there is no row. */
  many(keys: readonly ContextKey[]): MaybePromise<readonly (ExecutionContext | null)[]>;
  /** Does the same as `many`, for windows. */
  manyWindows(keys: readonly WindowKey[]): MaybePromise<readonly (CountedWindow | null)[]>;
  /**
   * Returns for each query at most `first` workers (1 to WORKER_LIST), in order of client and context. Usually one
   * round trip; more if a query has to scan many rows.
   */
  workers(
    requester: Requester,
    queries: readonly WorkerQuery[],
    first: number,
    reading?: DocumentReading,
  ): Promise<readonly WorkerList[]>;
}

// Lists workers: contexts whose ownership is `worker`.

const NOT_CLOSED: readonly ContextStatus[] = ['active', 'idle', 'stale'];
const FIRST = { default: WORKER_LIST, min: 1, max: WORKER_LIST } as const;

/** Lists workers. The lists have no pages, so each scans as many rows as a count would (COUNT_SCAN). */
function createWorkers(deps: Deps): Contexts['workers'] {
  const { backend, clock } = deps;
  const store = backend.contexts;
  const listOf = ({ rows, next, gaps }: Scan<ExecutionContext>, first: number): WorkerList => {
    const items = rows.map(({ row }) => row);
    const cut = { limit: items.length < first ? COUNT_SCAN : first, reason: 'limit_reached' } as const;
    const limits = next === null ? { limit: null, reason: null } : cut;
    const own = { source: 'contexts', nodeId: null, observed: items.length, asOf: clock.now() } as const;
    return { items, completeness: completenessOf([{ ...own, ...limits, complete: next === null }, ...gaps]) };
  };
  return async (requester, queries, requested, reading = new DocumentReading()) => {
    const filters = queries.map((query) => filterOf(requester, query));
    const first = within('first', requested, FIRST);
    const [scans, silent] = await Promise.all([store.lists(filters, first, reading), silentSources(deps, 'contexts')]);
    const whole = await Promise.all(
      filters.map((filter, i) => readOn(store, filter, { first, scan: scans[i] ?? NOTHING, reading })),
    );
    return whole.map((scan) => listOf(withGaps(scan, silent), first));
  };
}

const NOTHING: Scan<ExecutionContext> = { rows: [], next: null, gaps: [] };

type Begun = { readonly first: number; readonly scan: Scan<ExecutionContext>; readonly reading: DocumentReading };

/** Reads further pages after a scan that ended early because few of many rows matched. */
async function readOn(
  store: ContextStore,
  filter: ContextFilter,
  { first, scan, reading }: Begun,
): Promise<Scan<ExecutionContext>> {
  const rows = [...scan.rows];
  const gaps = [...scan.gaps];
  let { next } = scan;
  for (let seen = SCAN_BUDGET; next !== null && rows.length < first && seen < COUNT_SCAN; seen += SCAN_BUDGET) {
    const more: Scan<ExecutionContext> = await store.list(filter, { first: first - rows.length, after: next }, reading);
    rows.push(...more.rows);
    gaps.push(...more.gaps);
    next = more.next;
  }
  return { rows, next, gaps };
}

function filterOf(requester: Principal | null, query: WorkerQuery): ContextFilter {
  const workers = {
    userId: readUser(requester, query.userId),
    clientId: null,
    clientType: query.clientType ?? null,
    statuses: NOT_CLOSED,
    ownership: 'worker',
    windowId: null,
    assigned: null,
    taskId: null,
  } as const;
  switch (query.view) {
    case 'idle':
      return { ...workers, assigned: false };
    case 'assigned':
      return { ...workers, assigned: true };
    case 'available':
      return { ...workers, assigned: false, statuses: ['idle'] };
    case 'task':
      return { ...workers, taskId: id('task_id', query.taskId) };
  }
}
