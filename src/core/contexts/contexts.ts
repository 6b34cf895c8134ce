/** Lists and counts the contexts, windows and workers that clients report. */
import { knownInSight, readSight, readUserInSight } from '../auth/sight.ts';
import type { Requester } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import { rowsOfSeen, seenClients, type SeenClients } from '../connections/seen-clients.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { id, within } from '../ids.ts';
import { COUNT_SCAN, WORKER_LIST } from '../limits.ts';
import { both, thenDo, type MaybePromise } from '../maybe-promise.ts';
import {
  completenessOf,
  gapOf,
  observed,
  type Completeness,
  type EvidenceSource,
  type ObservedSource,
} from '../completeness.ts';
import { listingOf, type GivenFilter, type Listing, type PageArgs } from '../cursors.ts';
import { DocumentReading } from '../document-reading.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import { SCAN_BUDGET, type Page, type Scan } from '../page.ts';
import { holderOf } from '../shares/holder.ts';
import type {
  ContextFilter,
  ContextKey,
  ContextStatus,
  ContextStore,
  CountedWindow,
  ExecutionContext,
  RowCount,
  WindowFilter,
  WindowKey,
} from './context.ts';

export type Contexts = ReturnType<typeof createContexts>;

/**
 * Creates the API of the contexts and windows in which clients run work. Reading assigns, renews and releases nothing.
 * A worker's task is what its client says it has assigned; it proves neither a durable job nor an effect. Calls with
 * the same `reading` share what they read from the store. For a token that is limited to some actions, only rows of
 * clients that advertise one of these actions are returned.
 */
