/** Registers cooperative sites and their definitions. It opens no session. */
import {
  knownUser,
  readScope,
  readUser,
  requireUser,
  requirePrincipal,
  subjectOf,
  type Principal,
} from '../auth/principal.ts';
import type { Summary } from '../core.ts';
import { completenessOf, type Listing } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { SITES_PER_USER } from '../limits.ts';
import { thenDo } from '../maybe-promise.ts';
import { silentSources, withGaps } from '../silence.ts';
import { summaryScan, type ObservedSource, type Page } from '../page.ts';
import { checkDefinition, siteIdOf } from './definition.ts';
import type { SiteRegistry, SiteView } from './api.ts';
import { ownerGrant } from './session.ts';
import type { Site, SiteKey } from './site.ts';
import { hosted, sessionView, wholeSite } from './session-access.ts';
import type { SessionWatch } from './watch.ts';

export type Registry = SiteRegistry & {
  many(keys: readonly SiteKey[]): Promise<readonly (SiteView | null)[]>;
  ofUsers(
    requester: Principal | null,
    userIds: readonly string[],
    first: number,
  ): Promise<readonly Summary<SiteView>[]>;
};

/** Creates the API of site definitions, as each requester may see them. */
export function createRegistry(deps: Deps, watch: SessionWatch): Registry {
  const { backend, clock, cursors } = deps;
  const views = async (page: Page<Site>): Promise<Page<SiteView>> => {
    const nodes = await hosted(deps, page.nodes);
    return { ...page, nodes: nodes.map(wholeSite) };
  };
  const source = (): Pick<ObservedSource, 'source' | 'nodeId' | 'asOf'> => ({
    source: 'sites',
    nodeId: null,
    asOf: clock.now(),
  });
  return {
    async register(requester, definition) {
      const { userId } = requireUser(requester, 'host');
      const result = await backend.sites.put(checkDefinition(userId, definition));
      if (result.kind === 'full') fail('capacity_exceeded', `A user has at most ${SITES_PER_USER} sites.`);
      return viewOf(deps, result.site);
    },
    async remove(requester, site) {
      const { userId } = requireUser(requester, 'host');
      const siteId = siteIdOf(site);
      const removed = await backend.sites.remove({ userId, siteId });
      for (const sessionId of removed?.closed ?? []) backend.bus.publish(`session:${sessionId}`, null);
      return removed && { siteId, closedSessions: removed.closed.length };
    },
    async list(requester, owner, page) {
      const userId = readScope(requester, owner);
      const listing = sitesListing(requester, userId);
      const rows = backend.sites.list(userId, cursors.request(listing, page));
      // The state of a host comes from the last report of its node, so the list has a gap for each silent node.
      const found = await Promise.all([rows, silentSources(deps, 'sites')]);
      return views(cursors.page(listing, withGaps(...found), source(), (row) => row));
    },
    async get(requester, owner, site) {
      const userId = knownUser(requester, owner ?? selfOf(requester));
      const siteId = siteIdOf(site);
      if (userId === null) return null;
      const [found] = await backend.sites.get([{ userId, siteId }]);
      return found ? viewOf(deps, found) : null;
    },
    async sessions(requester, key, page) {
      const userId = readUser(requester, key.userId);
      const siteId = siteIdOf(key.siteId);
      const listing = { name: 'siteSessions', filter: { userId, siteId }, requester: requesterOf(requester) };
      const rows = backend.sessions.list({ userId, siteId }, cursors.request(listing, page));
      const scan = withGaps(...(await Promise.all([rows, silentSources(deps, 'sites')])));
      const [found] = await backend.sites.get([{ userId, siteId }]);
      const [site = null] = await hosted(deps, found ? [found] : []);
      return cursors.page(listing, scan, source(), (session) => {
        const grant = requester?.kind === 'user' ? ownerGrant(session) : null;
        return sessionView(deps, watch, { access: { session, site, grant, connector: null }, whole: true });
      });
    },
    async many(keys) {
      const found = await backend.sites.get(keys);
      const views = (
        await hosted(
          deps,
          found.filter((site) => site !== null),
        )
      ).map(wholeSite);
      let next = 0;
      return found.map((site) => (site === null ? null : (views[next++] ?? null)));
    },
    completeness(site) {
      const own: ObservedSource = { ...source(), complete: true, observed: site ? 1 : 0, limit: null, reason: null };
      if (site === null || site.hostNodeId === null) return completenessOf([own]);
      return thenDo(silentSources(deps, 'sites', site.hostNodeId), (silent) =>
        completenessOf([own, ...(site.seen === 'whole' ? silent : silent.map((gap) => ({ ...gap, nodeId: null })))]),
      );
    },
    async ofUsers(requester, userIds, first) {
      const found = await backend.sites.ofUsers(userIds, first);
      const all = await hosted(
        deps,
        found.flatMap(({ rows }) => rows),
      );
      let next = 0;
      return found.map(({ total, rows }, i): Summary<SiteView> => {
        const own = all.slice(next, (next += rows.length));
        const scan = summaryScan({ total, rows: own }, (site) => [site.userId, site.siteId]);
        const listing = sitesListing(requester, userIds[i] ?? null);
        return { ...cursors.page(listing, scan, source(), wholeSite), total };
      });
    },
  };
}

async function viewOf(deps: Deps, site: Site): Promise<SiteView> {
  const [view] = await hosted(deps, [site]);
  return wholeSite(view ?? { ...site, hostConnected: false, hostNodeId: null });
}

/** Returns the owner to use if a requester names none. An administrator must name one. */
function selfOf(requester: Principal | null): string {
  const principal = requirePrincipal(requester);
  if (principal.kind === 'admin') fail('invalid_argument', 'owner: required for an administrator', OWNER_FAULT);
  return principal.kind === 'user'
    ? principal.userId
    : fail('forbidden', 'A grant opens its session and nothing else.');
}

const OWNER_FAULT = { errors: [{ parameter: 'owner', detail: 'required for an administrator' }] };

function sitesListing(requester: Principal | null, userId: string | null): Listing {
  return { name: 'sites', filter: { userId }, requester: requesterOf(requester) };
}

function requesterOf(requester: Principal | null): string {
  return subjectOf(requirePrincipal(requester));
}
