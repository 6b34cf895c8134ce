/** The API of sites: their registry, the sessions of their viewers, and the actions that viewers may invoke. */
import type { Requester, UserPrincipal } from '../auth/principal.ts';
import type { CallSpan, Invocation } from '../calls/call.ts';
import { invokeChecked, withCallSpan } from '../calls/calls.ts';
import { refused, type InvokeParts } from '../calls/preflight.ts';
import { checkInvoke, type CheckedInvoke } from '../calls/request.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, fail } from '../errors.ts';
import { subscribeTo, type Lifetime, type SharedSubscription } from '../live.ts';
import type { Clock } from '../ports.ts';
import { createRegistry } from './registry.ts';
import {
  createSessionWatch,
  createSessions,
  createTokens,
  requireAllowed,
  sessionAccessOf,
  type SessionAccess,
  type SessionReader,
  type SessionWatch,
} from './sessions.ts';
import { checkNames, effectiveEvents, sessionPolicy, type SiteInvokeRequest } from './site-policy.ts';
import {
  OWNER_GRANT,
  isGrantLive,
  isOpen,
  siteKeyText,
  type SiteEvent,
  type SiteKey,
  type SiteSession,
} from './site.ts';

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
