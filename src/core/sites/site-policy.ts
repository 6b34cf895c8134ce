/** The types and checks of requests about sites, and the one rule of what a grant allows in a session. */
import type { Principal } from '../auth/principal.ts';
import type { InvokeRequest } from '../calls/call.ts';
import { invalid, refuseInputs, type Code, type InputError } from '../errors.ts';
import { hasAtMost, id, isName, isWithin } from '../ids.ts';
import { SESSION_TTL_SECONDS, SITE_NAMES, TITLE_MAX_CHARS } from '../limits.ts';
import type { Cancel } from '../ports.ts';
import {
  COOPERATIVE,
  isGrantLive,
  isOpen,
  sessionState,
  type CapabilityProfile,
  type Grant,
  type NewSite,
  type SessionState,
  type Site,
  type SiteSession,
} from './site.ts';

/** What the holder of a grant wants to do in a session. `null` for names means all that the grant allows. */
export type SessionOperation =
  | { readonly kind: 'read' }
  | {
      readonly kind: 'share';
      readonly events: readonly string[] | null;
      readonly actions: readonly string[] | null;
      /** Whether the new grant may be shared in turn. */
      readonly share: boolean;
    }
  | { readonly kind: 'subscribe'; readonly names: readonly string[] | null }
  | { readonly kind: 'invoke'; readonly action: string };

/**
 * A site's present definition, and whether its host is connected now. `hostNodeId`: the node that reports this, which
 * holds the host's link or held its last one; null if there is none.
 */
export type HostedSite = Site & { readonly hostConnected: boolean; readonly hostNodeId: string | null };

type SessionDecision =
  { readonly allowed: true } | { readonly allowed: false; readonly code: Code; readonly message: string };

/** All facts that the decision depends on. `site` is null once its definition was removed. */
export type SessionPolicyInput = {
  readonly grant: Grant;
  readonly session: SiteSession;
  readonly site: HostedSite | null;
  readonly operation: SessionOperation;
  readonly now: number;
};

const ALLOWED: SessionDecision = { allowed: true };

/**
 * The single rule for sessions: reading, sharing, subscribing and invoking all ask it. Pure. The rules of the site are
 * checked before the state of the session, because waiting can change only the state.
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
 * Returns those of the `requested` names (null: all names) that the grant and the site's definition allow, sorted.
 * Returns null if all names that the definition allows are meant.
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

/** Refuses names that a new grant may not have. The first grant of a session is checked in the same way. */
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
 * Refuses what the state of the session does not permit. Invoking needs the connected host; subscribing and sharing
 * only need a session that is not over.
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

// Checks the definition of a site, and the names in a subscription.

/** The event names that have a meaning of their own for an `EventSource`. */
export const RESERVED_EVENTS: ReadonlySet<string> = new Set(['error', 'open', 'message']);
export const RESERVED_PREFIX = 'callboard.';

/** Whether an event of this name can be published: a valid name that event streams do not reserve. */
export function isEventName(text: unknown): text is string {
  return typeof text === 'string' && isName(text) && !RESERVED_EVENTS.has(text) && !text.startsWith(RESERVED_PREFIX);
}

/**
 * Returns the site id if it is valid. Throws `invalid_argument` otherwise, also for `.` and `..`, which cannot be
 * segments of a stream name.
 */
export function siteIdOf(text: string): string {
  return text === '.' || text === '..'
    ? invalid('site_id', 'expected an id other than "." and ".."')
    : id('site_id', text);
}

/**
 * Checks the definition of a site. Throws one `invalid_argument` that names each wrong member of `title`, `event_names`
 * and `actions`; if these are valid, one for `site_id` or `client_id`.
 */
export function checkDefinition(userId: string, definition: SiteDefinition): NewSite {
  const faults: InputError[] = [];
  const { title, capabilityProfile: profile } = definition;
  if (title && !hasAtMost(title, TITLE_MAX_CHARS))
    faults.push({ parameter: 'title', detail: `expected at most ${TITLE_MAX_CHARS} characters` });
  const eventNames = namesOf('event_names', definition.eventNames, { faults, isGood: isEventName });
  const actions = namesOf('actions', definition.actions, { faults, isGood: isName });
  refuseInputs(faults);
  return {
    userId,
    siteId: siteIdOf(definition.siteId),
    mode: COOPERATIVE,
    title: title ?? null,
    eventNames: eventNames ?? [],
    actions: actions ?? [],
    capabilityProfile: { actionInvocation: profile?.actionInvocation ?? false, sharing: profile?.sharing ?? false },
    clientId: id('client_id', definition.clientId),
  };
}

