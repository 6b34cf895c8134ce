/** The API of sites: definitions, sessions, live events, and the actions that viewers may invoke. */
import { type Requester, refuseGrant, requirePrincipal, requireUser } from '../auth/principal.ts';
import { knownUser, readUser, withoutLimit, readScope } from '../auth/sight.ts';
import type { Invocation } from '../calls/call.ts';
import { withCallSpan } from '../calls/call-spans.ts';
import type { InvokeDeps } from '../calls/preflight.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid } from '../errors.ts';
import { id } from '../ids.ts';
import { SITES_PER_USER } from '../limits.ts';
import { subscribeTo } from '../live.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { completenessOf, observed, type Completeness } from '../completeness.ts';
import { listingOf, type Listing, type PageArgs } from '../cursors.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import type { Page, Summary } from '../page.ts';
import { createTokens } from './grant-tokens.ts';
import { hosted, sessionView, wholeSite } from './session-access.ts';
import { createSessionWatch, type SessionWatch } from './session-watch.ts';
import { createSessions } from './sessions.ts';
import { checkDefinition } from './site-definition.ts';
import { listen } from './site-events.ts';
import { invokeSite } from './site-invocation.ts';
import type { SessionView, SiteDefinition, SiteInvokeRequest, SiteView } from './site-requests.ts';
import { ownerGrant } from './site-session.ts';
import type { Site, SiteKey } from './site.ts';

export type Sites = ReturnType<typeof createSites>;

/** Creates the API of cooperative sites: their definitions, sessions with grants, live events, and actions. */
export function createSites(parts: InvokeDeps) {
  const { deps } = parts;
  const watch = createSessionWatch(deps);
  // One object for all viewers, to save memory: there may be thousands of viewers.
  const viewing = { watch, clock: deps.clock };
  return {
    ...createRegistry(deps, watch),
    ...createSessions(deps, watch),
    ...createTokens(deps),
    /**
     * Subscribes to live events, like `subscribe`, but returns a sequence that many requesters can share. All
     * requesters with the same key get the same events. The lifetime is the requester's own; if it ends, its error is
     * one of those listed at `subscribe`. Null if the session does not exist or belongs to another user.
     */
    listen: (requester: Requester, sessionId: string, names: readonly string[] | null) =>
      listen(deps, viewing, { requester, sessionId, names }),
    /**
     * Subscribes to the live events of a session that is not over. There is no replay. `names`: the events to receive;
     * null: all that the requester may receive. Throws the code with which `sessionPolicy` refuses. Ends with an error:
     * `session_inactive` if the session is closed, expires or loses its site; `unauthenticated` if the grant or the
     * token is no longer valid. Null if the session does not exist or belongs to another user.
     */
    async subscribe(requester: Requester, sessionId: string, names: readonly string[] | null) {
      const shared = await listen(deps, viewing, { requester, sessionId, names });
      return shared && subscribeTo(shared);
    },
    /**
     * Invokes a permitted action on the site's host, in the name of the session's owner. The ids of the session and the
     * site are added to the params. After the admission, the command is like any other command for the host. Checks run
     * in this order: the requester, the input, the site's rules, the session's state, then the checks of every
     * invocation. Null if the session does not exist or belongs to another user.
     */
    invoke: async (requester: Requester, sessionId: string, request: SiteInvokeRequest) =>
      withCallSpan<Invocation | null>(deps, request, (span) =>
        invokeSite(parts, { requester, sessionId, request }, span),
      ),
  };
}

// Registers sites and lists them with their sessions.

/**
 * Creates the API of site definitions. Each requester sees a site as far as it may. Writing needs the scope `host`, and
 * reading the scope `invoke`. An administrator may read the sites of all users.
 */
