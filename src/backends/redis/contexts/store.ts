/** Core's ContextStore over Redis: the execution contexts and windows that clients report. */
import { contextStatus, windowStatus, type ExecutionContext } from '../../../core/contexts/context.ts';
import type {
  ContextFilter,
  ContextStore,
  CountedWindow,
  ReportOutcome,
  WindowFilter,
} from '../../../core/contexts/store.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, COUNT_SCAN } from '../../../core/limits.ts';
import type { PageRequest, Position, Scan } from '../../../core/page.ts';
import type { RedisParts } from '../parts.ts';
import { partitionsOf } from '../connections/store.ts';
import { createLooker, type Looker } from '../connections/look.ts';
import { countRows, firstRows, scanPage, type Listing, type Member } from '../connections/scan.ts';
import { createContextLoader, type ContextLoader } from './load.ts';
import { reportArgs } from './rows.ts';
import type { KeyKind } from '../keys.ts';
import type { Store } from '../store/store.ts';

type Context = { readonly store: Store; readonly looker: Looker; readonly loader: ContextLoader };

/**
 * Creates Core's ContextStore over Redis. Each context and window is read together with the row of its client, which
 * says whether the client is connected.
 */
export function createRedisContexts({ store }: RedisParts): ContextStore {
  const looker = createLooker(store);
  const context = { store, looker, loader: createContextLoader(store, looker) };
  const list = (filter: ContextFilter, page: PageRequest): Promise<Scan<ExecutionContext>> =>
    scanPage(looker, contextListing(context, filter), page);
  const windows = (filter: WindowFilter, page: PageRequest): Promise<Scan<CountedWindow>> =>
    scanPage(looker, windowListing(context, filter), page);
  return {
    async report(key, epoch, report) {
      const bounds = [CLIENT_CONTEXTS, CLIENT_WINDOWS];
      const args = [store.hash(key.userId, key.clientId), epoch, ...bounds, ...reportArgs(report)];
      const outcome = await store.act(store.partitionOfUser(key.userId), 'contexts-report', args);
      return outcome as ReportOutcome;
    },
    list,
    lists: (filters, first) => Promise.all(filters.map((filter) => list(filter, { first, after: null }))),
    count: (filter) => countRows(looker, contextListing(context, filter), COUNT_SCAN),
    windows,
    windowLists: (filters, first) => Promise.all(filters.map((filter) => windows(filter, { first, after: null }))),
    windowCount: (filter) => countRows(looker, windowListing(context, filter), COUNT_SCAN),
    windowsNamed(userId, windowId) {
      const filter = { userId, clientId: null, clientType: null, status: null, ownership: null };
      const listing = windowListing(context, filter);
      return firstRows(looker, { ...listing, wanted: ([, , id]) => id === windowId }, 2);
    },
    getContexts: (keys) =>
      rowsByKey(context, {
        kind: 'ctxs',
        positions: keys.map(({ userId, clientId, contextId }) => [userId, clientId, contextId]),
        load: async (member) => (await context.loader.contexts([member], null))[0] ?? null,
      }),
    getWindows: (keys) =>
      rowsByKey(context, {
        kind: 'wins',
        positions: keys.map(({ userId, clientId, windowId }) => [userId, clientId, windowId]),
        load: async (member) => (await context.loader.windows([member], null))[0] ?? null,
      }),
  };
}

type Wanted<T> = {
  readonly kind: KeyKind;
  readonly positions: readonly Position[];
  readonly load: (member: Member) => Promise<T | null>;
};

/** Reads the rows with these names, null for a name without a row. The reads of one tick are sent together. */
function rowsByKey<T>(
  { store, looker }: Context,
  { kind, positions, load }: Wanted<T>,
): Promise<readonly (T | null)[]> {
  return Promise.all(
    positions.map(async (position) => {
      const partition = store.partitionOfUser(position[0] ?? '');
      const name = `[${position.join('\0')}`;
      const { members, ...leases } = await looker.look(partition, { kind, min: name, max: name, limit: 1 });
      return members.length === 0 ? null : load({ position, partition, leases });
    }),
  );
}

type ClientFilter = Pick<ContextFilter, 'userId' | 'clientId' | 'clientType'>;

/**
 * Returns the `prefix`, `partitions` and `wanted` of a listing, which depend on the user and client of its filter. Rows
 * of other clients are recognized by their names and not read.
 */
function ofClients(store: Store, { userId, clientId }: ClientFilter) {
  const prefix = userId === null ? [] : clientId === null ? [userId] : [userId, clientId];
  return {
    prefix,
    partitions: partitionsOf(store, userId),
    wanted: ([, client]: Position): boolean => clientId === null || client === clientId,
  };
}

function contextListing({ store, loader }: Context, filter: ContextFilter): Listing<ExecutionContext> {
  const { userId, clientId, clientType, ...of } = filter;
  const plain = clientType === null && Object.values(of).every((member) => member === null);
  return {
    ...ofClients(store, filter),
    kind: 'ctxs',
    plain: plain && (clientId === null || userId !== null),
    load: (members) => loader.contexts(members, clientType),
    keep: (context) => contextMatches(filter, context),
  };
}

function windowListing({ store, loader }: Context, filter: WindowFilter): Listing<CountedWindow> {
  const { userId, clientId, clientType, status, ownership } = filter;
  const plain = clientType === null && status === null && ownership === null;
  return {
    ...ofClients(store, filter),
    kind: 'wins',
    plain: plain && (clientId === null || userId !== null),
    load: (members) => loader.windows(members, clientType),
    keep: ({ window }) =>
      (status === null || windowStatus(window) === status) && (ownership === null || window.ownership === ownership),
  };
}

function contextMatches(filter: ContextFilter, context: ExecutionContext): boolean {
  return (
    (filter.statuses === null || filter.statuses.includes(contextStatus(context))) &&
    (filter.ownership === null || context.ownership === filter.ownership) &&
    (filter.windowId === null || context.windowId === filter.windowId) &&
    (filter.assigned === null || (context.taskId !== null) === filter.assigned) &&
    (filter.taskId === null || context.taskId === filter.taskId)
  );
}
