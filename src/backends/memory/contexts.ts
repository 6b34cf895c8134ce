/** Core's ContextStore in memory: the execution contexts and browser windows that clients report. */
import { connectionStatus, isLive, type ClientType, type Connection } from '../../core/connections/connection.ts';
import {
  contextStatus,
  windowStatus,
  type BrowserWindow,
  type ContextFilter,
  type ContextReport,
  type ContextStore,
  type CountedWindow,
  type ExecutionContext,
  type ReportOutcome,
  type ReportPart,
  type Reported,
  type ReportedContext,
  type ReportedWindow,
  type RowCount,
  type WindowCounts,
  type WindowFilter,
} from '../../core/contexts/context.ts';
import type { ContextState } from '../../core/commands/transaction.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, COUNT_SCAN, LEFT_CONTEXTS } from '../../core/limits.ts';
import { scanSorted, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import type { Clock } from '../../core/ports.ts';
import { createSortedMap, type SortedMap } from './sorted-map.ts';

type MemoryContextsOptions = {
  readonly clock: Clock;
  readonly instances: ReportingInstances;
  /**
   * Returns the connection row of a client without forgetting expired rows, because forgetting a row would change the
   * instances while they are read.
   */
  readonly peek: (key: ClientKey) => Connection | null;
};

/** Core's ContextStore, with a method that acts on commands call and that answers in the same tick. */
interface MemoryContexts extends ContextStore {
  state(key: ClientKey, contextId: string): ContextState;
}

/**
 * Creates core's ContextStore in memory. Reports are kept by client. Every row that is returned has the current state
 * of its client's connection.
 */
export function createMemoryContexts(options: MemoryContextsOptions): MemoryContexts {
  const { instances } = options;
  const contexts = (filter: ContextFilter, after: Position | null) =>
    rowsOf(options, { filter, after, of: (instance, from) => contextsOf(instance, filter, from) });
  const windows = (filter: WindowFilter, after: Position | null) =>
    rowsOf(options, { filter, after, of: ({ windows: rows }, from) => rows.values({ after: from }) });
  const list = (filter: ContextFilter, page: PageRequest): Scan<ExecutionContext> =>
    shown(
      scanSorted(contexts(filter, page.after), page, contextPosition, (seen) => contextMatches(filter, seen)),
      withLink,
    );
  const counted = (window: BrowserWindow): CountedWindow => {
    const instance = instances.get(window);
    return { window, live: instance ? liveCounts(instance, window.windowId) : null };
  };
  const listWindows = (filter: WindowFilter, page: PageRequest): Scan<CountedWindow> =>
    shown(
      scanSorted(windows(filter, page.after), page, windowPosition, (seen) => windowMatches(filter, seen)),
      (seen) => counted(withLink(seen)),
    );
  return {
    report(key, epoch, report): ReportOutcome {
      const connection = options.peek(key);
      const now = options.clock.now();
      if (!isLive(connection, now) || connection.epoch !== epoch) return 'fenced';
      const instance = instances.get(key) ?? emptyInstance(connection);
      if (!fits(instance, report)) return 'full';
      applyReport(instance, report, { places: connection.places === true, now });
      instances.add(instance);
      return 'taken';
    },
    state(key, contextId) {
      const instance = instances.get(key);
      if (!instance?.reportsContexts || options.peek(key) === null) return { kind: 'unknown' };
      const isHere = instance.contexts.get(contextId) !== undefined && !instance.left?.has(contextId);
      return isHere ? { kind: 'reported', instanceId: instance.instanceId } : { kind: 'gone' };
    },
    list,
    lists: (filters, first) => filters.map((filter) => list(filter, { first, after: null })),
    count: ({ userId, clientId, clientType, clientIds, ...of }) =>
      countRows(options, {
        filter: { userId, clientId, clientType, ...(clientIds && { clientIds }) },
        of: (instance) => instance.contexts,
        keep: isAny(of) ? null : (seen) => contextMatches(of, seen),
      }),
    windows: listWindows,
    windowLists: (filters, first) => filters.map((filter) => listWindows(filter, { first, after: null })),
    windowCount: ({ userId, clientId, clientType, clientIds, ...of }) =>
      countRows(options, {
        filter: { userId, clientId, clientType, ...(clientIds && { clientIds }) },
        of: (instance) => instance.windows,
        keep: isAny(of) ? null : (seen) => windowMatches(of, seen),
      }),
    windowsNamed(userId, windowId) {
      const named: CountedWindow[] = [];
      for (const instance of instances.from({ userId, clientId: null, clientType: null }, null)) {
        const window = rowOf(options, instance, ({ windows: rows }) => rows.get(windowId));
        if (window) named.push(counted(window));
        if (named.length === 2) break;
      }
      return named;
    },
    getContexts: (keys) => keys.map((key) => rowOf(options, key, ({ contexts: rows }) => rows.get(key.contextId))),
    getWindows: (keys) =>
      keys.map((key) => {
        const window = rowOf(options, key, ({ windows: rows }) => rows.get(key.windowId));
        return window && counted(window);
      }),
  };
}

type StoredRow = Omit<Reported, 'linkLost'>;
/** A row, with whether the link of its client is down or silent. */
type RowWithLink<T> = { readonly row: T; readonly linkLost: boolean };
type RowQuery<T> = {
  readonly filter: InstanceFilter;
  readonly after: Position | null;
  /** Reads the rows of a client in order, after the row `from`. */
  readonly of: (instance: ReportingInstance, from: string | null) => Iterable<T>;
};

function withLink<T extends StoredRow>({ row, linkLost }: RowWithLink<T>): T & { readonly linkLost: boolean } {
  return { ...row, linkLost };
}

function shown<T, U>(scan: Scan<T>, show: (row: T) => U): Scan<U> {
  return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: show(row), position })) };
}

