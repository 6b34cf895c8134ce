/** Opens, reads, shares, revokes and closes the sessions of sites. */
import { requireAdmin, requirePrincipal, requireUser, type Principal } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { isId } from '../ids.ts';
import { GRANTS_PER_SESSION, SESSION_TTL_SECONDS, SESSIONS_PER_SITE } from '../limits.ts';
import { checkGrant, siteIdOf } from './definition.ts';
import { effectiveActions, namesDenied, type HostedSite } from './policy.ts';
import type { NewToken, OpenedSession, SessionView, SiteSessions } from './api.ts';
import { descendsFrom, OWNER_GRANT, ownerGrant, type Grant, type SiteSession } from './session.ts';
import { COOPERATIVE } from './site.ts';
import { findSession, hosted, requireAllowed, sessionView, siteOf, sessionAccessOf } from './session-access.ts';
import type { CreateRefusal } from './store.ts';
import { newGrantToken } from './tokens.ts';
import type { SessionWatch } from './watch.ts';

type Rooms = Pick<SiteSessions, 'open' | 'session' | 'close' | 'share' | 'revoke'>;

/** Creates the API for opening, reading, sharing, revoking and closing sessions. */
export function createSessions(deps: Deps, watch: SessionWatch): Rooms {
  const { backend } = deps;
  const hint = (sessionId: string): void => backend.bus.publish(`session:${sessionId}`, null);
  return {
    async open(requester, site, request) {
      const { userId } = requireUser(requester, 'host');
      const key = { userId, siteId: siteIdOf(site) };
      const { ttlMs, ...grantRequest } = checkGrant(request);
      const [found] = await backend.sites.get([key]);
      const [descriptor] = await hosted(deps, found ? [found] : []);
      if (!descriptor) return null;
      const given = firstGrant(descriptor, grantRequest);
      const sessionId = backend.sessions.prefixOf(userId) + deps.crypto.randomId();
      const { token, tokenHash } = newGrantToken(deps, userId);
      const result = await backend.sessions.open({
        ...key,
        sessionId,
        ttlMs: ttlMs ?? SESSION_TTL_SECONDS.default * 1000,
        grant: { ...given, grantId: deps.crypto.randomId(), parentId: null, ttlMs: null, tokenHash },
      });
      if (result.kind !== 'opened') return refusedCreation(result, `A site has at most ${SESSIONS_PER_SITE} sessions.`);
      return opened(deps, watch, { session: result.session, site: descriptor, token });
    },
    async session(requester, sessionId) {
      const principal = requirePrincipal(requester);
      if (principal.kind === 'admin') return adminView(deps, watch, { requester: principal, sessionId });
      const access = await sessionAccessOf(deps, principal, { sessionId, scope: 'invoke' });
      if (!access) return null;
      requireAllowed(deps, access, { kind: 'read' });
      return sessionView(deps, watch, { access, whole: access.grant.grantId === OWNER_GRANT });
    },
    async close(requester, sessionId) {
      requireUser(requester, 'host');
      const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'host' });
      const session = access && (await backend.sessions.close(sessionId));
      if (!session) return null;
      hint(sessionId);
      return sessionView(deps, watch, { access: { ...access, session }, whole: true });
    },
    async share(requester, sessionId, request) {
      const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'host' });
      const { ttlMs, events, actions } = checkGrant(request);
      if (!access) return null;
      const { grant: parent, site } = access;
      const share = request.share ?? false;
      requireAllowed(deps, access, { kind: 'share', events, actions, share });
      const { token, tokenHash } = newGrantToken(deps, access.session.userId);
      const result = await backend.sessions.addGrant(sessionId, {
        grantId: deps.crypto.randomId(),
        parentId: parent.grantId === OWNER_GRANT ? null : parent.grantId,
        events: events ?? parent.events,
        actions: actions ?? (site ? effectiveActions(parent, site) : []),
        share,
        ttlMs,
        tokenHash,
      });
      if (result.kind === 'added') return { grant: result.grant, token } satisfies NewToken;
      return refusedCreation(result, `A session has at most ${GRANTS_PER_SESSION} grants.`, 'session_inactive');
    },
    async revoke(requester, sessionId, grantId) {
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

type Opening = { readonly session: SiteSession; readonly site: HostedSite; readonly token: string };

function opened(deps: Deps, watch: SessionWatch, { session, site, token }: Opening): OpenedSession {
  const access = { session, site, grant: ownerGrant(session), connector: null };
  const [grant = access.grant] = session.grants;
  return { view: sessionView(deps, watch, { access, whole: true }), grant, token };
}

async function adminView(
  deps: Deps,
  watch: SessionWatch,
  { requester, sessionId }: { readonly requester: Principal | null; readonly sessionId: string },
): Promise<SessionView | null> {
  requireAdmin(requester);
  const session = await findSession(deps, sessionId);
  if (!session) return null;
  const access = { session, grant: null, ...(await siteOf(deps, session)) };
  return sessionView(deps, watch, { access, whole: true });
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
 * many. Otherwise the site, session or parent grant has disappeared since it was read. Then this throws the code
 * `gone`, or without it returns null as if nothing had ever existed.
 */
function refusedCreation({ kind }: CreateRefusal, full: string, gone?: 'session_inactive'): null {
  if (kind === 'full') fail('capacity_exceeded', full);
  return gone ? fail(gone, 'The session, or the grant, is over.') : null;
}
