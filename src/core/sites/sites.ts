/**
 * The API of sites: their registry, the events and sessions of their viewers, and the actions that viewers may invoke.
 */
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

/** Creates the API of cooperative sites: definitions, sessions with their grants, live events, and actions. */
export function createSites(parts: InvokeDeps) {
  const { deps } = parts;
  const watch = createSessionWatch(deps);
  // One object for all viewers, because there may be thousands.
  const viewing = { watch, clock: deps.clock };
  return {
    ...createRegistry(deps, watch),
    ...createSessions(deps, watch),
    ...createTokens(deps),
    /**
     * Does the same as `subscribe`, in a form that many requesters can share. The events are the same for all
     * requesters with the same key, and the lifetime is the requester's own. The end of the lifetime gives the reason;
     * see `subscribe`. Null: the session does not exist or belongs to another user.
     */
    listen: (requester: Requester, sessionId: string, names: readonly string[] | null) =>
      listen(deps, viewing, { requester, sessionId, names }),
    /**
     * Subscribes to the live events, without replay, of a session that is not over. `names` selects some (null: all
     * that the requester may see). Throws the code with which `sessionPolicy` refuses. Ends with an error:
     * `session_inactive` if the session is closed, expires or loses its site; `unauthenticated` if the grant or the
     * token is no longer valid. Null: the session does not exist or belongs to another user.
     */
    async subscribe(requester: Requester, sessionId: string, names: readonly string[] | null) {
      const shared = await listen(deps, viewing, { requester, sessionId, names });
      return shared && subscribeTo(shared);
    },
    /**
     * Runs an allowed action on the session's host, as the session's owner, with the ids of session and site added to
     * the params. From admission on, the command is like any other command of the owner's host client. Checks run in
     * this order: the requester, the input, the site's rules, the session's state, then the checks of every invocation.
     * Null if there is no such session, or if it belongs to another user.
     */
    invoke: async (requester: Requester, sessionId: string, request: SiteInvokeRequest) =>
      withCallSpan<Invocation | null>(deps, request, (span) =>
        invokeSite(parts, { requester, sessionId, request }, span),
      ),
  };
}

// Subscribes to the events of a site, for as long as the viewer's session, grant and token last.

/**
 * Creates the API of site definitions, as each requester may see them. Writing needs the scope `host`, reading the
 * scope `invoke`. An administrator reads those of all users.
 */
function createRegistry(deps: Deps, watch: SessionWatch) {
  const { backend, clock, cursors } = deps;
  const source = () => ['sites', clock.now()] as const;
  const sitesListing = (requester: Requester, userId: string | null): Listing =>
    listingOf('sites', requester, { userId });
  return {
    /**
     * Creates or replaces a site of the requester. Throws `capacity_exceeded` if the user already has SITES_PER_USER
     * others.
     */
    async register(requester: Requester, definition: SiteDefinition): Promise<SiteView> {
      const { userId } = withoutLimit(requireUser(requester, 'host'));
      const result = await backend.sites.put(checkDefinition(userId, definition));
      if (result.kind === 'full') fail('capacity_exceeded', `A user has at most ${SITES_PER_USER} sites.`);
      return viewOf(deps, result.site);
    },
    /** Removes a site of the requester and ends its sessions. Null: there is no such site. */
    async remove(requester: Requester, site: string) {
      const { userId } = withoutLimit(requireUser(requester, 'host'));
      const siteId = id('site_id', site);
      const removed = await backend.sites.remove({ userId, siteId });
      for (const sessionId of removed?.closed ?? []) backend.bus.publish(`session:${sessionId}`, null);
      return removed && { siteId, closedSessions: removed.closed.length };
    },
    /**
     * Lists the sites of this owner. `owner` null: the requester's own sites; for an administrator, those of all users.
     */
    async list(requester: Requester, owner: string | null, page: PageArgs): Promise<Page<SiteView>> {
      const userId = readScope(requester, owner);
      const listing = sitesListing(requester, userId);
      const rows = backend.sites.list(userId, cursors.request(listing, page));
      // The state of a host comes from the last report of its node, so the list has a gap for each silent node.
      const found = await Promise.all([rows, silentSources(deps, 'sites')]);
      const sites = cursors.page(listing, withGaps(...found), source(), (row) => row);
      return { ...sites, nodes: (await hosted(deps, sites.nodes)).map(wholeSite) };
    },
    /**
     * Returns a site of this owner. `owner` null: the requester; an administrator must name an owner. Null if the site
     * is absent or belongs to another user.
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
    /** Returns sites that the requester may read: one answer per key, in order; null where there is no site. */
    async many(keys: readonly SiteKey[]): Promise<readonly (SiteView | null)[]> {
      const found = await backend.sites.get(keys);
      const known = found.filter((site) => site !== null);
      const views = (await hosted(deps, known)).map(wholeSite);
      let next = 0;
      return found.map((site) => (site === null ? null : (views[next++] ?? null)));
    },
    /**
     * Returns whether the state of a site and of its sessions may be out of date: the completeness has a gap if the
     * node that reports the host is silent. The gap does not name the node to the holder of a grant. `site` null: it
     * was removed.
     */
    completeness(site: SiteView | null): MaybePromise<Completeness> {
      const own = observed(...source(), site ? 1 : 0);
      if (site === null || site.hostNodeId === null) return completenessOf([own]);
      return thenDo(silentSources(deps, 'sites', site.hostNodeId), (silent) =>
        completenessOf([own, ...(site.seen === 'whole' ? silent : silent.map((gap) => ({ ...gap, nodeId: null })))]),
      );
    },
    /** Returns for each owner the page that `list` gives for it. For nested fields, after the parent was authorized. */
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

/** Returns the owner to use if a requester names none. An administrator must name one. */
function selfOf(requester: Requester): string {
  const principal = requirePrincipal(requester);
  if (principal.kind === 'admin') invalid('owner', 'required for an administrator');
  return principal.kind === 'user' ? principal.userId : refuseGrant();
}
