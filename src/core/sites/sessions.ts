/** Opens, reads, shares and closes the sessions of sites. */
import { requirePrincipal, requireUser, type Requester } from '../auth/principal.ts';
import { withoutLimit } from '../auth/sight.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { id, isId } from '../ids.ts';
import { GRANTS_PER_SESSION, SESSIONS_PER_SITE, SESSION_TTL_SECONDS } from '../limits.ts';
import { newToken, GRANT } from './grant-tokens.ts';
import { hosted, sessionView, findSession, siteOf, sessionAccessOf, requireAllowed } from './session-access.ts';
import { effectiveActions, namesDenied, type HostedSite } from './session-policy.ts';
import type { SessionWatch } from './session-watch.ts';
import { checkGrant } from './site-definition.ts';
import type { GrantRequest, NewToken, OpenedSession, SessionView, ShareRequest } from './site-requests.ts';
import { OWNER_GRANT, descendsFrom, ownerGrant, type Grant, type SiteSession } from './site-session.ts';
import type { CreateRefusal } from './site-stores.ts';
import { COOPERATIVE } from './site.ts';

/**
 * Creates the API of sessions. Only the owner and the holders of a session's grants can use a session, and an
 * administrator can only read it. For anyone else the session does not exist. Reading and sharing throw the code with
 * which `sessionPolicy` refuses.
 */
export function createSessions(deps: Deps, watch: SessionWatch) {
  const { backend } = deps;
  const hint = (sessionId: string): void => backend.bus.publish(`session:${sessionId}`, null);
  return {
    /** Opens a session. Needs the scope `host`. Null if there is no such site. */
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
    /**
     * Returns a session. Null if it does not exist or belongs to another user. An administrator may read any session.
     */
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
     * Closes a session. Only its owner may do so, with the scope `host`. The session's streams end within a second.
     * Null if the session does not exist or belongs to another user.
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
     * Creates a grant for the owner (scope `host`), or for the holder of a grant that permits sharing. Null if the
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
     * Revokes a grant, with all grants that derive from it. The owner (scope `host`) may do so, and the holder of that
     * grant or of a grant from which it derives. Returns the ids of the revoked grants. Null if there is no such grant
     * that the requester may revoke.
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
 * Checks and makes the first grant of a session. The rules are those for grants that the owner gives later, except that
 * the site need not permit sharing.
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
 * Whether the holder of `grant` may revoke the grant with the id `grantId`. The owner may revoke any grant. Other
 * holders may revoke their own grant and those that derive from it; for them, no other grants exist.
 */
function mayRevoke({ grant, session }: { readonly grant: Grant; readonly session: SiteSession }, grantId: string) {
  return grant.grantId === OWNER_GRANT || descendsFrom(session.grants, grantId, grant.grantId);
}

/**
 * Handles the store's refusal to create a session or a grant. Throws `capacity_exceeded` if there are too many.
 * Otherwise the site, the session or the parent grant has ended since it was read: throws the code `gone`, or returns
 * null if `gone` is absent.
 */
function refusedCreation({ kind }: CreateRefusal, full: string, gone?: 'session_inactive'): null {
  if (kind === 'full') fail('capacity_exceeded', full);
  return gone ? fail(gone, 'The session, or the grant, is over.') : null;
}
