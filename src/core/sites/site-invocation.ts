/** Invokes an action of a site on behalf of a viewer. */
import type { Requester, UserPrincipal } from '../auth/principal.ts';
import { type CallSpan, type Invocation, checkInvoke, type CheckedInvoke } from '../calls/call.ts';
import { invokeChecked } from '../calls/calls.ts';
import { refused, type InvokeDeps } from '../calls/preflight.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { sessionAccessOf, type SessionAccess } from './session-access.ts';
import { sessionPolicy } from './session-policy.ts';
import type { SiteInvokeRequest } from './site-requests.ts';

type SiteInvocationOptions = {
  readonly requester: Requester;
  readonly sessionId: string;
  readonly request: SiteInvokeRequest;
};

export async function invokeSite(
  parts: InvokeDeps,
  { requester, sessionId, request }: SiteInvocationOptions,
  span: CallSpan | null,
): Promise<Invocation | null> {
  const { deps } = parts;
  const access = await sessionAccessOf(deps, requester, { sessionId, scope: 'invoke' });
  if (!access) return null;
  const { session, site, grant, connector } = access;
  const { userId, siteId } = session;
  // If the site was removed, its client is unknown. A placeholder is used, so that errors in the input are still
  // reported first.
  const target = { userId, clientId: site?.clientId ?? siteId };
  const through = { siteId, sessionId, grantId: grant.grantId };
  const checked = checkInvoke(deps.crypto, { ...request, ...target }, { site: through, span });
  const refusal = siteRefusal(deps, access, checked);
  if (refusal) return refusal;
  // The command names the instance of the connected host. If another instance connects before the command is written,
  // the command is not written to it.
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
    grant,
    session,
    site,
    now: deps.clock.now(),
    operation: { kind: 'invoke', action },
  });
  if (verdict.allowed) return null;
  // The grant has ended since its token was checked.
  if (verdict.code === 'unauthenticated') fail(verdict.code, verdict.message);
  deps.metrics.count('commands_refused', verdict.code);
  return refused(verdict.code, 'site', verdict.message, { commandId });
}

/**
 * Returns the principal for the policy: the owner, because the viewer acts on the owner's behalf. So rules for the
 * owner's own calls also apply to calls through the owner's sites.
 */
function ownerOf(userId: string): UserPrincipal {
  return { kind: 'user', userId, scopes: new Set(['invoke']), expiresAt: null };
}
