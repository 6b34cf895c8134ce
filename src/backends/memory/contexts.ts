/** Core's ContextStore in memory: the execution contexts and browser windows that clients report. */
import type { Clock } from '../../core/clock.ts';
import { connectionStatus, isLive, type Connection } from '../../core/connections/connection.ts';
import {
  contextStatus,
  windowStatus,
  type BrowserWindow,
  type ExecutionContext,
  type Reported,
} from '../../core/contexts/context.ts';
import type {
  ContextFilter,
  ContextStore,
  CountedWindow,
  ReportOutcome,
  RowCount,
  WindowFilter,
} from '../../core/contexts/store.ts';
import type { ClientKey } from '../../core/ids.ts';
import { COUNT_SCAN } from '../../core/limits.ts';
import { scanSorted, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import { emptyInstance, fits, liveCounts, take } from './contexts-report.ts';
import { startIn, type ReportingInstance, type InstanceFilter, type ReportingInstances } from './contexts-clients.ts';
import type { SortedMap } from './sorted.ts';

export type MemoryContextsOptions = {
  readonly clock: Clock;
  readonly instances: ReportingInstances;
  /**
   * Reads the client's connection row. It forgets no expired rows, because the instances must not change while they are
   * read.
   */
  readonly peek: (key: ClientKey) => Connection | null;
};

/**
 * Creates core's ContextStore in memory. Reports are kept by client. Each row is shown with the present state of its
 * client's connection.
 */
export function createMemoryContexts(options: MemoryContextsOptions): ContextStore {
  const { instances } = options;
  const contexts = (filter: ContextFilter, after: Position | null) =>
    rowsOf(options, { filter, after, of: (instance) => instance.contexts });
  const windows = (filter: WindowFilter, after: Position | null) =>
    rowsOf(options, { filter, after, of: (instance) => instance.windows });
  const list = (filter: ContextFilter, page: PageRequest): Scan<ExecutionContext> =>
    scanSorted(contexts(filter, page.after), page, contextPosition, (context) => contextMatches(filter, context));
  const counted = (window: BrowserWindow): CountedWindow => {
    const instance = instances.get(window);
    return { window, live: instance ? liveCounts(instance, window.windowId) : null };
  };
  const listWindows = (filter: WindowFilter, page: PageRequest): Scan<CountedWindow> => {
    const keep = (window: BrowserWindow): boolean => windowMatches(filter, window);
    const scan = scanSorted(windows(filter, page.after), page, windowPosition, keep);
    return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: counted(row), position })) };
  };
  return {
    report(key, epoch, report): ReportOutcome {
      const connection = options.peek(key);
      const now = options.clock.now();
      if (!isLive(connection, now) || connection.epoch !== epoch) return 'fenced';
      const instance = instances.get(key) ?? emptyInstance(connection);
      if (!fits(instance, report)) return 'full';
      take(instance, report, now);
      instances.add(instance);
      return 'taken';
    },
    list,
    lists: (filters, first) => filters.map((filter) => list(filter, { first, after: null })),
    count: (filter) => countRows(contexts(filter, null), (context) => contextMatches(filter, context)),
    windows: listWindows,
    windowLists: (filters, first) => filters.map((filter) => listWindows(filter, { first, after: null })),
    windowCount: (filter) => countRows(windows(filter, null), (window) => windowMatches(filter, window)),
    windowsNamed(userId, windowId) {
      const filter = { userId, clientId: null, clientType: null, status: null, ownership: null };
      const found = windows(filter, null).filter((window) => window.windowId === windowId);
      return found.take(2).map(counted).toArray();
    },
    getContexts: (keys) => keys.map((key) => rowOf(options, key, ({ contexts: rows }) => rows.get(key.contextId))),
    getWindows: (keys) =>
      keys.map((key) => {
        const window = rowOf(options, key, ({ windows: rows }) => rows.get(key.windowId));
        return window && counted(window);
      }),
  };
}

type Held = Omit<Reported, 'linkLost'>;
type Reading<T> = {
  readonly filter: InstanceFilter;
  readonly after: Position | null;
  readonly of: (instance: ReportingInstance) => SortedMap<T>;
};

/** Returns one row of a client, or null if the client has no connection row. */
function rowOf<T extends Held>(
  { clock, instances, peek }: MemoryContextsOptions,
  key: ClientKey,
  of: (instance: ReportingInstance) => T | undefined,
): (T & { readonly linkLost: boolean }) | null {
  const instance = instances.get(key);
  const connection = instance ? peek(instance) : null;
  const row = instance && of(instance);
  if (!row || connection === null) return null;
  return { ...row, linkLost: connectionStatus(connection, clock.now()) !== 'connected' };
}

/** Reads the rows of the clients that match the filter and have a connection row, ordered by (user, client, row). */
function* rowsOf<T extends Held>(
  { clock, instances, peek }: MemoryContextsOptions,
  { filter, after, of }: Reading<T>,
): Generator<T & { readonly linkLost: boolean }> {
  for (const instance of instances.from(filter, after)) {
    const connection = peek(instance);
    if (connection === null) continue;
    const linkLost = connectionStatus(connection, clock.now()) !== 'connected';
    for (const row of of(instance).values({ after: startIn(instance, after) })) yield { ...row, linkLost };
  }
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

function windowMatches(filter: WindowFilter, window: BrowserWindow): boolean {
  return (
    (filter.status === null || windowStatus(window) === filter.status) &&
    (filter.ownership === null || window.ownership === filter.ownership)
  );
}

function countRows<T>(rows: Iterable<T>, keep: (row: T) => boolean): RowCount {
  let seen = 0;
  let count = 0;
  for (const row of rows) {
    if (seen++ === COUNT_SCAN) return { count, complete: false };
    if (keep(row)) count++;
  }
  return { count, complete: true };
}

function contextPosition({ userId, clientId, contextId }: ExecutionContext): Position {
  return [userId, clientId, contextId];
}

function windowPosition({ userId, clientId, windowId }: BrowserWindow): Position {
  return [userId, clientId, windowId];
}
