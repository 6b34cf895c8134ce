/**
 * The sessions of sites: opens, reads, shares and closes them, issues their grant tokens and tickets, looks up what a
 * requester may do in one, and notices when one ends.
 */
import { seenActions, withoutLimit } from '../auth/sight.ts';
import {
  requirePrincipal,
  requireScope,
  requireUser,
  type GrantPrincipal,
  type Principal,
  type Requester,
  type Scope,
} from '../auth/principal.ts';
import type { Bus } from '../backend.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail, isStoreUnavailable } from '../errors.ts';
import { id, isId } from '../ids.ts';
import {
  GRANTS_PER_SESSION,
  SESSIONS_PER_SITE,
  SESSION_TICKETS,
  SESSION_TTL_SECONDS,
  SESSION_WATCH_MS,
  TICKET_MS,
} from '../limits.ts';
import type { Cancel } from '../ports.ts';
import {
  effectiveActions,
  effectiveEvents,
  namesDenied,
  sessionPolicy,
  type HostedSite,
  type SessionOperation,
} from './session-policy.ts';
import { checkGrant } from './site-definition.ts';
import type {
  GrantRequest,
  NewToken,
  OpenedSession,
  RedeemedTicket,
  SessionView,
  ShareRequest,
  SiteView,
} from './site-requests.ts';
import {
  OWNER_GRANT,
  descendsFrom,
  isGrantLive,
  ownerGrant,
  sessionState,
  type Grant,
  type SiteSession,
} from './site-session.ts';
import type { CreateRefusal } from './site-stores.ts';
import { COOPERATIVE, type Site } from './site.ts';

/**
 * Creates the API for opening, reading, sharing, revoking and closing sessions. Only the owner and the holders of a
 * session's grants take part in it, and an administrator may only read it. For anyone else the session does not exist.
 * Reading and sharing ask `sessionPolicy`, and throw the code with which it refuses.
 */
export function createSessions(deps: Deps, watch: SessionWatch) {
  const { backend } = deps;
  const hint = (sessionId: string): void => backend.bus.publish(`session:${sessionId}`, null);
  return {
    /** Opens a session. Needs the scope `host`. Null: no such site. */
    async open(requester: Requester, site: string, request: GrantRequest): Promise<OpenedSession | null> {
      const { userId } = withoutLimit(requireUser(requester, 'host'));
      const key = { userId, siteId: id('site_id', site) };
      const { ttlMs, ...grantRequest } = checkGrant(request);
      const [found] = await backend.sites.get([key]);
      const [hostedSite] = await hosted(deps, found ? [found] : []);
      if (!hostedSite) return null;
      const given = firstGrant(hostedSite, grantRequest);
      const sessionId = backend.sessions.prefixOf(userId) + deps.crypto.randomId();
      const { token, tokenHash } = newToken(deps, GRANT, userId);
      const result = await backend.sessions.open({
        ...key,
        sessionId,
        ttlMs: ttlMs ?? SESSION_TTL_SECONDS.default * 1000,
        grant: { ...given, grantId: deps.crypto.randomId(), parentId: null, ttlMs: null, tokenHash },
      });
      if (result.kind !== 'opened') return refusedCreation(result, `A site has at most ${SESSIONS_PER_SITE} sessions.`);
      const { session } = result;
      const access = { session, site: hostedSite, grant: ownerGrant(session), connector: null };
      const [grant = access.grant] = session.grants;
      return { view: sessionView(deps, watch, { access, whole: true }), grant, token };
    },
    /** Returns a session. Null: it does not exist or belongs to another user. An administrator reads any session. */
    async session(requester: Requester, sessionId: string): Promise<SessionView | null> {
      const principal = requirePrincipal(requester);
      if (principal.kind === 'admin') {
        const session = await findSession(deps, sessionId);
        const seen = session && { session, grant: null, ...(await siteOf(deps, session)) };
        return seen && sessionView(deps, watch, { access: seen, whole: true });
      }
      const access = await sessionAccessOf(deps, principal, { sessionId, scope: 'invoke' });
      if (!access) return null;
      requireAllowed(deps, access, { kind: 'read' });
      return sessionView(deps, watch, { access, whole: access.grant.grantId === OWNER_GRANT });
    },
    /**
     * Closes a session, for its owner with the scope `host`. Its streams end within a second. Null: the session does
     * not exist or belongs to another user.
     */
    async close(requester: Requester, sessionId: string): Promise<SessionView | null> {
      requireUser(requester, 'host');
      const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'host' });
      const session = access && (await backend.sessions.close(sessionId));
      if (!session) return null;
      hint(sessionId);
      return sessionView(deps, watch, { access: { ...access, session }, whole: true });
    },
    /**
     * Creates a grant, for the owner (scope `host`) or the holder of a grant with permission to share. Null: the
     * session does not exist or belongs to another user.
     */
    async share(requester: Requester, sessionId: string, request: ShareRequest): Promise<NewToken | null> {
      const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'host' });
      const { ttlMs, events, actions } = checkGrant(request);
      if (!access) return null;
      const { grant: parent, site } = access;
      const share = request.share ?? false;
      requireAllowed(deps, access, { kind: 'share', events, actions, share });
      const { token, tokenHash } = newToken(deps, GRANT, access.session.userId);
      const result = await backend.sessions.addGrant(sessionId, {
        grantId: deps.crypto.randomId(),
        parentId: parent.grantId === OWNER_GRANT ? null : parent.grantId,
        events: events ?? parent.events,
        actions: actions ?? (site ? effectiveActions(parent, site) : []),
        share,
        ttlMs,
        tokenHash,
      });
      if (result.kind === 'added') return { grant: result.grant, token };
      return refusedCreation(result, `A session has at most ${GRANTS_PER_SESSION} grants.`, 'session_inactive');
    },
    /**
     * Revokes a grant, for the owner (scope `host`), or the holder of that grant or of one that it derives from.
     * Returns the ids of all grants that this revokes. Null: there is no such grant that the requester may revoke.
     */
    async revoke(requester: Requester, sessionId: string, grantId: string): Promise<readonly string[] | null> {
      const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'host' });
      if (!access || !isId(grantId) || !mayRevoke(access, grantId)) return null;
      const revoked = await backend.sessions.revokeGrant(sessionId, grantId);
      if (revoked && revoked.length > 0) hint(sessionId);
      return revoked;
    },
  };
}