export function createContexts(deps: Deps) {
  const { clock, cursors } = deps;
  const store = deps.backend.contexts;
  const counted = (
    source: EvidenceSource,
    { count, complete, gaps = [] }: RowCount,
    silent: readonly ObservedSource[],
  ) => {
    const own = observed(source, clock.now(), count, complete ? null : COUNT_SCAN);
    return { count, completeness: completenessOf([own, ...gaps, ...silent]) };
  };
  const manyWindows = (requester: Requester, keys: readonly WindowKey[]) =>
    thenDo(store.getWindows(keys), (found) => {
      const rows = found.map((row) => row?.window ?? null);
      return thenDo(rowsOfSeen(deps, requester, rows), (seen) => found.map((row, i) => (seen[i] ? row : null)));
    });
  const pageOf = <T>(listing: Listing, source: EvidenceSource, scan: Scan<T>): Page<T> =>
    cursors.page(listing, scan, [source, clock.now()], (row) => row);
  return {
    async list(requester: Requester, query: ContextQuery, page: PageArgs, reading?: DocumentReading) {
      const filter = contextFilter(requester, query);
      const listing = listingOf('contexts', requester, filter);
      const request = cursors.request(listing, page);
      const seen = await seenClients(deps, requester, reading);
      const scan = deps.readTurns.run(holderOf(requester), () => store.list(ofSeen(filter, seen), request, reading));
      const found = await Promise.all([scan, missing(deps, 'contexts', seen)]);
      return pageOf(listing, 'contexts', withGaps(...found));
    },
    /** Returns the first page of `list` for each query. For nested fields. */
    lists(requester: Requester, queries: readonly ContextQuery[], first: number, reading?: DocumentReading) {
      const filters = queries.map((query) => contextFilter(requester, query));
      return thenDo(seenClients(deps, requester, reading), (seen) => {
        const found = store.lists(
          filters.map((filter) => ofSeen(filter, seen)),
          first,
          reading,
        );
        return both(found, missing(deps, 'contexts', seen), (scans, silent) =>
          scans.map((scan, i) =>
            pageOf(listingOf('contexts', requester, filters[i]), 'contexts', withGaps(scan, silent)),
          ),
        );
      });
    },
    async count(requester: Requester, query: ContextQuery, reading?: DocumentReading) {
      const filter = contextFilter(requester, query);
      const seen = await seenClients(deps, requester, reading);
      const found = [store.count(ofSeen(filter, seen), reading), missing(deps, 'contexts', seen)] as const;
      return counted('contexts', ...(await Promise.all(found)));
    },
    async windows(requester: Requester, query: WindowQuery, page: PageArgs, reading?: DocumentReading) {
      const filter = windowFilter(requester, query);
      const listing = listingOf('windows', requester, filter);
      const request = cursors.request(listing, page);
      const seen = await seenClients(deps, requester, reading);
      const scan = store.windows(ofSeen(filter, seen), request, reading);
      const found = await Promise.all([scan, missing(deps, 'windows', seen)]);
      return pageOf(listing, 'windows', withGaps(...found));
    },
    /** Returns the first page of `windows` for each query, like `lists`. */
    windowLists(requester: Requester, queries: readonly WindowQuery[], first: number, reading?: DocumentReading) {
      const filters = queries.map((query) => windowFilter(requester, query));
      return thenDo(seenClients(deps, requester, reading), (seen) => {
        const found = store.windowLists(
          filters.map((filter) => ofSeen(filter, seen)),
          first,
          reading,
        );
        return both(found, missing(deps, 'windows', seen), (scans, silent) =>
          scans.map((scan, i) =>
            pageOf(listingOf('windows', requester, filters[i]), 'windows', withGaps(scan, silent)),
          ),
        );
      });
    },
    async windowCount(requester: Requester, query: WindowQuery, reading?: DocumentReading) {
      const filter = windowFilter(requester, query);
      const seen = await seenClients(deps, requester, reading);
      const found = [store.windowCount(ofSeen(filter, seen), reading), missing(deps, 'windows', seen)] as const;
      return counted('windows', ...(await Promise.all(found)));
    },
    /**
     * Returns a window. Null if there is no such window, or if the requester may not see it. `client`: the id of the
     * client that reports the window; null: any client. Throws `ambiguous` if `client` is null and several clients
     * report a window with this id.
     */
    async window(
      requester: Requester,
      user: string,
      window: string,
      client: string | null = null,
      reading?: DocumentReading,
    ): Promise<CountedWindow | null> {
      const windowId = id('window_id', window);
      const clientId = client === null ? null : id('client_id', client);
      const userId = knownInSight(requester, user);
      if (userId === null) return null;
      const seen = clientId === null ? await seenClients(deps, requester, reading) : null;
      const clients = seen ? [...seen.ids] : clientId === null ? null : [clientId];
      const rows =
        clients === null
          ? await store.windowsNamed(userId, windowId, reading)
          : await manyWindows(
              requester,
              clients.map((one) => ({ userId, clientId: one, windowId })),
            );
      const [found = null, other = null] = rows.filter((row) => row !== null);
      if (other) fail('ambiguous', 'Several clients report a window of this id. `client_id` selects one.');
      return found;
    },
    /**
     * Returns one context per key, in order; null if there is no row, or if the requester's token may not see it. For
     * nested fields, after the parent was authorized.
     */
    many: (requester: Requester, keys: readonly ContextKey[]) => rowsOfSeen(deps, requester, store.getContexts(keys)),
    /** Returns windows, like `many`. */
    manyWindows,
    /**
     * Returns for each query at most `requested` workers (1 to WORKER_LIST), ordered by client and context. Usually
     * this takes one read of the store, and more if a query has to scan many rows.
     */
    async workers(
      requester: Requester,
      queries: readonly WorkerQuery[],
      requested: number,
      reading = new DocumentReading(),
    ): Promise<readonly WorkerList[]> {
      const filters = queries.map((query) => workerFilter(requester, query));
      const first = within('first', requested, FIRST);
      const seen = await seenClients(deps, requester, reading);
      const limited = filters.map((filter) => ofSeen(filter, seen));
      const found = [store.lists(limited, first, reading), missing(deps, 'contexts', seen)] as const;
      const [scans, silent] = await Promise.all(found);
      const whole = await Promise.all(
        limited.map((filter, i) => readOn(store, filter, { first, scan: scans[i] ?? NOTHING, reading })),
      );
      return whole.map((scan) => workersOf(withGaps(scan, silent), first, clock.now()));
    },
  };
}

