import type { ClientType } from '../../../core/connections/connection.ts';
import { connectionStatus } from '../../../core/connections/connection.ts';
import type {
  BrowserWindow,
  ExecutionContext,
  Reported,
  ReportedContext,
  ReportedWindow,
  WindowCounts,
} from '../../../core/contexts/context.ts';
import type { ReportPart } from '../../../core/contexts/store.ts';
import type { ClientKey } from '../../../core/ids.ts';
import type { Standing } from '../connections/look.ts';
import { stampsAt, stampsOf } from '../connections/rows.ts';
import type { Reply } from '../types.ts';

/** A part of a report as the act takes it. */
export function contextsText(part: ReportPart<ReportedContext> | null): string {
  if (part === null) return '';
  const { snapshot, set, removed } = part;
  return JSON.stringify({
    snapshot,
    removed,
    ids: set.map(({ contextId }) => contextId),
    rows: set.map((row) => JSON.stringify(row)),
    tasks: set.map(({ taskId }) => encodeURIComponent(taskId ?? '')),
    places: set.map(placeOf),
  });
}

export function windowsText(part: ReportPart<ReportedWindow> | null): string {
  if (part === null) return '';
  const { snapshot, set, removed } = part;
  const none = set.map(() => '');
  const ids = set.map(({ windowId }) => windowId);
  return JSON.stringify({
    snapshot,
    removed,
    ids,
    rows: set.map((row) => JSON.stringify(row)),
    tasks: none,
    places: none,
  });
}

/** The window in which a context counts as a worker, led by whether it has a task; empty where it does not count. */
function placeOf({ windowId, ownership, status, taskId }: ReportedContext): string {
  if (windowId === null || ownership !== 'worker' || status === 'closed') return '';
  return `${taskId === null ? 0 : 1}${placeName(windowId)}`;
}

/** A window as `ctxwin` names it. */
export function placeName(windowId: string): string {
  return encodeURIComponent(windowId);
}

/** What a client's row says of all that it reported. */
export type Reporter = Omit<Reported, 'reportedAt'> & { readonly reportsContexts: boolean };

/** Fields of a client's row that a reporter is made of, in this order. */
export const REPORTER_FIELDS = [
  'instanceId',
  'clientType',
  'nodeId',
  'lastSeenAt',
  'disconnectedAt',
  'disconnectCause',
  'reportsContexts',
] as const;

/** Null: the row is not there, or past its time. */
export function reporterOf(key: ClientKey, values: readonly Reply[], standing: Standing): Reporter | null {
  const row = new Map<string, string>();
  REPORTER_FIELDS.forEach((name, i) => {
    const value = values[i];
    if (typeof value === 'string') row.set(name, value);
  });
  const stamps = row.has('instanceId') ? stampsAt(stampsOf(row), standing) : null;
  return (
    stamps && {
      ...key,
      clientType: row.get('clientType') as ClientType,
      instanceId: row.get('instanceId') ?? '',
      linkLost: connectionStatus(stamps, standing.now) !== 'connected',
      reportsContexts: row.has('reportsContexts'),
    }
  );
}

type Kept<T> = { readonly reportedAt: number; readonly taskAssignedAt: number | null; readonly row: T };

/** `<reported at>|<task assigned at>|<place>|<task>|<row>`, as lib-contexts.lua writes it; only the row may hold a bar. */
function keptOf<T>(value: string): Kept<T> {
  const [reportedAt = '', assignedAt = '', place = '', task = ''] = value.split('|', 4);
  const start = reportedAt.length + assignedAt.length + place.length + task.length + 4;
  return {
    reportedAt: Number(reportedAt),
    taskAssignedAt: assignedAt === '' ? null : Number(assignedAt),
    row: JSON.parse(value.slice(start)) as T,
  };
}

export function contextOf({ reportsContexts: _, ...reporter }: Reporter, value: string): ExecutionContext {
  const { row, reportedAt, taskAssignedAt } = keptOf<ReportedContext>(value);
  return { ...reporter, reportedAt, ...row, taskAssignedAt };
}

export function windowOf({ reportsContexts: _, ...reporter }: Reporter, value: string): BrowserWindow {
  const { row, reportedAt } = keptOf<ReportedWindow>(value);
  return { ...reporter, reportedAt, ...row };
}

/** Out of `<workers>:<busy>`; a window that nothing was counted for has none. */
export function countsOf(text: string | undefined): WindowCounts {
  const [workers = 0, busy = 0] = (text ?? '0:0').split(':').map(Number);
  return { workers, idle: workers - busy, busy };
}
