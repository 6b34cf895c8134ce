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
import { comparePositions, scanSorted, type PageRequest, type Position, type Scan } from '../../../core/page.ts';
import { DocumentReading } from '../../../core/reading.ts';
import type { RedisParts } from '../parts.ts';
import { partitionsOf } from '../connections/store.ts';
import { createLooker, type Looker } from '../connections/look.ts';
import { allRows, countRows, firstRows, scanPage, type Listing, type Member } from '../connections/scan.ts';
import { createContextLoader, type ContextLoader } from './load.ts';
import { reportArgs, type StoredContext } from './rows.ts';
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
  const list = (
    filter: ContextFilter,
    page: PageRequest,
    reading = new DocumentReading(),
  ): Promise<Scan<ExecutionContext>> => {
    const listing = contextListing(context, filter);
    return filter.windowId !== null && filter.userId !== null && filter.clientId !== null
      ? ofWindow(context, { ...filter, ...page }, { listing, reading })
      : scanPage({ looker, listing, reading }, page).then(decoded);
  };
  const windows = (
    filter: WindowFilter,
    page: PageRequest,
    reading = new DocumentReading(),
  ): Promise<Scan<CountedWindow>> => scanPage({ looker, listing: windowListing(context, filter), reading }, page);
  return {
    async report(key, epoch, report) {
      const bounds = [CLIENT_CONTEXTS, CLIENT_WINDOWS];
      const args = [store.hash(key.userId, key.clientId), epoch, ...bounds, ...reportArgs(report)];
      const outcome = await store.act(store.partitionOfUser(key.userId), 'contexts-report', args);
      return outcome as ReportOutcome;
    },
    list,
    lists: (filters, first, reading = new DocumentReading()) =>
      Promise.all(filters.map((filter) => list(filter, { first, after: null }, reading))),
    count: (filter, reading = new DocumentReading()) =>
      countRows({ looker, listing: contextListing(context, filter), reading }, COUNT_SCAN),
    windows,
    windowLists: (filters, first, reading = new DocumentReading()) =>
      Promise.all(filters.map((filter) => windows(filter, { first, after: null }, reading))),
    windowCount: (filter, reading = new DocumentReading()) =>
      countRows({ looker, listing: windowListing(context, filter), reading }, COUNT_SCAN),
    windowsNamed(userId, windowId, reading = new DocumentReading()) {
      const filter = { userId, clientId: null, clientType: null, status: null, ownership: null };
      const wanted = { key: `window ${windowId}`, test: ([, , id]: Position) => id === windowId };
      return firstRows({ looker, listing: { ...windowListing(context, filter), wanted }, reading }, 2);
    },
    getContexts: (keys) =>
      rowsByKey(context, {
        kind: 'ctxs',
        positions: keys.map(({ userId, clientId, contextId }) => [userId, clientId, contextId]),
        load: async (member) => (await context.loader.contexts([member]))[0]?.context ?? null,
      }),
    getWindows: (keys) =>
      rowsByKey(context, {
        kind: 'wins',
        positions: keys.map(({ userId, clientId, windowId }) => [userId, clientId, windowId]),
        load: async (member) => (await context.loader.windows([member]))[0] ?? null,
      }),
  };
}

type OfWindow = ContextFilter & PageRequest;
type Scanned = { readonly listing: Listing<StoredContext>; readonly reading: DocumentReading };

/**
 * Reads a page of the contexts in one window of a client. The client's contexts are read and grouped by window once for
 * a document, because a document may ask for all windows of a client.
 */
async function ofWindow(
  { looker }: Context,
  { userId, clientId, windowId, first, after }: OfWindow,
  { listing, reading }: Scanned,
): Promise<Scan<ExecutionContext>> {
  reading.check();
  const windows = await reading.once(`by window\n${userId}\n${clientId}`, async () => {
    const all = { ...listing, keep: () => true, present: () => true };
    // The rows are remembered by window, so they are not remembered a second time as chunks.
    const rows = await allRows({ looker, listing: all, reading: reading.unremembered() });
    const value = Map.groupBy(rows, ({ row }) => row.context.windowId);
    return { value, bytes: rows.reduce((sum, { row }) => sum + contextBytes(row), 0) };
  });
  const kept = (windows.get(windowId) ?? []).filter(
    ({ row, position }) =>
      (after === null || comparePositions(position, after) > 0) && (listing.present?.(row) ?? true),
  );
  const scan = scanSorted(
    kept,
    { first, after },
    ({ position }) => position,
    ({ row }) => listing.keep(row),
  );
  return decoded({ ...scan, rows: scan.rows.map(({ row }) => row) });
}

function decoded({ rows, ...scan }: Scan<StoredContext>): Scan<ExecutionContext> {
  return { ...scan, rows: rows.map(({ row, position }) => ({ row: row.context, position })) };
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
  const others = clientId !== null && userId === null;
  return {
    prefix,
    partitions: partitionsOf(store, userId),
    wanted: others ? { key: `client ${clientId}`, test: ([, client]: Position): boolean => client === clientId } : null,
  };
}

/** What a row takes in memory besides its text, roughly. */
const ROW_BYTES = 400;

function contextBytes({ length }: StoredContext): number {
  return ROW_BYTES + length;
}

function contextListing({ store, loader }: Context, filter: ContextFilter): Listing<StoredContext> {
  const { userId, clientId, clientType, ...of } = filter;
  const plain = clientType === null && Object.values(of).every((member) => member === null);
  return {
    ...ofClients(store, filter),
    kind: 'ctxs',
    plain: plain && (clientId === null || userId !== null),
    load: loader.contexts,
    present: (stored) => clientType === null || stored.clientType === clientType,
    keep: (stored) => stored.mayMatch(filter) && contextMatches(filter, stored.context),
    bytes: contextBytes,
  };
}

function windowListing({ store, loader }: Context, filter: WindowFilter): Listing<CountedWindow> {
  const { userId, clientId, clientType, status, ownership } = filter;
  const plain = clientType === null && status === null && ownership === null;
  return {
    ...ofClients(store, filter),
    kind: 'wins',
    plain: plain && (clientId === null || userId !== null),
    load: loader.windows,
    present: ({ window }) => clientType === null || window.clientType === clientType,
    keep: ({ window }) =>
      (status === null || windowStatus(window) === status) && (ownership === null || window.ownership === ownership),
    bytes: () => ROW_BYTES,
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