function createRegistry(deps: Deps, watch: SessionWatch) {
  const { backend, clock, cursors } = deps;
  const source = () => ['sites', clock.now()] as const;
  const sitesListing = (requester: Requester, userId: string | null): Listing =>
    listingOf('sites', requester, { userId });
  return {
    /**
     * Creates or replaces a site of the requester. Throws `capacity_exceeded` if the requester already has
     * SITES_PER_USER other sites.
     */
    async register(requester: Requester, definition: SiteDefinition): Promise<SiteView> {
      const { userId } = withoutLimit(requireUser(requester, 'host'));
      const result = await backend.sites.put(checkDefinition(userId, definition));
      if (result.kind === 'full') fail('capacity_exceeded', `A user has at most ${SITES_PER_USER} sites.`);
      return viewOf(deps, result.site);
    },
    /** Removes a site of the requester and ends its sessions. Null if there is no such site. */
    async remove(requester: Requester, site: string) {
      const { userId } = withoutLimit(requireUser(requester, 'host'));
      const siteId = id('site_id', site);
      const removed = await backend.sites.remove({ userId, siteId });
      for (const sessionId of removed?.closed ?? []) backend.bus.publish(`session:${sessionId}`, null);
      return removed && { siteId, closedSessions: removed.closed.length };
    },
    /**
     * Lists the sites of an owner. `owner` null: the requester's own sites, or for an administrator those of all users.
     */
    async list(requester: Requester, owner: string | null, page: PageArgs): Promise<Page<SiteView>> {
      const userId = readScope(requester, owner);
      const listing = sitesListing(requester, userId);
      const rows = backend.sites.list(userId, cursors.request(listing, page));
      // Whether a host is connected is known from the last report of its node, so each silent node is a gap in the
      // list.
      const found = await Promise.all([rows, silentSources(deps, 'sites')]);
      const sites = cursors.page(listing, withGaps(...found), source(), (row) => row);
      return { ...sites, nodes: (await hosted(deps, sites.nodes)).map(wholeSite) };
    },
    /**
     * Returns a site. `owner` null: a site of the requester; an administrator must name an owner. Null if the site does
     * not exist or belongs to another user.
     */
    async get(requester: Requester, owner: string | null, site: string): Promise<SiteView | null> {
      const userId = knownUser(requester, owner ?? selfOf(requester));
      const siteId = id('site_id', site);
      if (userId === null) return null;
      const [found] = await backend.sites.get([{ userId, siteId }]);
      return found ? viewOf(deps, found) : null;
    },
    /** Lists the sessions of one site, oldest first. Throws `not_found` if a user names the site of another user. */
    async sessions(requester: Requester, key: SiteKey, page: PageArgs): Promise<Page<SessionView>> {
      const userId = readUser(requester, key.userId);
      const siteId = id('site_id', key.siteId);
      const listing = listingOf('siteSessions', requester, { userId, siteId });
      const rows = backend.sessions.list({ userId, siteId }, cursors.request(listing, page));
      const scan = withGaps(...(await Promise.all([rows, silentSources(deps, 'sites')])));
      const [found] = await backend.sites.get([{ userId, siteId }]);
      const [site = null] = await hosted(deps, found ? [found] : []);
      return cursors.page(listing, scan, source(), (session) => {
        const grant = requester?.kind === 'user' ? ownerGrant(session) : null;
        return sessionView(deps, watch, { access: { session, site, grant, connector: null }, whole: true });
      });
    },
    /**
     * Returns one site per key, in order; null if there is no such site. For nested fields, after the sites were
     * authorized.
     */
    async many(keys: readonly SiteKey[]): Promise<readonly (SiteView | null)[]> {
      const found = await backend.sites.get(keys);
      const known = found.filter((site) => site !== null);
      const views = (await hosted(deps, known)).map(wholeSite);
      let next = 0;
      return found.map((site) => (site === null ? null : (views[next++] ?? null)));
    },
    /**
     * Returns a completeness that says whether the state of a site and its sessions may be out of date. It has a gap if
     * the node of the host's link is silent. For the holder of a grant, the gap does not name the node. `site`: null if
     * it was removed.
     */
    completeness(site: SiteView | null): MaybePromise<Completeness> {
      const own = observed(...source(), site ? 1 : 0);
      if (site === null || site.hostNodeId === null) return completenessOf([own]);
      return thenDo(silentSources(deps, 'sites', site.hostNodeId), (silent) =>
        completenessOf([own, ...(site.seen === 'whole' ? silent : silent.map((gap) => ({ ...gap, nodeId: null })))]),
      );
    },
    /** Returns for each owner the page of `list`. For nested fields, after the parent was authorized. */
    async ofUsers(requester: Requester, userIds: readonly string[], first: number) {
      const found = await backend.sites.ofUsers(userIds, first);
      const sites = found.flatMap(({ rows }) => rows);
      const all = (await hosted(deps, sites)).map(wholeSite);
      let next = 0;
      return found.map(({ total, rows }, i): Summary<SiteView> => {
        const own = all.slice(next, (next += rows.length));
        const listing = sitesListing(requester, userIds[i] ?? null);
        return cursors.firstPage(listing, { total, rows: own }, source(), (site) => [site.userId, site.siteId]);
      });
    },
  };
}

async function viewOf(deps: Deps, site: Site): Promise<SiteView> {
  const [view] = await hosted(deps, [site]);
  return wholeSite(view ?? { ...site, hostConnected: false, hostNodeId: null });
}

/**
 * Returns the requester's own user id, for a request that names no owner. Throws for an administrator, who must name
 * one.
 */
function selfOf(requester: Requester): string {
  const principal = requirePrincipal(requester);
  if (principal.kind === 'admin') invalid('owner', 'required for an administrator');
  return principal.kind === 'user' ? principal.userId : refuseGrant();
}
