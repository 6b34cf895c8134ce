import type { ClientType } from '../connections/connection.ts';
import type { ClientKey } from '../ids.ts';
import type { JsonText } from '../json.ts';

export type ContextStatus = 'active' | 'idle' | 'closed' | 'stale';
export type Ownership = 'user-owned' | 'worker';
export type WindowStatus = 'open' | 'stale' | 'closed';

/** What a client may say of one of its contexts; `stale` is derived and never reported. */
export type ReportedContext = {
  readonly contextId: string;
  readonly status: Exclude<ContextStatus, 'stale'>;
  readonly ownership: Ownership;
  readonly windowId: string | null;
  /** A current registry assignment only: it proves no durable job and no external effect. */
  readonly taskId: string | null;
  readonly title: string | null;
  readonly metadata: JsonText | null;
};

/** When a row was last reported, and by which run of which client. */
export type Reported = ClientKey & {
  readonly clientType: ClientType;
  readonly instanceId: string;
  readonly reportedAt: number;
  /** True while the link is down or silent: the status shown is then `stale`, unless it is `closed`. */
  readonly linkLost: boolean;
};

/** An execution site as its client last reported it. Immutable. */
export type ExecutionContext = Reported &
  ReportedContext & {
    /** When the present task was first reported; null without one. */
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
  /** The client's own counts: shown where it reports no contexts. */
  readonly workerCount: number;
  readonly idleCount: number;
  readonly busyCount: number;
};

export type BrowserWindow = Reported & ReportedWindow;

/** Worker contexts of a window that are not closed: without a task they are idle, with one busy. */
export type WindowCounts = { readonly workers: number; readonly idle: number; readonly busy: number };

export function contextStatus({ status, linkLost }: ExecutionContext): ContextStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}

export function windowStatus({ status, linkLost }: BrowserWindow): WindowStatus {
  return linkLost && status !== 'closed' ? 'stale' : status;
}
