/**
 * The API of sites: their registry, the publication of their events (the projection), the sessions of their viewers,
 * and the actions that viewers may invoke.
 */
import { knownUser, readUser, withoutLimit } from '../auth/sight.ts';
import {
  type Requester,
  type UserPrincipal,
  readScope,
  refuseGrant,
  requirePrincipal,
  requireUser,
} from '../auth/principal.ts';
import { type CallSpan, type Invocation, checkInvoke, type CheckedInvoke } from '../calls/call.ts';
import { invokeChecked, withCallSpan } from '../calls/calls.ts';
import { refused, type InvokeParts } from '../calls/preflight.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, fail, invalid } from '../errors.ts';
import { id } from '../ids.ts';
import { subscribeTo, type Lifetime, type SharedSubscription } from '../live.ts';
import type { Clock } from '../ports.ts';
import { createTokens } from './grant-tokens.ts';
import {
  requireAllowed,
  sessionAccessOf,
  type SessionAccess,
  hosted,
  sessionView,
  wholeSite,
} from './session-access.ts';
import { createSessionWatch, type SessionReader, type SessionWatch } from './session-watch.ts';
import { createSessions } from './sessions.ts';
import { effectiveEvents, sessionPolicy } from './session-policy.ts';
import { checkDefinition, checkNames, isEventName } from './site-definition.ts';
import type { SessionView, SiteDefinition, SiteInvokeRequest, SiteView } from './site-requests.ts';
import { OWNER_GRANT, isGrantLive, isOpen, ownerGrant, type SiteSession } from './site-session.ts';
import { siteKeyText, siteStream, type Site, type SiteEvent, type SiteKey } from './site.ts';
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

export type Sites = ReturnType<typeof createSites>;

/** Creates the API of cooperative sites: definitions, sessions with their grants, live events, and actions. */
export function createSites(parts: InvokeParts) {
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

// Invokes an action of a site on behalf of a viewer.

type SiteInvocationParts = {
  readonly requester: Requester;
  readonly sessionId: string;
  readonly request: SiteInvokeRequest;
};

async function invokeSite(
  parts: InvokeParts,
  { requester, sessionId, request }: SiteInvocationParts,
  span: CallSpan | null,
): Promise<Invocation | null> {
  const { deps } = parts;
  const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'invoke' });
  if (!access) return null;
  const { session, site, grant, connector } = access;
  const { userId, siteId } = session;
  // If the site was removed there is no client, but input errors are still reported first.
  const target = { userId, clientId: site?.clientId ?? siteId };
  const through = { siteId, sessionId, grantId: grant.grantId };
  const checked = checkInvoke(deps.crypto, { ...request, ...target }, { site: through, span });
  const refusal = siteRefusal(deps, access, checked);
  if (refusal) return refusal;
  // The command is bound to the connector's instance. If another instance takes over before the command is written, the
  // command is not written to the new instance.
  const bound = { ...checked, namedInstanceId: checked.namedInstanceId ?? connector?.instanceId ?? null };
  const recordedAs = { kind: 'grant', name: grant.grantId } as const;
  const wait = { signal: request.signal };
  return invokeChecked(parts, { caller: ownerOf(userId), recordedAs, userId, checked: bound, wait });
}

function siteRefusal(
  deps: Deps,
  { grant, session, site }: SessionAccess,
  { action, commandId }: CheckedInvoke,
): Extract<Invocation, { kind: 'refused' }> | null {
  const verdict = sessionPolicy.allows({
    ...{ grant, session, site, now: deps.clock.now() },
    operation: { kind: 'invoke', action },
  });
  if (verdict.allowed) return null;
  // The grant ended after its token was checked.
  if (verdict.code === 'unauthenticated') fail(verdict.code, verdict.message);
  deps.metrics.count('commands_refused', verdict.code);
  return refused(verdict.code, 'site', verdict.message, { commandId });
}

/**
 * Returns the principal that the policy is evaluated for: the owner, on whose behalf the viewer acts. Rules for the
 * owner's own calls therefore hold for the site's calls too.
 */
function ownerOf(userId: string): UserPrincipal {
  return { kind: 'user', userId, scopes: new Set(['invoke']), expiresAt: null };
}

// Subscribes to the events of a site, for as long as the viewer's session, grant and token last.

type ListenRequest = {
  readonly requester: Requester;
  readonly sessionId: string;
  readonly names: readonly string[] | null;
};

/** See `createSites`. */
async function listen(deps: Deps, parts: Parts, request: ListenRequest): Promise<SharedSubscription<SiteEvent> | null> {
  const { requester, sessionId } = request;
  const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'invoke' });
  const names = checkNames(request.names);
  if (!access || !requester) return null;
  requireAllowed(deps, access, { kind: 'subscribe', names });
  const { session, site, grant } = access;
  // The names in the site's definition are compared at publication, so that a change to them takes effect at once.
  const effective = site && effectiveEvents(grant, site, names);
  const held = { sessionId, grantId: grant.grantId, tokenEndsAt: requester.expiresAt };
  return { ...eventsOf(deps, session, effective), lifetime: new ViewerLifetime(held, parts) };
}

