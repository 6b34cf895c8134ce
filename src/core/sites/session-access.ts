/** Looks up what a requester has in a session: the grant, the site, and its connector. */
import { requirePrincipal, requireScope, type GrantPrincipal, type Principal, type Scope } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail, isStoreUnavailable } from '../errors.ts';
import { isId } from '../ids.ts';
import { SESSION_WATCH_MS } from '../limits.ts';
import type { Cancel } from '../ports.ts';
import {
  effectiveActions,
  effectiveEvents,
  sessionPolicy,
  type HostedSite,
  type SessionOperation,
  type SessionView,
  type SiteView,
} from './site-policy.ts';
import { ownerGrant, sessionState, type Grant, type Site, type SiteSession } from './site.ts';

/**
 * What a requester has in a session: the question for `sessionPolicy` without its `operation`. `connector`: the live
 * link of the site's host.
 */
export type SessionAccess = {
  readonly grant: Grant;
  readonly session: SiteSession;
  readonly site: HostedSite | null;
  readonly connector: Connection | null;
};

/** Adds to each site whether its host is connected now. One round trip. */
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
 * in sessions.
 */
export async function sessionAccessOf(
  deps: Deps,
  requester: Principal | null,
  { sessionId, scope }: { readonly sessionId: string; readonly scope: Scope },
): Promise<SessionAccess | null> {
  const principal = requirePrincipal(requester);
  if (principal.kind !== 'grant' && requireScope(principal, scope).kind === 'admin')
    fail('forbidden', 'An administrator may read sessions but not take part in them.');
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
 * Returns the grant of its holder. If the session no longer has it, the grant had ended: only ended grants are dropped
 * to make room.
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

/** Returns a session as one requester may see it. `whole`: the view of the owner and of administrators. */
export function sessionView(
  { clock }: Deps,
  watch: SessionWatch,
  {
    access,
    whole,
  }: { readonly access: Omit<SessionAccess, 'grant'> & { readonly grant: Grant | null }; whole: boolean },
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

/** Watches sessions on this node for changes that end a viewer's access. */
export interface SessionWatch {
  /**
   * Passes the present session to `reader` when a hint says that the session or one of its grants ended, and at least
   * every SESSION_WATCH_MS, because hints may be lost.
   */
  watch(sessionId: string, reader: SessionReader): void;
  /** Stops watching. Idempotent. */
  unwatch(sessionId: string, reader: SessionReader): void;
  /** Returns the number of watchers of a session on this node. */
  count(sessionId: string): number;
}

/**
 * The watchers of one session. They are kept by session, so that a hint costs only as much as its session has watchers.
 */
type Watched = { readonly readers: Set<SessionReader>; readonly stopHints: Cancel };

export function createSessionWatch({ backend, clock, log }: Deps): SessionWatch {
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
    watch(sessionId, reader) {
      (watched.get(sessionId) ?? begin(sessionId)).readers.add(reader);
    },
    unwatch(sessionId, reader) {
      const row = watched.get(sessionId);
      if (!row?.readers.delete(reader) || row.readers.size > 0) return;
      watched.delete(sessionId);
      row.stopHints();
      if (watched.size > 0) return;
      stop?.();
      stop = null;
    },
    count: (sessionId) => watched.get(sessionId)?.readers.size ?? 0,
  };
}