/**
 * Reads the contexts of a client that may match a filter. If the filter names a task, or names both the client and a
 * window, only the contexts of that task or window are read: one document may ask for each window of a client, and for
 * many tasks of a user.
 */
function contextsOf(instance: ReportingInstance, filter: ContextFilter, after: string | null): Iterable<HeldContext> {
  const found = namedIn(instance, filter);
  if (found === null) return instance.contexts.values({ after });
  return after === null ? found : found.filter(({ contextId }) => contextId > after);
}

function namedIn(
  instance: ReportingInstance,
  { clientId, windowId, taskId }: ContextFilter,
): readonly HeldContext[] | null {
  if (taskId !== null) return contextsOfTask(instance, taskId);
  return clientId === null || windowId === null ? null : contextsInWindow(instance, windowId);
}

/** Returns one row of a client, or null if the client has no such row or no connection row. */
function rowOf<T extends StoredRow>(
  { clock, instances, peek }: MemoryContextsOptions,
  key: ClientKey,
  of: (instance: ReportingInstance) => T | undefined,
): (T & { readonly linkLost: boolean }) | null {
  const instance = instances.get(key);
  const row = instance && of(instance);
  const connection = row ? peek(instance) : null;
  if (!row || connection === null) return null;
  return { ...row, linkLost: connectionStatus(connection, clock.now()) !== 'connected' };
}

/** Reads the rows of the clients that match the filter and have a connection row, ordered by (user, client, row). */
function* rowsOf<T extends StoredRow>(
  { clock, instances, peek }: MemoryContextsOptions,
  { filter, after, of }: RowQuery<T>,
): Generator<RowWithLink<T>> {
  for (const instance of instances.from(filter, after)) {
    const connection = peek(instance);
    if (connection === null) continue;
    const linkLost = connectionStatus(connection, clock.now()) !== 'connected';
    for (const row of of(instance, startIn(instance, after))) yield { row, linkLost };
  }
}