/**
 * Returns the events of a site that have one of these names (null: any name). Requesters with the same names share
 * them, also if they come through different sessions.
 */
function eventsOf(
  { backend: { bus } }: Deps,
  { userId, siteId }: SiteKey,
  names: readonly string[] | null,
): Pick<SharedSubscription<SiteEvent>, 'key' | 'listen'> {
  return {
    key: JSON.stringify([userId, siteId, names]),
    listen(push) {
      const wanted = names && new Set(names);
      let lost = 0;
      return bus.subscribe(
        `site:${siteKeyText({ userId, siteId })}`,
        (event) => {
          if (wanted !== null && !wanted.has(event.name)) return;
          push(event, lost);
          lost = 0;
        },
        () => (lost = 1),
      );
    },
  };
}

type Held = {
  readonly sessionId: string;
  readonly grantId: string;
  /** When the token expires, in epoch milliseconds; null: it does not expire. */
  readonly tokenEndsAt: number | null;
};

type Parts = { readonly watch: SessionWatch; readonly clock: Clock };

/**
 * The lifetime of one viewer's stream: it lasts as long as the session, the grant and the token. A class, because there
 * is one for each viewer of each site.
 */
class ViewerLifetime implements Lifetime, SessionReader {
  readonly #sessionId: string;
  readonly #grantId: string;
  readonly #tokenEndsAt: number | null;
  readonly #parts: Parts;
  #ended: CallboardError | null = null;
  #target: Parameters<Lifetime['endWith']>[0] | null = null;

  constructor({ sessionId, grantId, tokenEndsAt }: Held, parts: Parts) {
    this.#sessionId = sessionId;
    this.#grantId = grantId;
    this.#tokenEndsAt = tokenEndsAt;
    this.#parts = parts;
    parts.watch.watch(sessionId, this);
  }

  endWith(target: Parameters<Lifetime['endWith']>[0]): void {
    if (this.#ended) target.fail(this.#ended);
    else this.#target = target;
  }

  close(): void {
    this.#target = null;
    this.#parts.watch.unwatch(this.#sessionId, this);
  }

  sessionRead(session: SiteSession | null): void {
    this.#ended ??= this.#endOf(session, this.#parts.clock.now());
    if (!this.#ended || !this.#target) return;
    const target = this.#target;
    this.#target = null;
    target.fail(this.#ended);
  }

  /** Returns why the lifetime is over; null while it is not. */
  #endOf(session: SiteSession | null, now: number): CallboardError | null {
    if (!session || !isOpen(session, now)) return new CallboardError('session_inactive', 'The session is over.');
    const grant = session.grants.find((one) => one.grantId === this.#grantId);
    const held = this.#grantId === OWNER_GRANT || (grant !== undefined && isGrantLive(grant, now));
    if (!held) return new CallboardError('unauthenticated', 'The grant is over.');
    if (this.#tokenEndsAt !== null && now >= this.#tokenEndsAt)
      return new CallboardError('unauthenticated', 'The token has expired.');
    return null;
  }
}

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

// Publishes retained messages to the viewers of a site, if the rules of projection allow it.

/** The first rule of projection that a retained message did not meet, in the order in which the rules are checked. */
export type ProjectionRefusal = 'stream' | 'owner' | 'host' | 'name' | 'allowlist';

/**
 * The result of a projection. `refusedBy` is null if the message was published, and also if its stream is not under
 * `sites/` or the projection failed.
 */
export type Projection = { readonly published: boolean; readonly refusedBy: ProjectionRefusal | null };

/**
 * The longest JSON text of a name, in characters: 128 characters, each of which may be escaped as `\uXXXX`, and the
 * quotes.
 */
const NAME_TEXT = 128 * 6 + 2;

/** What the rules check. The message belongs to the user whose token ingested it. */
export type ProjectionFacts = {
  readonly message: Pick<Message, 'userId' | 'clientId' | 'suffix' | 'kind'>;
  readonly payload: JsonText | null;
  readonly site: Site | null;
};

type ProjectionVerdict =
  | { readonly refusedBy: ProjectionRefusal }
  | { readonly refusedBy: null; readonly event: Pick<SiteEvent, 'name' | 'data'> };

/**
 * Checks the rules in the documented order; each is only checked if those before it hold. The second documented rule,
 * that the host matches the descriptor, is `owner` and `host`: the user and the client that the site names. Pure.
 */
export function projectSiteEvent({ message, payload, site }: ProjectionFacts): ProjectionVerdict {
  const siteId = siteOfStream(message.suffix);
  if (siteId === null || message.kind !== 'event') return { refusedBy: 'stream' };
  if (site?.siteId !== siteId || site.userId !== message.userId) return { refusedBy: 'owner' };
  if (site.clientId !== message.clientId) return { refusedBy: 'host' };
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
