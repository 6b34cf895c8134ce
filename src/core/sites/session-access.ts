/** Looks up a requester's access to a session: its grant, the session's site, and the client that serves the site. */
import {
  requirePrincipal,
  requireScope,
  type GrantPrincipal,
  type Principal,
  type Requester,
  type Scope,
} from '../auth/principal.ts';
import { seenActions, withoutLimit } from '../auth/sight.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { isId } from '../ids.ts';
import {
  effectiveActions,
  effectiveEvents,
  sessionPolicy,
  type HostedSite,
  type SessionOperation,
} from './session-policy.ts';
import type { SessionWatch } from './session-watch.ts';
import type { SessionView, SiteView } from './site-requests.ts';
import { ownerGrant, sessionState, type Grant, type SiteSession } from './site-session.ts';
import type { Site } from './site.ts';

/**
 * A requester's access to a session: all input of `sessionPolicy` except the operation and the time. `connector`: the
 * live link of the client that serves the site; null if there is none.
 */
export type SessionAccess = {
  readonly grant: Grant;
  readonly session: SiteSession;
  readonly site: HostedSite | null;
  readonly connector: Connection | null;
};

/** Adds to each site whether its host is connected. Reads all hosts together. */
export async function hosted({ backend, clock }: Deps, sites: readonly Site[]): Promise<readonly HostedSite[]> {
  const connections = await backend.connections.get(sites);
  const now = clock.now();
  return sites.map((site, i) => hostedBy(site, connections[i] ?? null, now));
}

function hostedBy(site: Site, connection: Connection | null, now: number): HostedSite {
  return { ...site, hostConnected: isConnector(connection, now), hostNodeId: connection?.nodeId ?? null };
}

/**
 * Whether the commands of a site can be sent over this connection: it must be live, and the token of its link must have
 * the scope `host`.
 */
function isConnector(connection: Connection | null, now: number): connection is Connection {
  return isLive(connection, now) && connection.host;
}

/**
 * Returns the requester's access to this session. The owner needs the scope `scope`. A grant is valid for its own
 * session only. Null if the session does not exist or belongs to another user. Throws `forbidden` for an administrator,
 * who cannot take part in sessions, and `unauthenticated` if the session no longer has the grant.
 */
export async function sessionAccessOf(
  deps: Deps,
  requester: Requester,
  { sessionId, scope }: { readonly sessionId: string; readonly scope: Scope },
): Promise<SessionAccess | null> {
  const principal = requirePrincipal(requester);
  if (principal.kind !== 'grant' && requireScope(principal, scope).kind === 'admin')
    fail('forbidden', 'An administrator may read sessions but not take part in them.');
  // The owner of a session can use all actions of its site and pass them on with grants. So a token that is limited to
  // some actions is refused.
  withoutLimit(seenActions(principal));
  const session = await findSession(deps, sessionId);
  const grant = session && grantIn(session, principal);
  return grant && { grant, session, ...(await siteOf(deps, session)) };
}

export async function findSession({ backend }: Deps, sessionId: string): Promise<SiteSession | null> {
  if (!isId(sessionId)) return null;
  const [session] = await backend.sessions.get([sessionId]);
  return session ?? null;
}

export async function siteOf(deps: Deps, session: SiteSession): Promise<Pick<SessionAccess, 'site' | 'connector'>> {
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
 * Returns the grant of a grant's holder. Throws `unauthenticated` if the session no longer has it: only ended grants
 * are removed to make room, so this grant has ended.
 */
function heldBy({ grants }: SiteSession, { grantId }: GrantPrincipal): Grant {
  const grant = grants.find((one) => one.grantId === grantId);
  return grant ?? fail('unauthenticated', 'The grant is over.');
}

/** Checks an operation in a session. Throws the code with which `sessionPolicy` refuses it. */
export function requireAllowed(deps: Deps, { grant, session, site }: SessionAccess, operation: SessionOperation): void {
  const verdict = sessionPolicy.allows({ grant, session, site, operation, now: deps.clock.now() });
  if (!verdict.allowed) fail(verdict.code, verdict.message);
}

/** Returns the site in the form in which its owner and administrators see it. */
export function wholeSite(site: HostedSite): SiteView {
  return { ...site, seen: 'whole' };
}

/** Returns the site in the form in which a grant's holder sees it: only with the names that the grant may use. */
function grantedSite(site: HostedSite, grant: Grant, { sessionId }: SiteSession): SiteView {
  const eventNames = effectiveEvents(grant, site, null) ?? site.eventNames;
  return { ...site, eventNames, actions: effectiveActions(grant, site), seen: 'granted', sessionId };
}

/** The access to a session for the purpose of showing it. `grant`: null for an administrator, who has no grant. */
type Seen = Omit<SessionAccess, 'grant'> & { readonly grant: Grant | null };

/**
 * Returns a session in the form in which one requester sees it. `whole`: whether the requester is the owner or an
 * administrator, who see everything.
 */
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
