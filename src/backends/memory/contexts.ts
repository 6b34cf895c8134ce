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
import { contextsInWindow, emptyInstance, fits, liveCounts, take } from './contexts-report.ts';
import {
  startIn,
  type HeldContext,
  type HeldWindow,
  type InstanceFilter,
  type ReportingInstance,
  type ReportingInstances,
} from './contexts-clients.ts';
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
      take(instance, report, now);
      instances.add(instance);
      return 'taken';
    },
    list,
    lists: (filters, first) => filters.map((filter) => list(filter, { first, after: null })),
    count: ({ userId, clientId, clientType, ...of }) =>
      countRows(options, {
        filter: { userId, clientId, clientType },
        of: (instance) => instance.contexts,
        keep: isAny(of) ? null : (seen) => contextMatches(of, seen),
      }),
    windows: listWindows,
    windowLists: (filters, first) => filters.map((filter) => listWindows(filter, { first, after: null })),
    windowCount: ({ userId, clientId, clientType, ...of }) =>
      countRows(options, {
        filter: { userId, clientId, clientType },
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

type Held = Omit<Reported, 'linkLost'>;
/** A row, and whether its client's link is down or silent. */
type Seen<T> = { readonly row: T; readonly linkLost: boolean };
type Reach<T> = {
  readonly filter: InstanceFilter;
  readonly after: Position | null;
  /** Reads the rows of a client in order, after the row `from`. */
  readonly of: (instance: ReportingInstance, from: string | null) => Iterable<T>;
};

function withLink<T extends Held>({ row, linkLost }: Seen<T>): T & { readonly linkLost: boolean } {
  return { ...row, linkLost };
}

function shown<T, U>(scan: Scan<T>, show: (row: T) => U): Scan<U> {
  return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: show(row), position })) };
}

/**
 * Reads the contexts of a client that may match a filter. If the filter names the client and a window, only those in the
 * window are read, because a document may ask for each window of a client.
 */
function contextsOf(
  instance: ReportingInstance,
  { clientId, windowId }: ContextFilter,
  after: string | null,
): Iterable<HeldContext> {
  if (clientId === null || windowId === null) return instance.contexts.values({ after });
  const inWindow = contextsInWindow(instance, windowId);
  return after === null ? inWindow : inWindow.filter(({ contextId }) => contextId > after);
}

/** Returns one row of a client, or null if the client has no connection row. */
function rowOf<T extends Held>(
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
function* rowsOf<T extends Held>(
  { clock, instances, peek }: MemoryContextsOptions,
  { filter, after, of }: Reach<T>,
): Generator<Seen<T>> {
  for (const instance of instances.from(filter, after)) {
    const connection = peek(instance);
    if (connection === null) continue;
    const linkLost = connectionStatus(connection, clock.now()) !== 'connected';
    for (const row of of(instance, startIn(instance, after))) yield { row, linkLost };
  }
}

function contextMatches(
  filter: Omit<ContextFilter, keyof InstanceFilter>,
  { row, linkLost }: Seen<HeldContext>,
): boolean {
  return (
    (filter.statuses === null || filter.statuses.includes(contextStatus({ status: row.status, linkLost }))) &&
    (filter.ownership === null || row.ownership === filter.ownership) &&
    (filter.windowId === null || row.windowId === filter.windowId) &&
    (filter.assigned === null || (row.taskId !== null) === filter.assigned) &&
    (filter.taskId === null || row.taskId === filter.taskId)
  );
}

function windowMatches(filter: Omit<WindowFilter, keyof InstanceFilter>, { row, linkLost }: Seen<HeldWindow>): boolean {
  return (
    (filter.status === null || windowStatus({ status: row.status, linkLost }) === filter.status) &&
    (filter.ownership === null || row.ownership === filter.ownership)
  );
}

/** Whether a filter of rows matches every row. */
function isAny(filter: object): boolean {
  return Object.values(filter).every((member) => member === null);
}

type Counted<T> = {
  readonly filter: InstanceFilter;
  readonly of: (instance: ReportingInstance) => SortedMap<T>;
  /** Whether a row counts; null: all do, and none is looked at. */
  readonly keep: ((seen: Seen<T>) => boolean) | null;
};

function countRows<T>({ clock, instances, peek }: MemoryContextsOptions, { filter, of, keep }: Counted<T>): RowCount {
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

function contextPosition({ row: { userId, clientId, contextId } }: Seen<HeldContext>): Position {
  return [userId, clientId, contextId];
}

function windowPosition({ row: { userId, clientId, windowId } }: Seen<HeldWindow>): Position {
  return [userId, clientId, windowId];
}
