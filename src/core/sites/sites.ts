/** The API of sites: their registry, the sessions of their viewers, and the actions that viewers may invoke. */
import type { Principal, UserPrincipal } from '../auth/principal.ts';
import { withCallSpan, type CallSpan } from '../calls/call-span.ts';
import type { Invocation } from '../calls/call.ts';
import { invokeChecked, refused, type InvokeParts } from '../calls/invoke.ts';
import { checkInvoke, type CheckedInvoke } from '../calls/request.ts';
import type { Deps } from '../deps.ts';
import { sessionPolicy, type SiteInvokeRequest, type Sites } from './site-policy.ts';
import { createRegistry } from './registry.ts';
import { createSessionWatch, sessionAccessOf, type SessionAccess } from './session-access.ts';
import { createSessions, createTokens } from './sessions.ts';
import { listen, subscribe } from './subscribe.ts';

/** Creates the API of cooperative sites: definitions, sessions with their grants, live events, and actions. */
export function createSites(parts: InvokeParts): Sites {
  const { deps } = parts;
  const watch = createSessionWatch(deps);
  // One object for all viewers, because there may be thousands.
  const viewing = { watch, clock: deps.clock };
  return {
    ...createRegistry(deps, watch),
    ...createSessions(deps, watch),
    ...createTokens(deps),
    listen: (requester, sessionId, names) => listen(deps, viewing, { requester, sessionId, names }),
    subscribe: (requester, sessionId, names) => subscribe(deps, viewing, { requester, sessionId, names }),
    invoke: (requester, sessionId, request) => invokeSite(parts, { requester, sessionId, request }),
  };
}

// Invokes an action of a site on behalf of a viewer.

type SiteInvocationParts = {
  readonly requester: Principal | null;
  readonly sessionId: string;
  readonly request: SiteInvokeRequest;
};

/**
 * Invokes an action of a site: see `Sites.invoke`. From admission on, the command is like any other command of the
 * owner's host client.
 */
async function invokeSite(parts: InvokeParts, given: SiteInvocationParts): Promise<Invocation | null> {
  return withCallSpan<Invocation | null>(parts.deps, given.request, (span) => invokeTraced(parts, given, span));
}

async function invokeTraced(
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
