/** Offers helpers to the contract tests of contexts: rows, reports and filters. */
import type {
  ReportedContext,
  ReportedWindow,
  ContextFilter,
  ContextReport,
  ReportPart,
  WindowFilter,
} from '../../../src/core/contexts/context.ts';
import type { Position, Scan } from '../../../src/core/page.ts';
import type { Bench } from './bench.ts';

export const ANY_CONTEXT: ContextFilter = {
  userId: null,
  clientId: null,
  clientType: null,
  statuses: null,
  ownership: null,
  windowId: null,
  assigned: null,
  taskId: null,
};
export const ANY_WINDOW: WindowFilter = {
  userId: null,
  clientId: null,
  clientType: null,
  status: null,
  ownership: null,
};

export function context(contextId: string, over: Partial<ReportedContext> = {}): ReportedContext {
  return {
    contextId,
    status: 'active',
    ownership: 'user-owned',
    windowId: null,
    taskId: null,
    title: null,
    metadata: null,
    ...over,
  };
}

export function worker(contextId: string, over: Partial<ReportedContext> = {}): ReportedContext {
  return context(contextId, { ownership: 'worker', status: 'idle', ...over });
}

export function browserWindow(windowId: string, over: Partial<ReportedWindow> = {}): ReportedWindow {
  return {
    windowId,
    ownership: 'user-owned',
    focused: false,
    type: 'normal',
    state: 'maximized',
    incognito: false,
    tabCount: 3,
    capacity: null,
    draining: false,
    status: 'open',
    workerCount: 7,
    idleCount: 4,
    busyCount: 3,
    ...over,
  };
}

export function snapshot<T>(...set: readonly T[]): ReportPart<T> {
  return { snapshot: true, set, removed: [] };
}

export function delta<T>(set: readonly T[], ...removed: readonly string[]): ReportPart<T> {
  return { snapshot: false, set, removed };
}

export function report(contexts: ContextReport['contexts'], windows: ContextReport['windows'] = null): ContextReport {
  return { contexts, windows };
}

/** Returns `user/client/context` of the first thousand rows. */
export async function contextIds({ backend }: Bench, over: Partial<ContextFilter> = {}): Promise<string[]> {
  const { rows } = await backend.contexts.list({ ...ANY_CONTEXT, ...over }, { first: 1000, after: null });
  return rows.map(({ row }) => `${row.userId}/${row.clientId}/${row.contextId}`);
}

export async function windowIds({ backend }: Bench, over: Partial<WindowFilter> = {}): Promise<string[]> {
  const { rows } = await backend.contexts.windows({ ...ANY_WINDOW, ...over }, { first: 1000, after: null });
  return rows.map(({ row: { window } }) => `${window.userId}/${window.clientId}/${window.windowId}`);
}

/** Returns all rows of a listing, read page by page. `between` runs after each page. */
export async function allPages<T>(
  page: (after: Position | null) => Scan<T> | Promise<Scan<T>>,
  between: () => unknown = () => {},
): Promise<T[]> {
  const found: T[] = [];
  let after: Position | null = null;
  do {
    const scan: Scan<T> = await page(after);
    found.push(...scan.rows.map(({ row }) => row));
    after = scan.next;
    await between();
  } while (after !== null);
  return found;
}
