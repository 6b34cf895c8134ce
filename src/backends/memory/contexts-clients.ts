/** What each client's instance reports, ordered by client. */
import type { ClientType } from '../../core/connections/connection.ts';
import type { BrowserWindow, ExecutionContext, WindowCounts } from '../../core/contexts/context.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import type { Position } from '../../core/page.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

export type HeldContext = Omit<ExecutionContext, 'linkLost'>;
export type HeldWindow = Omit<BrowserWindow, 'linkLost'>;

/** All that one instance of a client reports. */
export type ReportingInstance = ClientKey & {
  readonly instanceId: string;
  readonly clientType: ClientType;
  readonly contexts: SortedMap<HeldContext>;
  readonly windows: SortedMap<HeldWindow>;
  /** True once the instance reported contexts, even an empty list. */
  reportsContexts: boolean;
  /** The counts of contexts by window; computed at the first read after a report, and null until then. */
  counts: ReadonlyMap<string, WindowCounts> | null;
};

export type InstanceFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
};

/** The reports of all clients, ordered by (user, client). While `from` is read, none may be added or dropped. */
export interface ReportingInstances {
  get(key: ClientKey): ReportingInstance | undefined;
  add(instance: ReportingInstance): void;
  /** Drops all that a client reported, because its row was forgotten or belongs to another instance. */
  drop(key: ClientKey): void;
  /** The instances that match the filter, beginning with the one that `after` names. */
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

/** The row after which a page begins in these rows; null: the page begins with the first one. */
export function startIn(instance: ReportingInstance, after: Position | null): string | null {
  const [userId, clientId, row] = after ?? [];
  return row !== undefined && clientKeyText(instance) === `${userId}/${clientId}` ? row : null;
}

/** Sorts as the tuple (user, client) does, because the separator is below every character that the two may contain. */
function orderKey({ userId, clientId }: ClientKey): string {
  return `${userId}\n${clientId}`;
}
