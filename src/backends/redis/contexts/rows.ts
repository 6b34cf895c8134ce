/** Encodes reports of contexts and windows as arguments of a Redis program, and decodes the stored values. Pure. */
import type { ClientType } from '../../../core/connections/connection.ts';
import { connectionStatus } from '../../../core/connections/connection.ts';
import {
  contextStatus,
  type BrowserWindow,
  type ContextStatus,
  type ExecutionContext,
  type Reported,
  type ReportedContext,
  type ReportedWindow,
  type WindowCounts,
} from '../../../core/contexts/context.ts';
import type { ContextFilter, ContextReport, ReportPart } from '../../../core/contexts/store.ts';
import type { ClientKey } from '../../../core/ids.ts';
import { trustJson } from '../../../core/json.ts';
import type { LeaseView } from '../connections/look.ts';
import { stampsAt, stampsOf } from '../connections/rows.ts';
import type { Reply } from '../types.ts';

/** One part of a report as arguments of the act: what describes the part, and the texts of its rows. */
type PartArgs = { readonly shape: string; readonly texts: readonly string[] };

/** Encodes a report as the last arguments of the act contexts-report. */
export function reportArgs({ contexts, windows }: ContextReport): readonly string[] {
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
 * Encodes a context as JSON without its metadata, a line break, and the metadata as they were received. They are most
 * of a context, and as a JSON string they would grow with each quotation mark.
 */
function contextText({ metadata, ...row }: ReportedContext): string {
  const text = JSON.stringify(row);
  return metadata === null ? text : `${text}\n${metadata}`;
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
  'closeCode',
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

type Kept = { readonly reportedAt: number; readonly taskAssignedAt: number | null; readonly row: string };

/**
 * Reads `<reported at>|<task assigned at>|<place>|<task>|<row>`, as lib-contexts.lua writes it. Only the row may
 * contain a bar.
 */
function keptOf(value: string): Kept {
  const [reportedAt = '', assignedAt = '', place = '', task = ''] = value.split('|', 4);
  const start = reportedAt.length + assignedAt.length + place.length + task.length + 4;
  return {
    reportedAt: Number(reportedAt),
    taskAssignedAt: assignedAt === '' ? null : Number(assignedAt),
    row: value.slice(start),
  };
}

/**
 * A stored context that is decoded when it is first asked for. Most rows that a filter reads do not match it, and to
 * decode a row costs five times as much as to search its text.
 */
export class StoredContext {
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

  /** Returns false only if the context does not match the filter. A text in its metadata may look like a match. */
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

  /** Returns the statuses that the client may have reported if the context has one of these now. */
  #reported(statuses: readonly ContextStatus[]): readonly ContextStatus[] {
    if (!this.#reporter.linkLost) return statuses;
    return REPORTED_STATUSES.filter((status) => statuses.includes(contextStatus({ status, linkLost: true })));
  }
}

/** A stored value whose fourth field, the task, is empty. */
const WITHOUT_TASK = /^\d+\|[^|]*\|[^|]*\|\|/;
const REPORTED_STATUSES = ['active', 'idle', 'closed'] as const;

function contextOf({ reportsContexts: _, ...reporter }: Reporter, value: string): ExecutionContext {
  const { row, reportedAt, taskAssignedAt } = keptOf(value);
  return { ...reporter, reportedAt, ...contextIn(row), taskAssignedAt };
}

/** Decodes what `contextText` encoded. JSON.stringify writes no line break, so the first one ends the row. */
function contextIn(text: string): ReportedContext {
  const end = text.indexOf('\n');
  const row = JSON.parse(end < 0 ? text : text.slice(0, end)) as Omit<ReportedContext, 'metadata'>;
  return { ...row, metadata: end < 0 ? null : trustJson(text.slice(end + 1)) };
}

export function windowOf({ reportsContexts: _, ...reporter }: Reporter, value: string): BrowserWindow {
  const { row, reportedAt } = keptOf(value);
  return { ...reporter, reportedAt, ...(JSON.parse(row) as ReportedWindow) };
}

/** Reads `<workers>:<busy>`; both are 0 if there is no text. */
export function countsOf(text: string | undefined): WindowCounts {
  const [workers = 0, busy = 0] = (text ?? '0:0').split(':').map(Number);
  return { workers, idle: workers - busy, busy };
}