type CheckedGrant = {
  readonly events: readonly string[] | null;
  readonly actions: readonly string[] | null;
  readonly ttlMs: number | null;
};

/** Checks the request for a grant. Throws one `invalid_argument` that names every wrong member. */
export function checkGrant({ events, actions, ttlSeconds }: GrantRequest): CheckedGrant {
  const faults: InputError[] = [];
  const { min, max } = SESSION_TTL_SECONDS;
  const ttl = ttlSeconds ?? null;
  if (!isWithin(ttl, SESSION_TTL_SECONDS))
    faults.push({ parameter: 'ttl_seconds', detail: `expected ${min} to ${max}` });
  const checked = {
    events: namesOf('events', events, { faults, isGood: isEventName }),
    actions: namesOf('actions', actions, { faults, isGood: isName }),
    ttlMs: ttl === null ? null : ttl * 1000,
  };
  refuseInputs(faults);
  return checked;
}

/** Returns the names that a subscription asks for, without duplicates. Throws `invalid_argument`. */
export function checkNames(names: readonly string[] | null): readonly string[] | null {
  const faults: InputError[] = [];
  const checked = namesOf('names', names, { faults, isGood: isEventName });
  if (checked?.length === 0) faults.push({ parameter: 'names', detail: 'expected at least one' });
  refuseInputs(faults);
  return checked;
}

/** Returns each name once, in the order given. Null: the parameter was omitted. */
function namesOf(
  parameter: string,
  names: readonly string[] | null | undefined,
  { faults, isGood }: { readonly faults: InputError[]; readonly isGood: (name: string) => boolean },
): readonly string[] | null {
  if (names === null || names === undefined) return null;
  const wrong = names.findIndex((name) => !isGood(name));
  if (wrong >= 0) faults.push({ parameter: `${parameter}[${wrong}]`, detail: 'not an allowed name' });
  if (names.length > SITE_NAMES) faults.push({ parameter, detail: `expected at most ${SITE_NAMES}` });
  return [...new Set(names)];
}

// The requests about sites and their answers. Types only.

/**
 * A site as one requester may see it. `granted`: seen through a grant of the session `sessionId`, with title, mode and
 * profile, but only the names that the grant may use.
 */
export type SiteView = HostedSite &
  ({ readonly seen: 'whole' } | { readonly seen: 'granted'; readonly sessionId: string });

/**
 * What a registration defines. Defaults for omitted members: no title, any event, no action, and viewers may only
 * listen.
 */
export type SiteDefinition = {
  readonly siteId: string;
  readonly clientId: string;
  readonly title?: string | null | undefined;
  readonly eventNames?: readonly string[] | null | undefined;
  readonly actions?: readonly string[] | null | undefined;
  readonly capabilityProfile?: Partial<CapabilityProfile> | null | undefined;
};

/** A session as one requester may see it. */
export type SessionView = {
  readonly session: SiteSession;
  readonly state: SessionState;
  /** The site; null after its definition was removed. */
  readonly site: SiteView | null;
  /** What the requester itself may do; null for an administrator. */
  readonly grant: Grant | null;
  /** All grants of the session, for the owner and administrators; null for the holder of a grant. */
  readonly grants: readonly Grant[] | null;
  /** The number of live subscriptions on this node; null for the holder of a grant. */
  readonly subscribers: number | null;
};

/**
 * What a new grant allows. Omitted members default to all that the giver may do, for as long as the giver may do it. A
 * new session without `ttlSeconds` lasts one hour.
 */
export type GrantRequest = {
  readonly events?: readonly string[] | null | undefined;
  readonly actions?: readonly string[] | null | undefined;
  readonly ttlSeconds?: number | null | undefined;
};
export type ShareRequest = GrantRequest & { readonly share?: boolean | null | undefined };

/** A new grant with its token. The token is shown only this once. */
export type NewToken = { readonly grant: Grant; readonly token: string };
export type OpenedSession = NewToken & { readonly view: SessionView };

export type RedeemedTicket = {
  /** The principal that took the ticket: the owner of the session, or the holder of the grant. */
  readonly principal: Principal;
  /**
   * Makes the caller's stream the only stream of this ticket. An earlier stream of the ticket ends, also if it is on
   * another node. `onReplaced` is called at most once, when a later stream takes over. Call the returned function when
   * the stream ends.
   */
  occupy(onReplaced: () => void): Cancel;
};

/** An InvokeRequest without its target, which is the session's host. */
export type SiteInvokeRequest = Omit<InvokeRequest, 'userId' | 'clientId' | 'onAdmitted' | 'onStage'>;
