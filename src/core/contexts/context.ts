/** Execution contexts and browser windows, as clients report them. */
import type { ClientType } from '../connections/connection.ts';
import type { ClientKey } from '../ids.ts';
import type { JsonText } from '../json.ts';

export type ContextStatus = 'active' | 'idle' | 'closed' | 'stale';
export type Ownership = 'user-owned' | 'worker';
export type WindowStatus = 'open' | 'stale' | 'closed';

/** A context as its client reports it. The status `stale` is derived and never reported. */
export type ReportedContext = {
  readonly contextId: string;
  readonly status: Exclude<ContextStatus, 'stale'>;
  readonly ownership: Ownership;
  readonly windowId: string | null;
  /** The current assignment in this registry only: it proves neither a durable job nor an external effect. */
  readonly taskId: string | null;
  readonly title: string | null;
  readonly metadata: JsonText | null;
};

/** Names the instance of the client that last reported a row, and when it did (epoch milliseconds). */
export type Reported = ClientKey & {
  readonly clientType: ClientType;
  readonly instanceId: string;
  readonly reportedAt: number;
  /** True while the client's link is down or silent. The status is then shown as `stale`, unless it is `closed`. */
  readonly linkLost: boolean;
};

/** An execution context as its client last reported it. Immutable. */
export type ExecutionContext = Reported &
  ReportedContext & {
    /** When the current task was first reported, epoch milliseconds; null without a task. */
    readonly taskAssignedAt: number | null;
  };

export type ReportedWindow = {
  readonly windowId: string;
  readonly ownership: Ownership;
  readonly focused: boolean;
  readonly type: string;
  readonly state: string;
  readonly incognito: boolean;
  readonly tabCount: number;
  readonly capacity: number | null;
  readonly draining: boolean;
  readonly status: Exclude<WindowStatus, 'stale'>;
  /** The client's own counts, which are shown if it reports no contexts. */
  readonly workerCount: number;
  readonly idleCount: number;
  readonly busyCount: number;
};

export type BrowserWindow = Reported & ReportedWindow;

/**
 * The numbers of a window's worker contexts that are not closed: in all, without a task (`idle`), and with one
 * (`busy`).
 */
export type WindowCounts = { readonly workers: number; readonly idle: number; readonly busy: number };

export function contextStatus({ status, linkLost }: Pick<ExecutionContext, 'status' | 'linkLost'>): ContextStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}

export function windowStatus({ status, linkLost }: Pick<BrowserWindow, 'status' | 'linkLost'>): WindowStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}