/**
 * Makes the first grant of a session. It obeys the same rules as grants that the owner gives later, except that opening
 * a session does not need permission to share.
 */
function firstGrant(
  site: HostedSite,
  { events, actions }: Pick<Grant, 'events' | 'actions'>,
): Pick<Grant, 'events' | 'actions' | 'share'> {
  if (site.mode !== COOPERATIVE) fail('site_mode_denied', 'The site is not cooperative.');
  const share = site.capabilityProfile.sharing;
  const verdict = namesDenied({ events: null, actions: null }, site, { events, actions, share });
  if (verdict && !verdict.allowed) fail(verdict.code, verdict.message);
  return { events, actions: actions ?? site.actions, share };
}

/**
 * Whether the holder of `grant` may revoke the grant with the id `grantId`. The owner may revoke any grant. Others may
 * revoke their own grant and those derived from it; for them the other grants do not exist.
 */
function mayRevoke({ grant, session }: { readonly grant: Grant; readonly session: SiteSession }, grantId: string) {
  return grant.grantId === OWNER_GRANT || descendsFrom(session.grants, grantId, grant.grantId);
}

/**
 * Answers a request to create a session or grant that the store refused. Throws `capacity_exceeded` if there are too
 * many. Otherwise the site, session or parent grant has ended since it was read: throws the code in `gone`, or returns
 * null if no code is given.
 */
function refusedCreation({ kind }: CreateRefusal, full: string, gone?: 'session_inactive'): null {
  if (kind === 'full') fail('capacity_exceeded', full);
  return gone ? fail(gone, 'The session, or the grant, is over.') : null;
}

// Issues grant tokens and tickets, and finds out who holds them. Stores keep only their digests.

const GRANT = 'cbg_';
const TICKET = 'cbt_';
/** The length of the random part at the end of a token, in characters. */
const SECRET_CHARS = 43;
const SECRET = /^cb[gt]_[A-Za-z0-9_-]{43,80}$/;

/** Whether a bearer token has the form of a grant's token, which no other token has. */
export function isGrantToken(token: string): boolean {
  return token.startsWith(GRANT) && SECRET.test(token);
}

