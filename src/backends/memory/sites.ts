/**
 * Core's SiteStore in memory: the registered sites. It also creates the store of their sessions, which
 * sites-sessions.ts defines.
 */
import type { Clock } from '../../core/clock.ts';
import { SITES_PER_USER } from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import { siteKeyText, type Site } from '../../core/sites/site.ts';
import type { SessionStore, SiteStore } from '../../core/sites/store.ts';
import { createMemorySessions } from './sites-sessions.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

/** Creates core's SiteStore and SessionStore in memory. Removing a site closes its sessions in the same tick. */
export function createMemorySites(clock: Clock): { readonly sites: SiteStore; readonly sessions: SessionStore } {
  const users = createSortedMap<{ readonly userId: string; readonly sites: SortedMap<Site> }>();
  const find = (userId: string, siteId: string): Site | null => users.get(userId)?.sites.get(siteId) ?? null;
  const { closeOf, ...sessions } = createMemorySessions(clock, ({ userId, siteId }) => find(userId, siteId) !== null);
  const rows = function* (userId: string | null, after: readonly string[] | null): Generator<Site> {
    const [afterUser = null, afterSite = null] = after ?? [];
    const one = userId === null ? undefined : users.get(userId);
    for (const user of userId === null ? users.values({ from: afterUser }) : one ? [one] : [])
      yield* user.sites.values({ after: user.userId === afterUser ? afterSite : null });
  };
  return {
    sites: {
      put(definition) {
        const { userId, siteId } = definition;
        const user = users.get(userId) ?? { userId, sites: createSortedMap<Site>() };
        const known = user.sites.get(siteId);
        if (!known && user.sites.size >= SITES_PER_USER) return { kind: 'full' };
        const site = { ...definition, registeredAt: known?.registeredAt ?? clock.now() };
        user.sites.set(siteId, site);
        users.set(userId, user);
        return { kind: 'put', site };
      },
      remove({ userId, siteId }) {
        const user = users.get(userId);
        const site = user?.sites.get(siteId);
        if (!user || !site) return null;
        user.sites.delete(siteId);
        if (user.sites.size === 0) users.delete(userId);
        return { site, closed: closeOf(siteKeyText(site)) };
      },
      get: (keys) => keys.map(({ userId, siteId }) => find(userId, siteId)),
      list: (userId, page) => scanSorted(rows(userId, page.after), page, (site) => [site.userId, site.siteId]),
      ofUsers: (userIds, first) =>
        userIds.map((userId) => ({
          total: users.get(userId)?.sites.size ?? 0,
          rows: [...rows(userId, null).take(first)],
        })),
    },
    sessions,
  };
}
