/** Holds the contexts and windows that each client's instance reports, ordered by user and client. */
import type { ClientType } from '../../core/connections/connection.ts';
import type { BrowserWindow, ExecutionContext, WindowCounts } from '../../core/contexts/context.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import type { Position } from '../../core/page.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

export type HeldContext = Omit<ExecutionContext, 'linkLost'>;
export type HeldWindow = Omit<BrowserWindow, 'linkLost'>;

/** The contexts and windows that one instance of a client reported. */
export type ReportingInstance = ClientKey & {
  readonly instanceId: string;
  readonly clientType: ClientType;
  readonly contexts: SortedMap<HeldContext>;
  readonly windows: SortedMap<HeldWindow>;
  /** True once the instance reported a list of contexts, even an empty one. */
  reportsContexts: boolean;
  /** The number of contexts in each window, computed at the first read after a report; null until then. */
  counts: ReadonlyMap<string, WindowCounts> | null;
  /** The contexts in each window, in order of their ids, grouped at the first read after a report; null until then. */
  byWindow: ReadonlyMap<string | null, readonly HeldContext[]> | null;
};

export type InstanceFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
};

/**
 * The reports of all clients, ordered by (user, client). While the result of `from` is being read, no client may be
 * added or dropped.
 */
export interface ReportingInstances {
  get(key: ClientKey): ReportingInstance | undefined;
  add(instance: ReportingInstance): void;
  /** Drops the reports of a client, because the client's row was forgotten or belongs to another instance. */
  drop(key: ClientKey): void;
  /** Reads the instances that match the filter, beginning with the one that `after` names. */
  from(filter: InstanceFilter, after: Position | null): IteratorObject<ReportingInstance>;
}

export function createReportingInstances(): ReportingInstances {
  const instances = createSortedMap<ReportingInstance>();
  return {
    get: (key) => instances.get(orderKey(key)),
    add: (instance) => instances.set(orderKey(instance), instance),
    drop: (key) => void instances.delete(orderKey(key)),
    *from({ userId, clientId, clientType }, after) {
      const start = after === null ? null : orderKey({ userId: after[0] ?? '', clientId: after[1] ?? '' });
      const prefix = userId === null ? '' : orderKey({ userId, clientId: clientId ?? '' });
      for (const instance of instances.values({ from: start !== null && start > prefix ? start : prefix })) {
        if (userId !== null && instance.userId !== userId) return;
        if (userId !== null && clientId !== null && instance.clientId !== clientId) return;
        const kept = clientId === null || instance.clientId === clientId;
        if (kept && (clientType === null || instance.clientType === clientType)) yield instance;
      }
    },
  };
}

/**
 * Returns the row of this instance after which a page begins, or null if the page begins with the instance's first row.
 */
export function startIn(instance: ReportingInstance, after: Position | null): string | null {
  const [userId, clientId, row] = after ?? [];
  return row !== undefined && clientKeyText(instance) === `${userId}/${clientId}` ? row : null;
}

/**
 * Makes a key that sorts as the tuple (user, client) does. The separator sorts before every character that an id may
 * contain.
 */
function orderKey({ userId, clientId }: ClientKey): string {
  return `${userId}\n${clientId}`;
}