function contextMatches(
  filter: Omit<ContextFilter, keyof InstanceFilter>,
  { row, linkLost }: RowWithLink<HeldContext>,
): boolean {
  return (
    (filter.statuses === null || filter.statuses.includes(contextStatus({ status: row.status, linkLost }))) &&
    (filter.ownership === null || row.ownership === filter.ownership) &&
    (filter.windowId === null || row.windowId === filter.windowId) &&
    (filter.assigned === null || (row.taskId !== null) === filter.assigned) &&
    (filter.taskId === null || row.taskId === filter.taskId)
  );
}

function windowMatches(
  filter: Omit<WindowFilter, keyof InstanceFilter>,
  { row, linkLost }: RowWithLink<HeldWindow>,
): boolean {
  return (
    (filter.status === null || windowStatus({ status: row.status, linkLost }) === filter.status) &&
    (filter.ownership === null || row.ownership === filter.ownership)
  );
}

/** Whether a filter of rows matches every row. */
function isAny(filter: object): boolean {
  return Object.values(filter).every((member) => member === null);
}

type CountQuery<T> = {
  readonly filter: InstanceFilter;
  readonly of: (instance: ReportingInstance) => SortedMap<T>;
  /** Whether a row is counted. Null: all rows are counted, and no row is read. */
  readonly keep: ((seen: RowWithLink<T>) => boolean) | null;
};

function countRows<T>(
  { clock, instances, peek }: MemoryContextsOptions,
  { filter, of, keep }: CountQuery<T>,
): RowCount {
  let scanned = 0;
  let count = 0;
  for (const instance of instances.from(filter, null)) {
    const connection = peek(instance);
    if (connection === null) continue;
    const linkLost = connectionStatus(connection, clock.now()) !== 'connected';
    if (!keep) count += of(instance).size;
    else {
      for (const row of of(instance).values()) {
        if (scanned++ === COUNT_SCAN) return { count, complete: false };
        if (keep({ row, linkLost })) count++;
      }
    }
  }
  return { count, complete: true };
}

function contextPosition({ row: { userId, clientId, contextId } }: RowWithLink<HeldContext>): Position {
  return [userId, clientId, contextId];
}

function windowPosition({ row: { userId, clientId, windowId } }: RowWithLink<HeldWindow>): Position {
  return [userId, clientId, windowId];
}

// Holds the contexts and windows that each client's instance reports, ordered by user and client.

type HeldContext = Omit<ExecutionContext, 'linkLost'>;
type HeldWindow = Omit<BrowserWindow, 'linkLost'>;

/** The contexts and windows that one instance of a client reported. */
export type ReportingInstance = ClientKey & {
  readonly instanceId: string;
  readonly clientType: ClientType;
  readonly contexts: SortedMap<HeldContext>;
  readonly windows: SortedMap<HeldWindow>;
  /** True once the instance reported a list of contexts, even an empty one. */
  reportsContexts: boolean;
  /**
   * The contexts that left (the client no longer reports them, or reports them as closed), in the order in which they
   * left. A context that is reported again stays in the set. The set is created when the first context leaves, and only
   * for clients that support places.
   */
  left: Set<string> | null;
  /** The number of contexts in each window, computed at the first read after a report; null until then. */
  counts: ReadonlyMap<string, WindowCounts> | null;
  /** The contexts in each window, in order of their ids, grouped at the first read after a report; null until then. */
  byWindow: ByMember | null;
  /** The contexts of each task, in order of their ids, grouped at the first read after a report; null until then. */
  byTask: ByMember | null;
};

type ByMember = ReadonlyMap<string | null, readonly HeldContext[]>;

type InstanceFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
  readonly clientIds?: ReadonlySet<string>;
};

type ReportingInstances = ReturnType<typeof createReportingInstances>;

/**
 * The reports of all clients, ordered by (user, client). While the result of `from` is being read, no client may be
 * added or dropped.
 */
