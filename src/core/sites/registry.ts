/** Registers cooperative sites and their definitions. It opens no session. */
import {
  knownUser,
  readScope,
  readUser,
  requirePrincipal,
  requireUser,
  subjectOf,
  type Principal,
} from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import type { Message } from '../history/message.ts';
import { fromJson, isObjectText, memberOf, type JsonText } from '../json.ts';
import { SITES_PER_USER } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { completenessOf, summaryScan, type Listing, type ObservedSource, type Page, type Summary } from '../page.ts';
import { silentSources, withGaps } from '../silence.ts';
import { checkDefinition, isEventName, siteIdOf, type SiteRegistry, type SiteView } from './site-policy.ts';
import { hosted, sessionView, wholeSite, type SessionWatch } from './sessions.ts';
import { ownerGrant, siteKeyText, siteStream, type Site, type SiteEvent, type SiteKey } from './site.ts';

type Registry = SiteRegistry & {
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

// Publishes retained messages to the viewers of a site, if the rules of projection allow it.

/** The first rule of projection that a retained message did not meet, in the order in which the rules are checked. */
export type ProjectionRefusal = 'stream' | 'owner' | 'name' | 'allowlist';

/**
 * The result of a projection. `refusedBy` is null if the message was published, and if its stream is not under `sites/`
 * at all.
 */
export type Projection = { readonly published: boolean; readonly refusedBy: ProjectionRefusal | null };

/**
 * The longest JSON text of a name, in characters: 128 characters, each of which may be escaped as `\uXXXX`, and the
 * quotes.
 */
const NAME_TEXT = 128 * 6 + 2;

/** Publishes retained events of sites on their bus topics. */
export interface Projector {
  /**
   * Called once for each message that ingestion retained, never for a duplicate. `payload`: its whole text, whether
   * stored inline or spilled.
   */
  project(message: Message, payload: JsonText | null): MaybePromise<Projection>;
}

/** What the four rules check. The message's user is the one whose token ingested it. */
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

/**
 * Creates the projector. Each site has one stream, which belongs to its owner, and only events of that stream are
 * published.
 */
export function createProjector({ backend }: Pick<Deps, 'backend'>): Projector {
  return {
    project(message, text) {
      const { suffix, userId } = message;
      if (suffix !== 'sites' && !suffix.startsWith('sites/')) return { published: false, refusedBy: null };
      const siteId = siteOfStream(suffix);
      const found = siteId === null ? [] : backend.sites.get([{ userId, siteId }]);
      return thenDo(found, ([site = null]) => {
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