type TokenDeps = Pick<Deps, 'backend' | 'crypto'>;

/** Makes a token, which is shown once, and the digest of it that is stored. */
function newToken({ backend, crypto }: TokenDeps, form: typeof GRANT | typeof TICKET, userId: string) {
  const token = form + backend.sessions.prefixOf(userId) + crypto.randomToken();
  return { token, tokenHash: digestOf(crypto, token) };
}

/** Returns the stored form of a token: its SHA-256, preceded by the prefix that locates it in the store. */
function digestOf(crypto: TokenDeps['crypto'], token: string): string {
  return token.slice(GRANT.length, -SECRET_CHARS) + crypto.sha256(token);
}

/** Issues tickets, and resolves tickets and grant tokens to their holders. */
export function createTokens(deps: Deps) {
  const { backend, clock, crypto } = deps;
  const nextOrder = createOrder(deps);
  return {
    /**
     * Issues a ticket for one `EventSource`, so that no token is in a URL. It must be redeemed within TICKET_MS and is
     * then valid for reconnects. Throws the code with which `sessionPolicy` refuses.
     */
    async ticket(requester: Requester, sessionId: string) {
      const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'invoke' });
      if (!access || !requester) return null;
      requireAllowed(deps, access, { kind: 'subscribe', names: null });
      const { token, tokenHash } = newToken(deps, TICKET, access.session.userId);
      const { grantId } = access.grant;
      const ticket = { sessionId, grantId, holderExpiresAt: requester.expiresAt, ttlMs: TICKET_MS };
      const result = await backend.sessions.putTicket(tokenHash, ticket);
      if (result.kind === 'put') return { ticket: token, expiresAt: result.expiresAt };
      if (result.kind === 'gone') fail('session_inactive', 'The session is over.');
      return fail('capacity_exceeded', `A session may have at most ${SESSION_TICKETS} unused tickets.`, {
        retryAfterMs: TICKET_MS,
      });
    },
    /**
     * Redeems a ticket: the first time within TICKET_MS, then again for as long as the session is stored and the grant
     * and the token of its taker are valid. Throws `unauthenticated` otherwise, and for a ticket of another session.
     * Does not check whether the session is over; subscribing does.
     */
    async redeem(sessionId: string, token: string): Promise<RedeemedTicket> {
      const form = token.startsWith(TICKET) && SECRET.test(token);
      const ticket = form ? await backend.sessions.redeemTicket(digestOf(crypto, token)) : null;
      const session = ticket && (await findSession(deps, ticket.sessionId));
      if (!session || ticket.sessionId !== sessionId) return badTicket();
      const { grantId, holderExpiresAt: expiresAt } = ticket;
      if (expiresAt !== null && expiresAt <= clock.now()) badTicket();
      const occupy = occupierOf(backend.bus, digestOf(crypto, token), nextOrder);
      if (grantId === OWNER_GRANT) {
        const scopes: ReadonlySet<Scope> = new Set<Scope>(['invoke']);
        return { principal: { kind: 'user', userId: session.userId, scopes, expiresAt }, occupy };
      }
      const grant = session.grants.find((one) => one.grantId === grantId);
      if (!grant || !isGrantLive(grant, clock.now())) badTicket();
      const ownerId = session.userId;
      return { principal: { kind: 'grant', sessionId, grantId, ownerId, expiresAt: grant.expiresAt }, occupy };
    },
    /** Returns the principal that a grant's token represents. Throws `unauthenticated`. */
    async holder(token: string): Promise<GrantPrincipal> {
      const found = isGrantToken(token) ? await backend.sessions.findByToken(digestOf(crypto, token)) : null;
      if (!found) return fail('unauthenticated', 'The token is not valid.', { tokenFault: 'grant' });
      const { grant, session } = found;
      if (!isGrantLive(grant, clock.now())) fail('unauthenticated', 'The grant is over.', { tokenFault: 'grant' });
      const { grantId, expiresAt } = grant;
      return { kind: 'grant', sessionId: session.sessionId, grantId, ownerId: session.userId, expiresAt };
    },
  };
}

/**
 * Creates the `occupy` of a ticket. If two streams of a ticket are opened at once on different nodes, the one with the
 * greater text of `nextOrder` stays open.
 */