/**
 * Returns the gaps of an answer: reports of silent nodes, of clients that were not read, and after a restart, of
 * clients that were connected to the process before and may still report again.
 */
function missing(
  deps: Deps,
  source: 'contexts' | 'windows',
  seen: SeenClients | null,
): MaybePromise<readonly ObservedSource[]> {
  const now = deps.clock.now();
  const until = deps.backend.reportsMissingUntil?.() ?? 0;
  const awaited = until > now ? [gapOf(source, now, null, 'awaiting_reports')] : [];
  const others = [...awaited, ...(seen?.gaps ?? [])];
  return thenDo(silentSources(deps, source), (silent) => (others.length > 0 ? [...silent, ...others] : silent));
}

/** Limits a filter to the clients that the requester may see. */
function ofSeen<Filter extends object>(filter: Filter, seen: SeenClients | null): Filter {
  return seen ? { ...filter, clientIds: seen.ids } : filter;
}

function contextFilter(requester: Requester, query: ContextQuery): ContextFilter {
  const { clientId, clientType = null, status, ownership = null, windowId } = query;
  return {
    userId: readSight(requester, query.userId).userId,
    clientId: clientId == null ? null : id('client_id', clientId),
    clientType,
    statuses: status ? [status] : null,
    ownership,
    windowId: windowId == null ? null : id('window_id', windowId),
    assigned: null,
    taskId: null,
  };
}

function windowFilter(requester: Requester, query: WindowQuery): WindowFilter {
  const { clientId, clientType = null, status = null, ownership = null } = query;
  return {
    userId: readSight(requester, query.userId).userId,
    clientId: clientId == null ? null : id('client_id', clientId),
    clientType,
    status,
    ownership,
  };
}

/**
 * A filter for contexts. A context must match every member that is present. Without `userId`, a user gets its own
 * contexts, and an administrator those of all users.
 */
export type ContextQuery = GivenFilter<Omit<ContextFilter, 'statuses' | 'assigned' | 'taskId' | 'clientIds'>> & {
  readonly status?: ContextStatus | null | undefined;
};

export type WindowQuery = GivenFilter<Omit<WindowFilter, 'clientIds'>>;

/**
 * Which workers to list. A worker is a context with the ownership `worker` that is not closed. `idle`: without a task.
 * `assigned`: with a task. `available`: without a task, reported as idle, and the client's link is open. `task`: with
 * the task `taskId`.
 */
export type WorkerView =
  { readonly view: 'idle' | 'assigned' | 'available' } | { readonly view: 'task'; readonly taskId: string };

/** A query for the workers of one user. */
export type WorkerQuery = WorkerView & {
  readonly userId: string;
  readonly clientType?: ClientType | null | undefined;
};

export type WorkerList = { readonly items: readonly ExecutionContext[]; readonly completeness: Completeness };

// Lists workers: contexts with the ownership `worker`.

const NOT_CLOSED: readonly ContextStatus[] = ['active', 'idle', 'stale'];
const FIRST = { default: WORKER_LIST, min: 1, max: WORKER_LIST } as const;

/** Makes a list of workers from the rows that were read. The lists have no pages, so each may scan COUNT_SCAN rows. */
function workersOf({ rows, next, gaps }: Scan<ExecutionContext>, first: number, asOf: number): WorkerList {
  const items = rows.map(({ row }) => row);
  const limit = items.length < first ? COUNT_SCAN : first;
  return {
    items,
    completeness: completenessOf([observed('contexts', asOf, items.length, next === null ? null : limit), ...gaps]),
  };
}

const NOTHING: Scan<ExecutionContext> = { rows: [], next: null, gaps: [] };

type Begun = { readonly first: number; readonly scan: Scan<ExecutionContext>; readonly reading: DocumentReading };

/** Reads further pages if a scan ended early because few of many rows matched. */
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

function workerFilter(requester: Requester, query: WorkerQuery): ContextFilter {
  const workers = {
    userId: readUserInSight(requester, query.userId),
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
