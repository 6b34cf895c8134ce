import type { Clock } from '../../core/clock.ts';
import {
  contextStatus,
  windowStatus,
  type BrowserWindow,
  type ExecutionContext,
  type ReportedContext,
  type WindowCounts,
} from '../../core/contexts/context.ts';
import type {
  ContextFilter,
  ContextStore,
  CountedWindow,
  Report,
  Reporter,
  ReportOutcome,
  WindowFilter,
} from '../../core/contexts/store.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, COUNT_SCAN } from '../../core/limits.ts';
import { scanSorted, type Position } from '../../core/page.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

/** What one client reports. `counts` is made when first asked for after a report. */
type Site = {
  readonly contexts: Map<string, ExecutionContext>;
  readonly windows: Map<string, BrowserWindow>;
  reportsContexts: boolean;
  counts: Map<string, WindowCounts> | null;
};

/** core's ContextStore in one process: every row once by client, for the acts, and once in order, for the listings. */
export function createMemoryContexts(clock: Clock): ContextStore {
  const sites = new Map<string, Site>();
  const contexts = createSortedMap<ExecutionContext>();
  const windows = createSortedMap<BrowserWindow>();
  const counted = (window: BrowserWindow): CountedWindow => ({
    window,
    live: liveCounts(sites.get(clientKeyText(window)), window.windowId),
  });
  return {
    report: (reporter, report) => take({ sites, contexts, windows, now: clock.now() }, reporter, report),
    mark(key, link) {
      const site = sites.get(clientKeyText(key));
      const linkLost = link === 'lost';
      for (const context of site?.contexts.values() ?? []) putContext(site, contexts, { ...context, linkLost });
      for (const window of site?.windows.values() ?? []) putWindow(site, windows, { ...window, linkLost });
    },
    drop(key) {
      const site = sites.get(clientKeyText(key));
      if (!site) return;
      for (const { contextId } of site.contexts.values()) contexts.delete(orderKey(key, contextId));
      for (const { windowId } of site.windows.values()) windows.delete(orderKey(key, windowId));
      sites.delete(clientKeyText(key));
    },
    list: (filter, page) =>
      scanSorted(within(contexts, filter, page.after), page, contextPosition, (context) =>
        contextMatches(filter, context),
      ),
    count: (filter) => countRows(within(contexts, filter, null), (context) => contextMatches(filter, context)),
    windows(filter, page) {
      const scan = scanSorted(within(windows, filter, page.after), page, windowPosition, (window) =>
        windowMatches(filter, window),
      );
      return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: counted(row), position })) };
    },
    windowCount: (filter) => countRows(within(windows, filter, null), (window) => windowMatches(filter, window)),
    window(userId, windowId) {
      for (const window of within(windows, { userId, clientId: null }, null))
        if (window.windowId === windowId) return counted(window);
      return null;
    },
  };
}

type State = {
  readonly sites: Map<string, Site>;
  readonly contexts: SortedMap<ExecutionContext>;
  readonly windows: SortedMap<BrowserWindow>;
  readonly now: number;
};

function take(state: State, reporter: Reporter, report: Report): ReportOutcome {
  const text = clientKeyText(reporter);
  const site: Site = state.sites.get(text) ?? {
    contexts: new Map(),
    windows: new Map(),
    reportsContexts: false,
    counts: null,
  };
  if (!fits(site.contexts, report.contexts, ({ contextId }) => contextId, CLIENT_CONTEXTS)) return 'full';
  if (!fits(site.windows, report.windows, ({ windowId }) => windowId, CLIENT_WINDOWS)) return 'full';
  state.sites.set(text, site);
  if (report.contexts) takeContexts(state, site, { reporter, part: report.contexts });
  if (report.windows) takeWindows(state, site, { reporter, part: report.windows });
  return 'taken';
}

type Part<T> = { readonly snapshot: boolean; readonly set: readonly T[]; readonly removed: readonly string[] };

/** How many there would be afterwards, against the bound. */
function fits<T>(
  held: ReadonlyMap<string, unknown>,
  part: Part<T> | null,
  idOf: (row: T) => string,
  bound: number,
): boolean {
  if (!part) return true;
  const after = new Set(part.snapshot ? [] : held.keys());
  for (const gone of part.removed) after.delete(gone);
  for (const row of part.set) after.add(idOf(row));
  return after.size <= bound;
}

/** What a part takes away: all that a snapshot leaves out, and what is named. */
function goneBy<T>(
  held: ReadonlyMap<string, unknown>,
  { snapshot, set, removed }: Part<T>,
  idOf: (row: T) => string,
): string[] {
  if (!snapshot) return [...removed];
  const kept = new Set(set.map(idOf));
  return [...held.keys()].filter((key) => !kept.has(key));
}