export function createReportingInstances() {
  const instances = createSortedMap<ReportingInstance>();
  return {
    get: (key: ClientKey) => instances.get(orderKey(key)),
    add: (instance: ReportingInstance) => instances.set(orderKey(instance), instance),
    /** Drops the reports of a client, because the client's row was forgotten or belongs to another instance. */
    drop: (key: ClientKey) => void instances.delete(orderKey(key)),
    /** Reads the instances that match the filter, starting with the instance that `after` names. */
    *from(
      { userId, clientId, clientType, clientIds }: InstanceFilter,
      after: Position | null,
    ): Generator<ReportingInstance> {
      const start = after === null ? null : orderKey({ userId: after[0] ?? '', clientId: after[1] ?? '' });
      const prefix = userId === null ? '' : orderKey({ userId, clientId: clientId ?? '' });
      for (const instance of instances.values({ from: start !== null && start > prefix ? start : prefix })) {
        if (userId !== null && instance.userId !== userId) return;
        if (userId !== null && clientId !== null && instance.clientId !== clientId) return;
        const named = clientId === null || instance.clientId === clientId;
        const kept = named && (clientIds === undefined || clientIds.has(instance.clientId));
        if (kept && (clientType === null || instance.clientType === clientType)) yield instance;
      }
    },
  };
}

/**
 * Returns the row of this instance after which a page begins, or null if the page begins with the instance's first row.
 */
function startIn(instance: ReportingInstance, after: Position | null): string | null {
  const [userId, clientId, row] = after ?? [];
  return row !== undefined && clientKeyText(instance) === `${userId}/${clientId}` ? row : null;
}

/**
 * Makes a key that sorts as the tuple (user, client) does. The separator sorts before every character that an id may
 * contain.
 */
function orderKey({ userId, clientId }: ClientKey): string {
  return `${userId}\n${clientId}`;
}

// Computes the contexts and windows of one client after a report. These functions change the instance that they are
// given, and store nothing.

/** Creates the state of this connection's instance before its first report: no contexts and no windows. */
export function emptyInstance({
  userId,
  clientId,
  instanceId,
  clientType,
}: Pick<Connection, 'userId' | 'clientId' | 'instanceId' | 'clientType'>): ReportingInstance {
  return {
    userId,
    clientId,
    instanceId,
    clientType,
    contexts: createSortedMap(),
    windows: createSortedMap(),
    reportsContexts: false,
    left: null,
    counts: null,
    byWindow: null,
    byTask: null,
  };
}

/** Returns whether the instance would stay within its bounds if the report were accepted. */
function fits(instance: ReportingInstance, { contexts, windows }: ContextReport): boolean {
  return (
    sizeAfter(instance.contexts, contexts, contextIdOf) <= CLIENT_CONTEXTS &&
    sizeAfter(instance.windows, windows, windowIdOf) <= CLIENT_WINDOWS
  );
}

/** Applies a report to the state of its instance. The report must fit. `places`: whether the client supports places. */
export function applyReport(
  instance: ReportingInstance,
  report: ContextReport,
  { places, now }: { readonly places: boolean; readonly now: number },
): void {
  if (places && report.contexts) noteLeft(instance, report.contexts);
  take(instance, report, now);
}

function take(instance: ReportingInstance, { contexts, windows }: ContextReport, now: number): void {
  const { userId, clientId, instanceId, clientType } = instance;
  const stamp = { userId, clientId, instanceId, clientType, reportedAt: now };
  if (contexts) {
    instance.reportsContexts = true;
    instance.counts = null;
    instance.byWindow = null;
    instance.byTask = null;
    change(instance.contexts, contexts, (reported) => {
      const taskAssignedAt = assignedAt(instance.contexts.get(reported.contextId), reported, now);
      return [reported.contextId, { ...stamp, ...reported, taskAssignedAt }];
    });
  }
  if (windows) change(instance.windows, windows, (reported) => [reported.windowId, { ...stamp, ...reported }]);
}

/**
 * Records the contexts that leave with a report. If more than LEFT_CONTEXTS are recorded, forgets the oldest of those
 * that are not reported.
 */
