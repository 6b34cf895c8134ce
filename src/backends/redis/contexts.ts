/** Core's ContextStore over Redis: the execution contexts and windows that clients report. */
import type { ClientType } from '../../core/connections/connection.ts';
import {
  contextStatus,
  windowStatus,
  type BrowserWindow,
  type ContextFilter,
  type ContextReport,
  type ContextStatus,
  type ContextStore,
  type CountedWindow,
  type ExecutionContext,
  type ReportOutcome,
  type ReportPart,
  type ReportedContext,
  type ReportedWindow,
  type WindowCounts,
  type WindowFilter,
} from '../../core/contexts/context.ts';
import { clientKeyText } from '../../core/ids.ts';
import { trustJson } from '../../core/json.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, COUNT_SCAN, LEFT_CONTEXTS } from '../../core/limits.ts';
import { DocumentReading } from '../../core/document-reading.ts';
import { comparePositions, scanSorted, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import { REPORTER_FIELDS, reporterOf, type Reporter } from './connections-rows.ts';
import { allRows, countRows, firstRows, scanPage, type Listing, type Member } from './connections-pages.ts';
import { createLooker, type Looker } from './connections-index.ts';
import type { KeyKind } from './keys.ts';
import type { RedisDeps } from './deps.ts';
import { partitionsOf } from './store-partitions.ts';
import type { Store } from './store.ts';
import { fieldsOf, listOf, textOr } from './replies.ts';

type Context = { readonly store: Store; readonly looker: Looker; readonly loader: ContextLoader };

/**
 * Creates core's ContextStore over Redis. Each context and window is read together with the row of its client, which
 * contains the client's connection state.
 */
export function createRedisContexts({ store }: RedisDeps): ContextStore {
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
      const bounds = [CLIENT_CONTEXTS, CLIENT_WINDOWS, LEFT_CONTEXTS];
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
 * Reads a page of the contexts in one window of a client. All contexts of the client are read and grouped by window
 * once for each document, because a document may ask for all windows of a client.
 */
async function ofWindow(
  { looker }: Context,
  { userId, clientId, windowId, first, after }: OfWindow,
  { listing, reading }: Scanned,
): Promise<Scan<ExecutionContext>> {
  reading.check();
  const windows = await reading.once(`by window\n${userId}\n${clientId}`, async () => {
    const all = { ...listing, keep: () => true, present: () => true };
    // The groups are cached for the document, so the rows need not be cached again as chunks.
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

type RowsByName<T> = {
  readonly kind: KeyKind;
  readonly positions: readonly Position[];
  readonly load: (member: Member) => Promise<T | null>;
};

/** Reads the rows with these names, null for a name without a row. The reads of one tick are sent together. */
function rowsByKey<T>(
  { store, looker }: Context,
  { kind, positions, load }: RowsByName<T>,
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

type ClientFilter = Pick<ContextFilter, 'userId' | 'clientId' | 'clientIds'>;

/**
 * Returns `prefix`, `partitions` and `wanted` of a listing, according to the user and client of its filter. Rows of
 * other clients are recognised by their names and are not read.
 */
function ofClients(store: Store, { userId, clientId, clientIds }: ClientFilter) {
  const prefix = userId === null ? [] : clientId === null ? [userId] : [userId, clientId];
  const only = clientIds ?? (clientId !== null && userId === null ? new Set([clientId]) : null);
  return {
    prefix,
    partitions: partitionsOf(store, userId),
    wanted: only && {
      key: `clients ${[...only].join('\0')}`,
      test: ([, client = '']: Position): boolean => only.has(client),
    },
  };
}

/** An estimate of the memory that a row takes besides its text, in bytes. */
const ROW_BYTES = 400;

function contextBytes({ length }: StoredContext): number {
  return ROW_BYTES + length;
}

function contextListing({ store, loader }: Context, filter: ContextFilter): Listing<StoredContext> {
  const { userId, clientId, clientType, clientIds, ...of } = filter;
  const plain = !clientIds && clientType === null && Object.values(of).every((member) => member === null);
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
  const { userId, clientId, clientType, clientIds, status, ownership } = filter;
  const plain = !clientIds && clientType === null && status === null && ownership === null;
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

// Loads contexts and windows by the names in an index.

type ContextLoader = ReturnType<typeof createContextLoader>;

/**
 * Reads contexts and windows by name, together with the rows of their clients, in one round trip. Returns one answer
 * per member, in order; null if it no longer exists.
 */
function createContextLoader(store: Store, looker: Looker) {
  const reporter = async ({ members, ch, partition }: Client): Promise<Reporter | null> => {
    const [first] = members;
    if (!first) return null;
    const [userId = '', clientId = ''] = first.position;
    const values = await looker.read(['HMGET', store.key(partition, 'conn', ch), ...REPORTER_FIELDS]);
    return reporterOf({ userId, clientId }, listOf(values), first.leases);
  };
  const held = async ({ members, ch, partition }: Client, kind: KeyKind): Promise<readonly (string | null)[]> => {
    const ids = members.map(({ position }) => position[2] ?? '');
    return listOf(await looker.read(['HMGET', store.key(partition, kind, ch), ...ids])).map(textOr);
  };
  const counts = async ({ ch, partition }: Client): Promise<ReadonlyMap<string, string>> =>
    fieldsOf(await looker.read(['HGETALL', store.key(partition, 'ctxwin', ch)]));
  return {
    async contexts(members: readonly Member[]): Promise<readonly (StoredContext | null)[]> {
      const ofClients = grouped(store, members).map(async (client) => {
        const [found, values] = await Promise.all([reporter(client), held(client, 'ctx')]);
        return values.map((value) => (value !== null && found !== null ? new StoredContext(found, value) : null));
      });
      return (await Promise.all(ofClients)).flat();
    },
    async windows(members: readonly Member[]): Promise<readonly (CountedWindow | null)[]> {
      const ofClients = grouped(store, members).map(async (client) => {
        const [found, values, live] = await Promise.all([reporter(client), held(client, 'win'), counts(client)]);
        return values.map((value) => (value !== null && found !== null ? counted(found, value, live) : null));
      });
      return (await Promise.all(ofClients)).flat();
    },
  };
}

type Client = { readonly ch: string; readonly partition: number; readonly members: readonly Member[] };

/**
 * Groups members by client. An index contains the members of one client one after another, so the order does not
 * change.
 */
function grouped(store: Store, members: readonly Member[]): readonly Client[] {
  const clients = new Map<string, Member[]>();
  for (const member of members) {
    const [userId = '', clientId = ''] = member.position;
    const text = clientKeyText({ userId, clientId });
    const own = clients.get(text) ?? [];
    clients.set(text, own);
    own.push(member);
  }
  return [...clients.values()].map((own) => {
    const [userId = '', clientId = ''] = own[0]?.position ?? [];
    return { ch: store.hash(userId, clientId), partition: own[0]?.partition ?? 0, members: own };
  });
}

function counted(reporter: Reporter, value: string, live: ReadonlyMap<string, string>): CountedWindow {
  const window = windowOf(reporter, value);
  return { window, live: reporter.reportsContexts ? countsOf(live.get(placeName(window.windowId))) : null };
}

// Encodes reports of contexts and windows as arguments of a Redis program, and decodes the stored values. Pure
// functions.

/** One part of a report as arguments of the act. `shape`: the description of the part. `texts`: its rows. */
type PartArgs = { readonly shape: string; readonly texts: readonly string[] };

/** Encodes a report as the last arguments of the act contexts-report. */
function reportArgs({ contexts, windows }: ContextReport): readonly string[] {
  const parts = [
    partArgs(contexts, (context) => [
      context.contextId,
      encodeURIComponent(context.taskId ?? ''),
      placeOf(context),
      contextText(context),
    ]),
    partArgs(windows, (window) => [window.windowId, '', '', JSON.stringify(window)]),
  ];
  return [...parts.map(({ shape }) => shape), ...parts.flatMap(({ texts }) => texts)];
}

function partArgs<T>(part: ReportPart<T> | null, textsOf: (row: T) => readonly string[]): PartArgs {
  if (part === null) return { shape: '', texts: [] };
  const { snapshot, set, removed } = part;
  return {
    shape: `${snapshot ? 1 : 0}:${set.length}:${removed.length}`,
    texts: [...set.flatMap(textsOf), ...removed],
  };
}

/**
 * Encodes a context as two lines: its JSON without the metadata, and the metadata as they were received. Most of a
 * context is metadata, and inside a JSON string each of their quotation marks would need an escape.
 */
function contextText({ metadata, ...row }: ReportedContext): string {
  const text = JSON.stringify(row);
  return metadata === null ? text : `${text}\n${metadata}`;
}

/**
 * Returns '1' if the context has a task, otherwise '0', followed by the window in which the context counts as a worker.
 * Returns '' if the context does not count as a worker.
 */
function placeOf({ windowId, ownership, status, taskId }: ReportedContext): string {
  if (windowId === null || ownership !== 'worker' || status === 'closed') return '';
  return `${taskId === null ? 0 : 1}${placeName(windowId)}`;
}

/** Returns the field of a window in the HASH `ctxwin`. */
function placeName(windowId: string): string {
  return encodeURIComponent(windowId);
}

type StoredContextFields = {
  readonly reportedAt: number;
  readonly taskAssignedAt: number | null;
  readonly row: string;
};

/**
 * Reads `<reported at>|<task assigned at>|<place>|<task>|<row>`, as lib-contexts in contexts.lua writes it. Only the
 * row may contain a bar.
 */
function storedFieldsOf(value: string): StoredContextFields {
  const [reportedAt = '', assignedAt = '', place = '', task = ''] = value.split('|', 4);
  const start = reportedAt.length + assignedAt.length + place.length + task.length + 4;
  return {
    reportedAt: Number(reportedAt),
    taskAssignedAt: assignedAt === '' ? null : Number(assignedAt),
    row: value.slice(start),
  };
}

/**
 * A stored context that is decoded on the first read. Most rows that are read for a filter do not match it, and
 * decoding a row costs five times as much as searching its text.
 */
class StoredContext {
  readonly #reporter: Reporter;
  readonly #value: string;
  #decoded: ExecutionContext | null = null;

  constructor(reporter: Reporter, value: string) {
    this.#reporter = reporter;
    this.#value = value;
  }

  get clientType(): ClientType {
    return this.#reporter.clientType;
  }

  /** The number of characters of the stored text. */
  get length(): number {
    return this.#value.length;
  }

  get context(): ExecutionContext {
    return (this.#decoded ??= contextOf(this.#reporter, this.#value));
  }

  /**
   * Returns false only if the context certainly does not match the filter. It may return true for a context that does
   * not match, because its metadata may contain the same text.
   */
  mayMatch({ statuses, ownership, windowId, taskId, assigned }: ContextFilter): boolean {
    const member = (name: keyof ReportedContext, value: string): boolean =>
      this.#value.includes(`"${name}":${JSON.stringify(value)}`);
    return (
      (ownership === null || member('ownership', ownership)) &&
      (windowId === null || member('windowId', windowId)) &&
      (taskId === null || member('taskId', taskId)) &&
      (assigned === null || WITHOUT_TASK.test(this.#value) !== assigned) &&
      (statuses === null || this.#reported(statuses).some((status) => member('status', status)))
    );
  }

  /** Returns the statuses that the client may have reported if the context now has one of `statuses`. */
  #reported(statuses: readonly ContextStatus[]): readonly ContextStatus[] {
    if (!this.#reporter.linkLost) return statuses;
    return REPORTED_STATUSES.filter((status) => statuses.includes(contextStatus({ status, linkLost: true })));
  }
}

/** Matches a stored value whose fourth field, the task, is empty. */
const WITHOUT_TASK = /^\d+\|[^|]*\|[^|]*\|\|/;
const REPORTED_STATUSES = ['active', 'idle', 'closed'] as const;

function contextOf({ reportsContexts: _, ...reporter }: Reporter, value: string): ExecutionContext {
  const { row, reportedAt, taskAssignedAt } = storedFieldsOf(value);
  return { ...reporter, reportedAt, ...contextIn(row), taskAssignedAt };
}

/**
 * Decodes a text that `contextText` encoded. JSON.stringify writes no line break, so the first line break ends the row.
 */
function contextIn(text: string): ReportedContext {
  const end = text.indexOf('\n');
  const row = JSON.parse(end < 0 ? text : text.slice(0, end)) as Omit<ReportedContext, 'metadata'>;
  return { ...row, metadata: end < 0 ? null : trustJson(text.slice(end + 1)) };
}

function windowOf({ reportsContexts: _, ...reporter }: Reporter, value: string): BrowserWindow {
  const { row, reportedAt } = storedFieldsOf(value);
  return { ...reporter, reportedAt, ...(JSON.parse(row) as ReportedWindow) };
}

/** Decodes `<workers>:<busy>`. Both are 0 if there is no text. */
function countsOf(text: string | undefined): WindowCounts {
  const [workers = 0, busy = 0] = (text ?? '0:0').split(':').map(Number);
  return { workers, idle: workers - busy, busy };
}