function takeContexts(
  { contexts, now }: State,
  site: Site,
  { reporter, part }: { reporter: Reporter; part: Part<ReportedContext> },
): void {
  site.reportsContexts = true;
  site.counts = null;
  for (const contextId of goneBy(site.contexts, part, (context) => context.contextId)) {
    site.contexts.delete(contextId);
    contexts.delete(orderKey(reporter, contextId));
  }
  for (const reported of part.set) {
    const before = site.contexts.get(reported.contextId);
    const since = before && before.taskId === reported.taskId ? before.taskAssignedAt : now;
    const taskAssignedAt = reported.taskId === null ? null : since;
    putContext(site, contexts, { ...reporter, ...reported, taskAssignedAt, reportedAt: now, linkLost: false });
  }
}

function takeWindows(
  { windows, now }: State,
  site: Site,
  { reporter, part }: { reporter: Reporter; part: NonNullable<Report['windows']> },
): void {
  for (const windowId of goneBy(site.windows, part, (window) => window.windowId)) {
    site.windows.delete(windowId);
    windows.delete(orderKey(reporter, windowId));
  }
  for (const reported of part.set)
    putWindow(site, windows, { ...reporter, ...reported, reportedAt: now, linkLost: false });
}

function putContext(site: Site | undefined, contexts: SortedMap<ExecutionContext>, context: ExecutionContext): void {
  site?.contexts.set(context.contextId, context);
  contexts.set(orderKey(context, context.contextId), context);
}

function putWindow(site: Site | undefined, windows: SortedMap<BrowserWindow>, window: BrowserWindow): void {
  site?.windows.set(window.windowId, window);
  windows.set(orderKey(window, window.windowId), window);
}

function liveCounts(site: Site | undefined, windowId: string): WindowCounts | null {
  if (!site?.reportsContexts) return null;
  site.counts ??= countByWindow(site.contexts.values());
  return site.counts.get(windowId) ?? { workers: 0, idle: 0, busy: 0 };
}

function countByWindow(contexts: Iterable<ExecutionContext>): Map<string, WindowCounts> {
  const counts = new Map<string, WindowCounts>();
  for (const { windowId, ownership, status, taskId } of contexts) {
    if (windowId === null || ownership !== 'worker' || status === 'closed') continue;
    const { workers, idle, busy } = counts.get(windowId) ?? { workers: 0, idle: 0, busy: 0 };
    counts.set(windowId, {
      workers: workers + 1,
      idle: idle + (taskId === null ? 1 : 0),
      busy: busy + (taskId === null ? 0 : 1),
    });
  }
  return counts;
}

/** Sorts as the tuple (user, client, id) does: the separator is below every character that the three may hold. */
function orderKey({ userId, clientId }: ClientKey, id: string): string {
  return `${userId}\n${clientId}\n${id}`;
}

/** Rows of the filter's user and client, where it names them, after the position. */
function* within<T extends ClientKey>(
  rows: SortedMap<T>,
  { userId, clientId }: { readonly userId: string | null; readonly clientId: string | null },
  after: Position | null,
): Generator<T> {
  const prefix = userId === null ? '' : clientId === null ? `${userId}\n` : `${userId}\n${clientId}\n`;
  for (const row of rows.values({ from: prefix, after: after?.join('\n') ?? null })) {
    if (userId !== null && row.userId !== userId) return;
    if (userId !== null && clientId !== null && row.clientId !== clientId) return;
    yield row;
  }
}

function contextMatches(filter: ContextFilter, context: ExecutionContext): boolean {
  return (
    (filter.clientId === null || context.clientId === filter.clientId) &&
    (filter.clientType === null || context.clientType === filter.clientType) &&
    (filter.status === null || contextStatus(context) === filter.status) &&
    (filter.ownership === null || context.ownership === filter.ownership) &&
    (filter.windowId === null || context.windowId === filter.windowId)
  );
}

function windowMatches(filter: WindowFilter, window: BrowserWindow): boolean {
  return (
    (filter.clientId === null || window.clientId === filter.clientId) &&
    (filter.clientType === null || window.clientType === filter.clientType) &&
    (filter.status === null || windowStatus(window) === filter.status) &&
    (filter.ownership === null || window.ownership === filter.ownership)
  );
}

function countRows<T>(rows: Iterable<T>, keep: (row: T) => boolean): { count: number; complete: boolean } {
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
