/** Encodes reports of contexts and windows as arguments of a Redis program, and decodes the stored values. Pure. */
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
import type { LeaseView } from '../connections/look.ts';
import { stampsAt, stampsOf } from '../connections/rows.ts';
import type { Reply } from '../types.ts';

/** Encodes the contexts of a report as an argument of the act. */
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

/** Encodes the windows of a report as an argument of the act. */
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

/**
 * Returns '1' if a context has a task, else '0', followed by the window in which the context counts as a worker.
 * Returns '' if it does not count as a worker.
 */
function placeOf({ windowId, ownership, status, taskId }: ReportedContext): string {
  if (windowId === null || ownership !== 'worker' || status === 'closed') return '';
  return `${taskId === null ? 0 : 1}${placeName(windowId)}`;
}

/** Returns the field of a window in the HASH `ctxwin`. */
export function placeName(windowId: string): string {
  return encodeURIComponent(windowId);
}

/** The facts in a client's row that apply to all contexts and windows that the client reported. */
export type Reporter = Omit<Reported, 'reportedAt'> & { readonly reportsContexts: boolean };

/** The fields of a client's row that `reporterOf` needs, in this order. */
export const REPORTER_FIELDS = [
  'instanceId',
  'clientType',
  'nodeId',
  'lastSeenAt',
  'disconnectedAt',
  'disconnectCause',
  'reportsContexts',
] as const;

/** Decodes REPORTER_FIELDS of a client's row. Returns null if there is no row, or the row is due to be forgotten. */
export function reporterOf(key: ClientKey, values: readonly Reply[], leases: LeaseView): Reporter | null {
  const row = new Map<string, string>();
  REPORTER_FIELDS.forEach((name, i) => {
    const value = values[i];
    if (typeof value === 'string') row.set(name, value);
  });
  const stamps = row.has('instanceId') ? stampsAt(stampsOf(row), leases) : null;
  return (
    stamps && {
      ...key,
      clientType: row.get('clientType') as ClientType,
      instanceId: row.get('instanceId') ?? '',
      linkLost: connectionStatus(stamps, leases.now) !== 'connected',
      reportsContexts: row.has('reportsContexts'),
    }
  );
}

type Kept<T> = { readonly reportedAt: number; readonly taskAssignedAt: number | null; readonly row: T };

/**
 * Reads `<reported at>|<task assigned at>|<place>|<task>|<row>`, as lib-contexts.lua writes it. Only the row may
 * contain a bar.
 */
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

/** Reads `<workers>:<busy>`; both are 0 if there is no text. */
export function countsOf(text: string | undefined): WindowCounts {
  const [workers = 0, busy = 0] = (text ?? '0:0').split(':').map(Number);
  return { workers, idle: workers - busy, busy };
}
