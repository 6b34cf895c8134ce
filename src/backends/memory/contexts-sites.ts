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
  /** By window; computed at the first read after a report. */
  counts: ReadonlyMap<string, WindowCounts> | null;
};

export type SiteFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
};

/** The sites of all clients, ordered by (user, client). While `from` is being read, no site may be added or dropped. */
export interface ReportingInstances {
  get(key: ClientKey): ReportingInstance | undefined;
  add(site: ReportingInstance): void;
  /** Drops all that a client reported, because its row was forgotten or belongs to another instance. */
  drop(key: ClientKey): void;
  /** The sites that match the filter, beginning with the one that `after` names. */
  from(filter: SiteFilter, after: Position | null): IteratorObject<ReportingInstance>;
}

export function createSites(): ReportingInstances {
  const sites = createSortedMap<ReportingInstance>();
  return {
    get: (key) => sites.get(orderKey(key)),
    add: (site) => sites.set(orderKey(site), site),
    drop: (key) => void sites.delete(orderKey(key)),
    *from({ userId, clientId, clientType }, after) {
      const start = after === null ? null : orderKey({ userId: after[0] ?? '', clientId: after[1] ?? '' });
      const prefix = userId === null ? '' : orderKey({ userId, clientId: clientId ?? '' });
      for (const site of sites.values({ from: start !== null && start > prefix ? start : prefix })) {
        if (userId !== null && site.userId !== userId) return;
        if (userId !== null && clientId !== null && site.clientId !== clientId) return;
        const kept = clientId === null || site.clientId === clientId;
        if (kept && (clientType === null || site.clientType === clientType)) yield site;
      }
    },
  };
}

/** Where a page begins in this site's rows: behind the row that `after` names, if that row belongs to this site. */
export function startIn(site: ReportingInstance, after: Position | null): string | null {
  const [userId, clientId, row] = after ?? [];
  return row !== undefined && clientKeyText(site) === `${userId}/${clientId}` ? row : null;
}

/** Sorts as the tuple (user, client) does, because the separator is below every character that the two may contain. */
function orderKey({ userId, clientId }: ClientKey): string {
  return `${userId}\n${clientId}`;
}
