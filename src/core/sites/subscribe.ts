import type { Principal } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, type Code } from '../errors.ts';
import { createFeed, type Subscription } from '../live.ts';
import { checkNames } from './definition.ts';
import { effectiveEvents } from './policy.ts';
import { isGrantLive, isOpen, OWNER_GRANT, type Grant, type SiteSession } from './session.ts';
import { siteKeyText, type SiteEvent } from './site.ts';
import { requireAllowed, standingOf } from './standing.ts';
import type { SessionWatch } from './watch.ts';

type Asked = {
  readonly who: Principal | null;
  readonly sessionId: string;
  readonly names: readonly string[] | null;
};

/** See `SiteSessions.subscribe`. */
export async function subscribe(
  deps: Deps,
  watch: SessionWatch,
  asked: Asked,
): Promise<Subscription<SiteEvent> | null> {
  const { who, sessionId } = asked;
  const standing = await standingOf(deps, who, { sessionId, scope: 'invoke' });
  const names = checkNames(asked.names);
  if (!standing || !who) return null;
  requireAllowed(deps, standing, { kind: 'subscribe', names });
  const { session, site, grant } = standing;
  // The descriptor's own list is applied where events are published, so that a change of it counts from then on.
  const effective = site && effectiveEvents(grant, site, names);
  const wanted = effective && new Set(effective);
  const feed = createFeed<SiteEvent>(() => {
    stopEvents();
    stopWatch();
  });
  const stopEvents = deps.backend.bus.subscribe(`site:${siteKeyText(session)}`, (event) => {
    if (wanted === null || wanted.has(event.name)) feed.push(event);
  });
  const stopWatch = watch.watch(sessionId, (now) => {
    const end = endOf({ session: now, grant, tokenEndsAt: who.expiresAt }, deps.clock.now());
    if (end) feed.fail(new CallboardError(end.code, end.message));
  });
  return feed.subscription;
}

type Watched = {
  readonly session: SiteSession | null;
  readonly grant: Grant;
  readonly tokenEndsAt: number | null;
};

/** Why a subscription ends; null while it goes on. */
function endOf(
  { session, grant: { grantId }, tokenEndsAt }: Watched,
  now: number,
): { readonly code: Code; readonly message: string } | null {
  if (!session || !isOpen(session, now)) return { code: 'session_inactive', message: 'The session is over.' };
  const grant = session.grants.find((one) => one.grantId === grantId);
  const held = grantId === OWNER_GRANT || (grant !== undefined && isGrantLive(grant, now));
  if (!held) return { code: 'unauthenticated', message: 'The grant is over.' };
  if (tokenEndsAt !== null && now >= tokenEndsAt) return { code: 'unauthenticated', message: 'The token has expired.' };
  return null;
}
