/** Makes contexts and windows for tests of GraphQL, and a fake of core's contexts API. */
import { knownUser, readUser, readScope } from '../../../src/core/auth/sight.ts';
import {
  contextStatus,
  windowStatus,
  type ExecutionContext,
  type CountedWindow,
} from '../../../src/core/contexts/context.ts';
import type { ContextQuery, Contexts, WindowQuery, WorkerQuery } from '../../../src/core/contexts/contexts.ts';
import type { Requester } from '../../../src/core/core.ts';
import type { ClientKey } from '../../../src/core/ids.ts';
import { trustJson } from '../../../src/core/json.ts';
import { paged, type Listing } from './pages.ts';
import { T0 } from './rows.ts';

export type FakeSites = { readonly contexts: readonly ExecutionContext[]; readonly windows: readonly CountedWindow[] };

export function executionContext(
  userId: string,
  contextId: string,
  more: Partial<ExecutionContext> = {},
): ExecutionContext {
  return {
    userId,
    clientId: 'c1',
    contextId,
    instanceId: 'c1-i1',
    clientType: 'browser',
    status: 'active',
    ownership: 'user-owned',
    windowId: null,
    taskId: null,
    taskAssignedAt: null,
    title: null,
    metadata: trustJson('{"status":"STALE","n":[1,null]}'),
    reportedAt: T0,
    linkLost: false,
    ...more,
  };
}

export function countedWindow(
  userId: string,
  windowId: string,
  { live = null, ...more }: Partial<CountedWindow['window'] & Pick<CountedWindow, 'live'>> = {},
): CountedWindow {
  const window: CountedWindow['window'] = {
    userId,
    clientId: 'c1',
    windowId,
    instanceId: 'c1-i1',
    clientType: 'browser',
    ownership: 'worker',
    focused: true,
    type: 'normal',
    state: 'minimized',
    incognito: false,
    tabCount: 4,
    capacity: 2,
    draining: false,
    status: 'open',
    workerCount: 7,
    idleCount: 4,
    busyCount: 3,
    reportedAt: T0,
    linkLost: false,
    ...more,
  };
  return { window, live };
}

/**
 * Returns the contexts API over a store with fixed rows. Its pages are real; the filters of the store are tested
 * elsewhere.
 */
export function contextsRoom({ contexts: all, windows }: FakeSites, calls: string[]): Contexts {
  const listing = (requester: Requester, filter: unknown): Listing<ExecutionContext> => ({
    name: 'contexts',
    filter,
    requester,
    position: (row) => [row.userId, row.clientId, row.contextId],
  });
  const ofWindows = (requester: Requester, filter: unknown): Listing<CountedWindow> => ({
    name: 'windows',
    filter,
    requester,
    position: ({ window }) => [window.userId, window.clientId, window.windowId],
  });
  const kept = (requester: Requester, query: ContextQuery): ExecutionContext[] => {
    const userId = readScope(requester, query.userId);
    return all.filter(
      (row) => matches(row, { ...query, userId }) && (query.status ?? contextStatus(row)) === contextStatus(row),
    );
  };
  const keptWindows = (requester: Requester, query: WindowQuery): CountedWindow[] => {
    const userId = readScope(requester, query.userId);
    return windows.filter(
      ({ window }) =>
        matches(window, { ...query, userId }) && (query.status ?? windowStatus(window)) === windowStatus(window),
    );
  };
  const completeness = (observed: number) => ({
    complete: true,
    sources: [
      { source: 'contexts', nodeId: null, complete: true, observed, limit: null, reason: null, asOf: T0 } as const,
    ],
  });
  return {
    async list(requester, query, page) {
      calls.push('contexts.list');
      return paged(kept(requester, query), page, listing(requester, clean(query)));
    },
    lists(requester, queries, first) {
      calls.push('contexts.lists');
      return queries.map((query) => paged(kept(requester, query), { first }, listing(requester, clean(query))));
    },
    async count(requester, query) {
      return { count: kept(requester, query).length, completeness: completeness(kept(requester, query).length) };
    },
    many(_requester, keys) {
      calls.push('contexts.many');
      return keys.map((key) => all.find((row) => isSame(row, key) && row.contextId === key.contextId) ?? null);
    },
    manyWindows(_requester, keys) {
      calls.push('contexts.manyWindows');
      return keys.map(
        (key) => windows.find(({ window }) => isSame(window, key) && window.windowId === key.windowId) ?? null,
      );
    },
    async windows(requester, query, page) {
      calls.push('contexts.windows');
      return paged(keptWindows(requester, query), page, ofWindows(requester, clean(query)));
    },
    windowLists(requester, queries, first) {
      calls.push('contexts.windowLists');
      return queries.map((query) =>
        paged(keptWindows(requester, query), { first }, ofWindows(requester, clean(query))),
      );
    },
    async windowCount(requester, query) {
      return { count: keptWindows(requester, query).length, completeness: completeness(0) };
    },
    async window(requester, userId, windowId) {
      const known = knownUser(requester, userId);
      return windows.find(({ window }) => window.userId === known && window.windowId === windowId) ?? null;
    },
    async workers(requester, queries, first) {
      calls.push('contexts.workers');
      return queries.map((query) => {
        const userId = readUser(requester, query.userId);
        const items = all.filter((row) => row.userId === userId && isWorkerOf(row, query)).slice(0, first);
        return { items, completeness: completeness(items.length) };
      });
    },
  };
}

function isWorkerOf(row: ExecutionContext, query: WorkerQuery): boolean {
  if (row.ownership !== 'worker' || !matches(row, { clientType: query.clientType })) return false;
  if (query.view === 'task') return row.taskId === query.taskId;
  return (query.view === 'assigned') === (row.taskId !== null);
}

function matches(
  row: object,
  { status: _, ...query }: Omit<ContextQuery, 'status'> & { readonly status?: unknown },
): boolean {
  const members = new Map<string, unknown>(Object.entries(row));
  return Object.entries(query).every(
    ([name, requested]) => requested === null || requested === undefined || members.get(name) === requested,
  );
}

/** Returns the members of a filter that are given. */
function clean(query: object): object {
  return Object.fromEntries(
    Object.entries(query).filter(([, requested]) => requested !== null && requested !== undefined),
  );
}

function isSame(row: ClientKey, key: ClientKey): boolean {
  return row.userId === key.userId && row.clientId === key.clientId;
}