function occupierOf(bus: Bus, ticketHash: string, nextOrder: () => string): RedeemedTicket['occupy'] {
  return (onReplaced) => {
    const topic = `ticket:${ticketHash}` as const;
    const own = nextOrder();
    bus.publish(topic, own);
    const stop = bus.subscribe(topic, (other) => {
      if (other <= own) return;
      stop();
      onReplaced();
    });
    return stop;
  };
}

/**
 * Returns a function that returns texts which sort in the order of their creation. On one node the order is exact;
 * across nodes it is as accurate as their clocks agree.
 */
function createOrder({ clock, crypto }: Deps): () => string {
  let at = 0;
  let count = 0;
  return () => {
    at = Math.max(at, clock.now());
    return `${String(at).padStart(16, '0')} ${String(count++).padStart(16, '0')} ${crypto.randomId()}`;
  };
}

function badTicket(): never {
  fail('unauthenticated', 'The ticket is not valid or has expired.', { tokenFault: 'ticket' });
}

// Looks up what a requester has in a session: the grant, the site, and its connector.

/**
 * What a requester has in a session: all facts that `sessionPolicy` decides on, except the operation and the time.
 * `connector`: the live link of the site's host.
 */
export type SessionAccess = {
  readonly grant: Grant;
  readonly session: SiteSession;
  readonly site: HostedSite | null;
  readonly connector: Connection | null;
};

/** Adds to each site whether its host is connected now. Reads all hosts together. */
export async function hosted({ backend, clock }: Deps, sites: readonly Site[]): Promise<readonly HostedSite[]> {
  const connections = await backend.connections.get(sites);
  const now = clock.now();
  return sites.map((site, i) => hostedBy(site, connections[i] ?? null, now));
}

function hostedBy(site: Site, connection: Connection | null, now: number): HostedSite {
  return { ...site, hostConnected: isConnector(connection, now), hostNodeId: connection?.nodeId ?? null };
}

/**
 * Whether the connection carries the site's commands: it must be live, and its token must have had the scope `host`.
 */
function isConnector(connection: Connection | null, now: number): connection is Connection {
  return isLive(connection, now) && connection.host;
}

/**
 * Returns what the requester holds in this session. The owner needs `scope`; a grant is valid for its own session only.
 * Null: the session is absent or belongs to another user. Throws `forbidden` for an administrator, who cannot take part
 * in sessions, and `unauthenticated` if the session no longer has the grant.
 */
export async function sessionAccessOf(
  deps: Deps,
  requester: Requester,
  { sessionId, scope }: { readonly sessionId: string; readonly scope: Scope },
): Promise<SessionAccess | null> {
  const principal = requirePrincipal(requester);
  if (principal.kind !== 'grant' && requireScope(principal, scope).kind === 'admin')
    fail('forbidden', 'An administrator may read sessions but not take part in them.');
  // The owner of a session reaches all actions of its site, and may pass them on by grants.
  withoutLimit(seenActions(principal));
  const session = await findSession(deps, sessionId);
  const grant = session && grantIn(session, principal);
  return grant && { grant, session, ...(await siteOf(deps, session)) };
}

async function findSession({ backend }: Deps, sessionId: string): Promise<SiteSession | null> {
  if (!isId(sessionId)) return null;
  const [session] = await backend.sessions.get([sessionId]);
  return session ?? null;
}

async function siteOf(deps: Deps, session: SiteSession): Promise<Pick<SessionAccess, 'site' | 'connector'>> {
  const [site] = await deps.backend.sites.get([session]);
  if (!site) return { site: null, connector: null };
  const [connection = null] = await deps.backend.connections.get([site]);
  const now = deps.clock.now();
  return { site: hostedBy(site, connection, now), connector: isConnector(connection, now) ? connection : null };
}

function grantIn(session: SiteSession, requester: Principal): Grant | null {
  if (requester.kind === 'grant') return requester.sessionId === session.sessionId ? heldBy(session, requester) : null;
  return requester.kind === 'user' && requester.userId === session.userId ? ownerGrant(session) : null;
}

/**
 * Returns the holder's grant. Throws `unauthenticated` if the session no longer has it. Only ended grants are dropped
 * to make room, so that grant has ended.
 */
