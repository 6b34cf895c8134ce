/**
 * Registers, removes and lists cooperative sites, and publishes their events to viewers (the projection). Opens no
 * session.
 */
import {
  knownUser,
  readScope,
  readUser,
  refuseGrant,
  requirePrincipal,
  requireUser,
  type Requester,
} from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { fail, invalid } from '../errors.ts';
import type { Message } from '../history/message.ts';
import { fromJson, isObjectText, memberOf, type JsonText } from '../json.ts';
import { SITES_PER_USER } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import {
  completenessOf,
  listingOf,
  observed,
  silentSources,
  withGaps,
  type Completeness,
  type Listing,
  type Page,
  type PageArgs,
  type Summary,
} from '../page.ts';
import {
  checkDefinition,
  isEventName,
  siteIdOf,
  type SessionView,
  type SiteDefinition,
  type SiteView,
} from './site-policy.ts';
import { hosted, sessionView, wholeSite, type SessionWatch } from './sessions.ts';
import { ownerGrant, siteKeyText, siteStream, type Site, type SiteEvent, type SiteKey } from './site.ts';

/**
 * Creates the API of site definitions, as each requester may see them. Writing needs the scope `host`, reading the
 * scope `invoke`. An administrator reads those of all users.
 */
export function createRegistry(deps: Deps, watch: SessionWatch) {
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
      const { userId } = requireUser(requester, 'host');
      const result = await backend.sites.put(checkDefinition(userId, definition));
      if (result.kind === 'full') fail('capacity_exceeded', `A user has at most ${SITES_PER_USER} sites.`);
      return viewOf(deps, result.site);
    },
    /** Removes a site of the requester and ends its sessions. Null: there is no such site. */
    async remove(requester: Requester, site: string) {
      const { userId } = requireUser(requester, 'host');
      const siteId = siteIdOf(site);
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
      const siteId = siteIdOf(site);
      if (userId === null) return null;
      const [found] = await backend.sites.get([{ userId, siteId }]);
      return found ? viewOf(deps, found) : null;
    },
    /** Lists the sessions of one site, oldest first. Throws `not_found` if a user names the site of another user. */
    async sessions(requester: Requester, key: SiteKey, page: PageArgs): Promise<Page<SessionView>> {
      const userId = readUser(requester, key.userId);
      const siteId = siteIdOf(key.siteId);
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

// Publishes retained messages to the viewers of a site, if the rules of projection allow it.

/** The first rule of projection that a retained message did not meet, in the order in which the rules are checked. */
export type ProjectionRefusal = 'stream' | 'owner' | 'name' | 'allowlist';

/**
 * The result of a projection. `refusedBy` is null if the message was published, if its stream is not under `sites/`,
 * and if the projection failed.
 */
export type Projection = { readonly published: boolean; readonly refusedBy: ProjectionRefusal | null };

/**
 * The longest JSON text of a name, in characters: 128 characters, each of which may be escaped as `\uXXXX`, and the
 * quotes.
 */
const NAME_TEXT = 128 * 6 + 2;

/** What the four rules check. The message belongs to the user whose token ingested it. */
export type ProjectionFacts = {
  readonly message: Pick<Message, 'userId' | 'suffix' | 'kind'>;
  readonly payload: JsonText | null;
  readonly site: Site | null;
};

type ProjectionVerdict =
  | { readonly refusedBy: ProjectionRefusal }
  | { readonly refusedBy: null; readonly event: Pick<SiteEvent, 'name' | 'data'> };

/** Checks the four rules in the documented order; each is only checked if those before it hold. Pure. */
export function projectSiteEvent({ message, payload, site }: ProjectionFacts): ProjectionVerdict {
  const siteId = siteOfStream(message.suffix);
  if (siteId === null || message.kind !== 'event') return { refusedBy: 'stream' };
  if (site?.siteId !== siteId || site.userId !== message.userId) return { refusedBy: 'owner' };
  const members = payload !== null && isObjectText(payload) ? payload : null;
  const name = members && nameIn(members);
  if (!isEventName(name)) return { refusedBy: 'name' };
  if (site.eventNames.length > 0 && !site.eventNames.includes(name)) return { refusedBy: 'allowlist' };
  return { refusedBy: null, event: { name, data: (members && memberOf(members, 'data')) ?? null } };
}

/** Publishes retained events of sites on their bus topics. */
export type Projector = ReturnType<typeof createProjector>;

/**
 * Creates the projector. Each site has one stream, which belongs to its owner, and only events of that stream are
 * published.
 */
export function createProjector({ backend }: Pick<Deps, 'backend'>) {
  return {
    /**
     * Called once for each message that ingestion retained, never for a duplicate. `text`: its whole payload, whether
     * stored inline or spilled.
     */
    project(message: Message, text: JsonText | null): MaybePromise<Projection> {
      const { suffix, userId } = message;
      if (suffix !== 'sites' && !suffix.startsWith('sites/')) return { published: false, refusedBy: null };
      const siteId = siteOfStream(suffix);
      const found = siteId === null ? [] : backend.sites.get([{ userId, siteId }]);
      return thenDo(found, ([site = null]): Projection => {
        const verdict = projectSiteEvent({ message, payload: text, site });
        if (verdict.refusedBy !== null) return { published: false, refusedBy: verdict.refusedBy };
        if (site) {
          const event = { ...verdict.event, messageId: message.id, publishedAt: message.at };
          backend.bus.publish(`site:${siteKeyText(site)}`, event);
        }
        return { published: true, refusedBy: null };
      });
    },
  };
}

/** Returns the site whose canonical stream this suffix names; null if there is none. */
function siteOfStream(suffix: string): string | null {
  const [, siteId = ''] = suffix.split('/');
  return siteId !== '' && suffix === siteStream(siteId) ? siteId : null;
}

/**
 * Returns the event name in a payload; null if there is none. A text longer than NAME_TEXT cannot be a name and is not
 * parsed.
 */
function nameIn(payload: JsonText): unknown {
  const name = memberOf(payload, 'name') ?? null;
  return name !== null && name.length <= NAME_TEXT ? fromJson(name) : null;
}
