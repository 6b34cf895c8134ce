import type { ClientType } from '../../core/connections/connection.ts';
import type { BrowserWindow, ExecutionContext, WindowCounts } from '../../core/contexts/context.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import type { Position } from '../../core/page.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

export type HeldContext = Omit<ExecutionContext, 'linkLost'>;
export type HeldWindow = Omit<BrowserWindow, 'linkLost'>;

/** What one instance of a client reports. */
export type Site = ClientKey & {
  readonly instanceId: string;
  readonly clientType: ClientType;
  readonly contexts: SortedMap<HeldContext>;
  readonly windows: SortedMap<HeldWindow>;
  /** Once it said anything of contexts, if only that there are none. */
  reportsContexts: boolean;
  /** By window; made when first asked for after a report. */
  counts: ReadonlyMap<string, WindowCounts> | null;
};

export type SiteFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly clientType: ClientType | null;
};

/** The sites of all clients, in order of (user, client). While one reads `from`, no site may come or go. */
export interface Sites {
  get(key: ClientKey): Site | undefined;
  add(site: Site): void;
  /** The client's row is forgotten, or of another instance: all that it reported goes. */
  drop(key: ClientKey): void;
  /** Those that the filter keeps, from the one that `after` stands in. */
  from(filter: SiteFilter, after: Position | null): IteratorObject<Site>;
}

export function createSites(): Sites {
  const sites = createSortedMap<Site>();
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

/** Where in this site's own rows a page begins: behind the row that `after` names, if that is one of this site. */
export function startIn(site: Site, after: Position | null): string | null {
  const [userId, clientId, row] = after ?? [];
  return row !== undefined && clientKeyText(site) === `${userId}/${clientId}` ? row : null;
}

/** Sorts as the tuple (user, client) does: the separator is below every character that the two may hold. */
function orderKey({ userId, clientId }: ClientKey): string {
  return `${userId}\n${clientId}`;
}
