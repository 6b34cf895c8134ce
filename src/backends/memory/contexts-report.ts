/**
 * Computes the contexts and windows of one client after a report. It changes the instance that it is given, and stores
 * nothing.
 */
import type { Connection } from '../../core/connections/connection.ts';
import type { ReportedContext, ReportedWindow, WindowCounts } from '../../core/contexts/context.ts';
import type { ContextReport, ReportPart } from '../../core/contexts/store.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS } from '../../core/limits.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';
import type { HeldContext, ReportingInstance } from './contexts-clients.ts';

/** Creates the state of this connection's instance before its first report: no contexts and no windows. */
export function emptyInstance({ userId, clientId, instanceId, clientType }: Connection): ReportingInstance {
  return {
    userId,
    clientId,
    instanceId,
    clientType,
    contexts: createSortedMap(),
    windows: createSortedMap(),
    reportsContexts: false,
    counts: null,
    byWindow: null,
  };
}

/** Returns whether the instance would stay within its bounds if the report were accepted. */
export function fits(instance: ReportingInstance, { contexts, windows }: ContextReport): boolean {
  return (
    sizeAfter(instance.contexts, contexts, contextIdOf) <= CLIENT_CONTEXTS &&
    sizeAfter(instance.windows, windows, windowIdOf) <= CLIENT_WINDOWS
  );
}

/** Applies a report that fits to the state of its instance. */
export function take(instance: ReportingInstance, { contexts, windows }: ContextReport, now: number): void {
  const { userId, clientId, instanceId, clientType } = instance;
  const stamp = { userId, clientId, instanceId, clientType, reportedAt: now };
  if (contexts) {
    instance.reportsContexts = true;
    instance.counts = null;
    instance.byWindow = null;
    change(instance.contexts, contexts, (reported) => {
      const taskAssignedAt = assignedAt(instance.contexts.get(reported.contextId), reported, now);
      return [reported.contextId, { ...stamp, ...reported, taskAssignedAt }];
    });
  }
  if (windows) change(instance.windows, windows, (reported) => [reported.windowId, { ...stamp, ...reported }]);
}

/** Counts the workers of a window from the client's contexts. Returns null if the client reports no contexts. */
export function liveCounts(instance: ReportingInstance, windowId: string): WindowCounts | null {
  if (!instance.reportsContexts) return null;
  instance.counts ??= countByWindow(instance.contexts.values());
  return instance.counts.get(windowId) ?? { workers: 0, idle: 0, busy: 0 };
}

/** Returns the contexts in a window, in order of their ids. */
export function contextsInWindow(instance: ReportingInstance, windowId: string): readonly HeldContext[] {
  instance.byWindow ??= Map.groupBy(instance.contexts.values(), (context) => context.windowId);
  return instance.byWindow.get(windowId) ?? [];
}

/**
 * Returns how many rows there would be after a part of a report, or 0 if `part` is null. Looks only at the rows that
 * the part names.
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
 * first report of the task. If the client reports the context without that task in between, a later report of the same
 * task begins a new assignment.
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
