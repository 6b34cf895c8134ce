/** Stores what clients report of their contexts and windows, and lists both for requesters who may see them. */
import { knownUser, readScope, requirePrincipal, subjectOf, type Principal } from '../auth/principal.ts';
import { completenessOf, type Listing } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { id } from '../ids.ts';
import { COUNT_SCAN } from '../limits.ts';
import { both } from '../maybe-promise.ts';
import type { EvidenceSource, ObservedSource, Page, Scan } from '../page.ts';
import { holderOf } from '../shares/holders.ts';
import { silentSources, withGaps } from '../silence.ts';
import type { ExecutionContext } from './context.ts';
import type { ContextQuery, Contexts, RegistryCount, WindowQuery } from './api.ts';
import type { ContextFilter, CountedWindow, RowCount, WindowFilter } from './store.ts';
import { createWorkers } from './workers.ts';

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