function heldBy({ grants }: SiteSession, { grantId }: GrantPrincipal): Grant {
  const grant = grants.find((one) => one.grantId === grantId);
  return grant ?? fail('unauthenticated', 'The grant is over.');
}

/** Checks an operation in a session. Throws the code of the rule that refuses it. */
export function requireAllowed(deps: Deps, { grant, session, site }: SessionAccess, operation: SessionOperation): void {
  const verdict = sessionPolicy.allows({ grant, session, site, operation, now: deps.clock.now() });
  if (!verdict.allowed) fail(verdict.code, verdict.message);
}

/** Returns the site as its owner and administrators see it. */
export function wholeSite(site: HostedSite): SiteView {
  return { ...site, seen: 'whole' };
}

/** Returns the site as a grant's holder may see it: only the names that the grant may use. */
function grantedSite(site: HostedSite, grant: Grant, { sessionId }: SiteSession): SiteView {
  const eventNames = effectiveEvents(grant, site, null) ?? site.eventNames;
  return { ...site, eventNames, actions: effectiveActions(grant, site), seen: 'granted', sessionId };
}

/** A session that is shown; an administrator has no grant in it. */
type Seen = Omit<SessionAccess, 'grant'> & { readonly grant: Grant | null };

/** Returns a session as one requester may see it. `whole`: the view of the owner and of administrators. */
export function sessionView(
  { clock }: Deps,
  watch: SessionWatch,
  { access, whole }: { readonly access: Seen; readonly whole: boolean },
): SessionView {
  const { session, site, grant } = access;
  return {
    session,
    state: sessionState(session, site?.hostConnected ?? false, clock.now()),
    site: site && (whole || grant === null ? wholeSite(site) : grantedSite(site, grant, session)),
    grant,
    grants: whole ? session.grants : null,
    subscribers: whole ? watch.count(session.sessionId) : null,
  };
}

// Notices when a session, or a grant in it, ends.

export interface SessionReader {
  /** Called with the present session; null: it is no longer stored. */
  sessionRead(session: SiteSession | null): void;
}

/**
 * The watchers of one session. They are kept by session, so that a hint costs only as much as its session has watchers.
 */
type Watched = { readonly readers: Set<SessionReader>; readonly stopHints: Cancel };

/** Watches sessions on this node for changes that end a viewer's access. */
export type SessionWatch = ReturnType<typeof createSessionWatch>;

export function createSessionWatch({ backend, clock, log }: Deps) {
  const watched = new Map<string, Watched>();
  let stop: Cancel | null = null;

  const read = async (sessionIds: readonly string[]): Promise<void> => {
    const sessions = await backend.sessions.get(sessionIds);
    sessionIds.forEach((sessionId, i) => {
      for (const reader of [...(watched.get(sessionId)?.readers ?? [])]) reader.sessionRead(sessions[i] ?? null);
    });
  };
  const readSafely = (sessionIds: readonly string[]): void => {
    read(sessionIds).catch((error: unknown) => {
      if (!isStoreUnavailable(error)) log.warn({ err: error }, 'watched sessions could not be read');
    });
  };
  const begin = (sessionId: string): Watched => {
    stop ??= clock.every(SESSION_WATCH_MS, () => readSafely([...watched.keys()]));
    const stopHints = backend.bus.subscribe(`session:${sessionId}`, () => readSafely([sessionId]));
    const row = { readers: new Set<SessionReader>(), stopHints };
    watched.set(sessionId, row);
    return row;
  };
  return {
    /**
     * Passes the present session to `reader` when a hint says that the session or one of its grants ended, and at least
     * every SESSION_WATCH_MS, because hints may be lost.
     */
    watch(sessionId: string, reader: SessionReader): void {
      (watched.get(sessionId) ?? begin(sessionId)).readers.add(reader);
    },
    /** Stops watching. Idempotent. */
    unwatch(sessionId: string, reader: SessionReader): void {
      const row = watched.get(sessionId);
      if (!row?.readers.delete(reader) || row.readers.size > 0) return;
      watched.delete(sessionId);
      row.stopHints();
      if (watched.size > 0) return;
      stop?.();
      stop = null;
    },
    /** Returns the number of watchers of a session on this node. */
    count: (sessionId: string): number => watched.get(sessionId)?.readers.size ?? 0,
  };
}
