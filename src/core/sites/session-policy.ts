/** Decides what a grant permits in a session. */
import type { Code } from '../errors.ts';
import { type Grant, type SiteSession, isOpen, isGrantLive, sessionState } from './site-session.ts';
import { type Site, COOPERATIVE } from './site.ts';

/**
 * What the holder of a grant wants to do in a session. If `names` is null, the holder wants everything that the grant
 * permits.
 */
export type SessionOperation =
  | { readonly kind: 'read' }
  | {
      readonly kind: 'share';
      readonly events: readonly string[] | null;
      readonly actions: readonly string[] | null;
      /** Whether the holder of the new grant may share the session too. */
      readonly share: boolean;
    }
  | { readonly kind: 'subscribe'; readonly names: readonly string[] | null }
  | { readonly kind: 'invoke'; readonly action: string };

/**
 * A site's current definition, and whether its host is connected. `hostNodeId`: the node that has, or last had, the
 * host's link, and that reports this state; null if there is none.
 */
export type HostedSite = Site & { readonly hostConnected: boolean; readonly hostNodeId: string | null };

type SessionDecision =
  { readonly allowed: true } | { readonly allowed: false; readonly code: Code; readonly message: string };

/** Everything on which the decision depends. `site`: null if its definition was removed. */
export type SessionPolicyInput = {
  readonly grant: Grant;
  readonly session: SiteSession;
  readonly site: HostedSite | null;
  readonly operation: SessionOperation;
  readonly now: number;
};

const ALLOWED: SessionDecision = { allowed: true };

/**
 * The one rule for sessions: reading, sharing, subscribing and invoking all use it. Pure. The rules of the site are
 * checked before the state of the session. A refusal by the state may go away with time; a refusal by the site's rules
 * does not.
 */
export const sessionPolicy = {
  allows(question: SessionPolicyInput): SessionDecision {
    const { grant, session, site, operation, now } = question;
    if (isOpen(session, now) && !isGrantLive(grant, now)) return refuse('unauthenticated', 'The grant is over.');
    if (operation.kind === 'read') return ALLOWED;
    if (site === null) return refuse('session_inactive', 'The site was removed.');
    if (site.mode !== COOPERATIVE) return refuse('site_mode_denied', 'The site is not cooperative.');
    return denied(question, site) ?? stateRefusal(question, site) ?? ALLOWED;
  },
};

/**
 * Returns those of the `requested` event names (null: all names) that the grant and the site's definition permit,
 * sorted. Null if these are all names that the definition permits.
 */
export function effectiveEvents(
  grant: Pick<Grant, 'events'>,
  site: Pick<Site, 'eventNames'>,
  requested: readonly string[] | null,
): readonly string[] | null {
  const named = requested === null ? grant.events : grant.events === null ? requested : within(requested, grant.events);
  if (named === null) return null;
  return site.eventNames.length === 0 ? [...named].sort() : within(named, site.eventNames).sort();
}

export function effectiveActions(grant: Pick<Grant, 'actions'>, site: Pick<Site, 'actions'>): readonly string[] {
  return grant.actions === null ? site.actions : within(site.actions, grant.actions);
}

function denied({ grant, operation }: SessionPolicyInput, site: HostedSite): SessionDecision | null {
  switch (operation.kind) {
    case 'read':
      return null;
    case 'invoke':
      return invokeDenied(grant, site, operation.action);
    case 'share':
      return shareDenied(grant, site, operation);
    case 'subscribe':
      return subscribeDenied(grant, site, operation.names);
  }
}

function invokeDenied(grant: Grant, site: HostedSite, action: string): SessionDecision | null {
  if (!site.capabilityProfile.actionInvocation)
    return refuse('site_capability_denied', 'The site does not allow invoking actions.');
  if (effectiveActions(grant, site).includes(action)) return null;
  return refuse('site_action_denied', 'The action is not among those that the site and the grant allow.');
}

function shareDenied(
  grant: Grant,
  site: HostedSite,
  { events, actions, share }: Extract<SessionOperation, { kind: 'share' }>,
): SessionDecision | null {
  if (!site.capabilityProfile.sharing) return refuse('site_capability_denied', 'The site does not allow sharing.');
  if (!grant.share) return refuse('forbidden', 'This grant does not allow sharing.');
  return namesDenied(grant, site, { events, actions, share });
}

/** Refuses names that a new grant must not have. The same check applies to the first grant of a session. */
export function namesDenied(
  grant: Pick<Grant, 'events' | 'actions'>,
  site: Site,
  { events, actions, share }: Omit<Extract<SessionOperation, { kind: 'share' }>, 'kind'>,
): SessionDecision | null {
  if (share && !site.capabilityProfile.sharing)
    return refuse('site_capability_denied', 'The site does not allow sharing.');
  const allowed = effectiveActions(grant, site);
  if (actions?.some((action) => !allowed.includes(action)))
    return refuse('site_action_denied', 'An action is not among those that the site and the grant allow.');
  const known = events === null ? null : effectiveEvents(grant, site, events);
  if (known !== null && events !== null && known.length < new Set(events).size)
    return refuse('forbidden', 'An event is not among those that the site and the grant allow.');
  return null;
}

function subscribeDenied(grant: Grant, site: HostedSite, names: readonly string[] | null): SessionDecision | null {
  const effective = effectiveEvents(grant, site, names);
  return effective?.length === 0 ? refuse('forbidden', 'None of these events is granted.') : null;
}

/**
 * Refuses an operation that the session's state does not permit. Invoking needs a connected host. Subscribing and
 * sharing only need a session that is not over.
 */
function stateRefusal({ session, operation, now }: SessionPolicyInput, site: HostedSite): SessionDecision | null {
  const state = sessionState(session, site.hostConnected, now);
  if (state === 'active' || (state === 'suspended' && operation.kind !== 'invoke')) return null;
  return refuse('session_inactive', `The session is ${state}.`);
}

function within(names: readonly string[], bound: readonly string[]): string[] {
  const known = new Set(bound);
  return [...new Set(names)].filter((name) => known.has(name));
}

function refuse(code: Code, message: string): SessionDecision {
  return { allowed: false, code, message };
}