function noteLeft(instance: ReportingInstance, { snapshot, set, removed }: ReportPart<ReportedContext>): void {
  const { contexts } = instance;
  const reported = new Set(set.map(contextIdOf));
  const gone = new Set(snapshot ? [...contexts.keys()].filter((id) => !reported.has(id)) : removed);
  const closed = set.filter(({ status }) => status === 'closed').map(contextIdOf);
  const leaving = [...[...gone].filter((id) => contexts.get(id) !== undefined), ...closed];
  if (leaving.length === 0) return;
  const left = (instance.left ??= new Set());
  for (const id of leaving) {
    left.delete(id);
    left.add(id);
  }
  const isStill = (id: string): boolean => reported.has(id) || (contexts.get(id) !== undefined && !gone.has(id));
  for (const id of left) {
    if (left.size <= LEFT_CONTEXTS) break;
    if (!isStill(id)) left.delete(id);
  }
}

/** Counts the workers of a window from the client's contexts. Returns null if the client reports no contexts. */
function liveCounts(instance: ReportingInstance, windowId: string): WindowCounts | null {
  if (!instance.reportsContexts) return null;
  instance.counts ??= countByWindow(instance.contexts.values());
  return instance.counts.get(windowId) ?? { workers: 0, idle: 0, busy: 0 };
}

/** Returns the contexts in a window, in order of their ids. */
function contextsInWindow(instance: ReportingInstance, windowId: string): readonly HeldContext[] {
  instance.byWindow ??= Map.groupBy(instance.contexts.values(), (context) => context.windowId);
  return instance.byWindow.get(windowId) ?? [];
}

/** Returns the contexts of a task, in order of their ids. */
function contextsOfTask(instance: ReportingInstance, taskId: string): readonly HeldContext[] {
  instance.byTask ??= Map.groupBy(instance.contexts.values(), (context) => context.taskId);
  return instance.byTask.get(taskId) ?? [];
}

/**
 * Returns the number of rows after a part of a report is applied, or 0 if `part` is null. Reads only the rows that the
 * part names.
 */
function sizeAfter<T>(held: SortedMap<unknown>, part: ReportPart<T> | null, idOf: (row: T) => string): number {
  if (!part) return 0;
  if (part.snapshot) return part.set.length;
  const has = (id: string): boolean => held.get(id) !== undefined;
  const added = part.set.filter((row) => !has(idOf(row))).length;
  return held.size - part.removed.filter(has).length + added;
}

function change<T, Row>(held: SortedMap<Row>, part: ReportPart<T>, entryOf: (row: T) => readonly [string, Row]): void {
  const entries = part.set.map(entryOf);
  const kept = new Set(entries.map(([id]) => id));
  const gone = part.snapshot ? [...held.keys()].filter((id) => !kept.has(id)) : part.removed;
  for (const id of gone) held.delete(id);
  for (const [id, row] of entries) held.set(id, row);
}

/**
 * Returns when the assignment of a context to its task began, or null if it has no task. An assignment begins with the
 * first report of the task. If a report in between shows the context without the task, the next report of the task
 * begins a new assignment.
 */
function assignedAt(before: HeldContext | undefined, { taskId }: ReportedContext, now: number): number | null {
  if (taskId === null) return null;
  return before?.taskId === taskId ? before.taskAssignedAt : now;
}

function countByWindow(contexts: Iterable<HeldContext>): Map<string, WindowCounts> {
  const counts = new Map<string, WindowCounts>();
  for (const { windowId, ownership, status, taskId } of contexts) {
    if (windowId === null || ownership !== 'worker' || status === 'closed') continue;
    const { workers, idle, busy } = counts.get(windowId) ?? { workers: 0, idle: 0, busy: 0 };
    const free = taskId === null ? 1 : 0;
    counts.set(windowId, { workers: workers + 1, idle: idle + free, busy: busy + 1 - free });
  }
  return counts;
}

function contextIdOf({ contextId }: ReportedContext): string {
  return contextId;
}

function windowIdOf({ windowId }: ReportedWindow): string {
  return windowId;
}
