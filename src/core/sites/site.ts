/**
 * Sites: the types of sites, their events, sessions, grants and tickets, the ports that store them, the types and checks
 * of requests about them, and the one rule of what a grant allows in a session.
 */
import type { Principal } from '../auth/principal.ts';
import type { InvokeRequest } from '../calls/call.ts';
import { refuseInputs, type Code, type InputError } from '../errors.ts';
import { hasAtMost, id, isName, isWithin } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { SESSION_TTL_SECONDS, SITE_NAMES, TITLE_MAX_CHARS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Cancel } from '../ports.ts';

/** The address of a site: its owner, and the id that the owner chose. */
export type SiteKey = { readonly userId: string; readonly siteId: string };

/** What a site allows its viewers besides listening. */
export type CapabilityProfile = { readonly actionInvocation: boolean; readonly sharing: boolean };

/** The only mode in which events are projected to viewers and actions can be invoked. */
export const COOPERATIVE = 'cooperative';

/**
 * A site as its owner defined it. Immutable: registering again makes a new object. Whether its host is connected is
 * derived when read.
 */
export type Site = SiteKey & {
  /**
   * The mode of the site: COOPERATIVE, or another text that another program wrote into the store. In any other mode
   * nothing is invoked or published.
   */
  readonly mode: string;
  readonly title: string | null;
  /** The event names that may be published; empty: any valid name. */
  readonly eventNames: readonly string[];
  /** The actions that may be invoked; empty: none. */
  readonly actions: readonly string[];
  readonly capabilityProfile: CapabilityProfile;
  /** The client that hosts the site and runs its actions. */
  readonly clientId: string;
  /** When the site was registered, in epoch milliseconds. Registering it again without removing it keeps this time. */
  readonly registeredAt: number;
};

/** An event that is published to a site's viewers: a notification, not state. */
export type SiteEvent = {
  readonly name: string;
  /** The payload's member `data`, as its text was written. It may contain raw line breaks between tokens. */
  readonly data: JsonText | null;
  /** The id of the retained message; readers of history find it there. */
  readonly messageId: string;
  readonly publishedAt: number;
};

export function siteKeyText({ userId, siteId }: SiteKey): string {
  return `${userId}/${siteId}`;
}

export function siteStream(siteId: string): string {
  return `sites/${siteId}/events`;
}

// A session of a site, its grants, and when they are live.

/**
 * The state of a session. `suspended`: the host is not connected, so nothing can be invoked; viewers keep listening.
 */
export type SessionState = 'active' | 'suspended' | 'closed' | 'expired';

/**
 * What the holder of one token may do in a session: never more than the parent grant and the site's definition allow.
 * Immutable. It does not contain the token, of which only a digest is stored.
 */
export type Grant = {
  readonly grantId: string;
  /**
   * The grant that this one derives from. Null for the session's first grant, and for a grant that the owner gave
   * directly.
   */
  readonly parentId: string | null;
  /** The names of the events that the holder may receive; null: all that the site's definition allows. */
  readonly events: readonly string[] | null;
  /** The actions that the holder may invoke; null, for the owner only: all that the site's definition allows. */
  readonly actions: readonly string[] | null;
  /** Whether its holder may share the session with others. */
  readonly share: boolean;
  readonly grantedAt: number;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
};

/** A limited time in which viewers use a site. Immutable. Its state is derived when read. */
export type SiteSession = SiteKey & {
  readonly sessionId: string;
  readonly openedAt: number;
  readonly expiresAt: number;
  readonly closedAt: number | null;
  /** The grants of the session, in the order in which they were given. */
  readonly grants: readonly Grant[];
};

/** The grant id that represents the owner; no real grant has it. */
export const OWNER_GRANT = 'owner';

/** Returns the owner's unlimited grant, which lasts as long as the session. */
export function ownerGrant({ openedAt, expiresAt }: SiteSession): Grant {
  const all = { events: null, actions: null, share: true } as const;
  return { grantId: OWNER_GRANT, parentId: null, ...all, grantedAt: openedAt, expiresAt, revokedAt: null };
}

export function sessionState(session: SiteSession, hostConnected: boolean, now: number): SessionState {
  if (session.closedAt !== null) return 'closed';
  if (now >= session.expiresAt) return 'expired';
  return hostConnected ? 'active' : 'suspended';
}

/** Whether the session is neither closed nor expired. */
export function isOpen(session: SiteSession, now: number): boolean {
  return session.closedAt === null && now < session.expiresAt;
}

export function isGrantLive(grant: Grant, now: number): boolean {
  return grant.revokedAt === null && now < grant.expiresAt;
}

/** Whether `ancestorId` is the grant itself or a grant that it derives from. */
export function descendsFrom(grants: readonly Grant[], grantId: string, ancestorId: string): boolean {
  const byId = new Map(grants.map((grant) => [grant.grantId, grant]));
  for (let at = byId.get(grantId); at; at = at.parentId === null ? undefined : byId.get(at.parentId)) {
    if (at.grantId === ancestorId) return true;
  }
  return false;
}

// The ports of site definitions and of sessions.

/** A definition to store. */
export type NewSite = Omit<Site, 'registeredAt'>;

/** Stores the definitions of sites. The backend's own clock gives the times. */
export interface SiteStore {
  /**
   * Atomic. Creates the site, or replaces its definition (its sessions and `registeredAt` stay). `full`: the owner has
   * SITES_PER_USER others.
   */
  put(site: NewSite): MaybePromise<{ readonly kind: 'put'; readonly site: Site } | { readonly kind: 'full' }>;
  /**
   * Atomic. Removes the definition and closes each of its sessions that is not over; returns their ids. Null: there is
   * no such site. Idempotent.
   */
  remove(key: SiteKey): MaybePromise<{ readonly site: Site; readonly closed: readonly string[] } | null>;
  /** Returns one site per key, in the order of the keys. One round trip. */
  get(keys: readonly SiteKey[]): MaybePromise<readonly (Site | null)[]>;
  /** Lists the sites of one owner or of all, ordered by (owner, site). */
  list(userId: string | null, page: PageRequest): MaybePromise<Scan<Site>>;
  /** Returns for each user the first sites in order, and the total. Reads all users together. */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly { readonly total: number; readonly rows: readonly Site[] }[]>;
}

/** A grant to create. It ends `ttlMs` from now, and never later than its parent and the session. */
export type NewGrant = Pick<Grant, 'grantId' | 'parentId' | 'events' | 'actions' | 'share'> & {
  /** How long the grant lasts, in milliseconds; null: as long as its parent. */
  readonly ttlMs: number | null;
  /** The SHA-256 of the grant's token, preceded by the owner's prefix (`prefixOf`). */
  readonly tokenHash: string;
};

export type NewSession = SiteKey & {
  readonly sessionId: string;
  readonly ttlMs: number;
  readonly grant: NewGrant;
};

/**
 * Why nothing was created. `gone`: the site, session or parent does not exist or is over. `full`: the limit is reached.
 */
export type CreateRefusal = { readonly kind: 'gone' | 'full' };

/**
 * A ticket as it is stored: the session, and the grant of the holder who took the ticket. An `EventSource` uses a
 * ticket instead of a token, also for reconnects. `holderExpiresAt`: when the holder's token expires, in epoch
 * milliseconds, and with it the streams that the ticket opens; null if the token does not expire.
 */
export type Ticket = {
  readonly sessionId: string;
  /** The grant of the holder; OWNER_GRANT for the owner of the session. */
  readonly grantId: string;
  readonly holderExpiresAt: number | null;
};

/**
 * Stores sessions with their grants and tickets. The backend's own clock gives the times. A session that is over is
 * still returned for SESSION_KEPT_MS, so that its viewers learn that it is over. At most SESSIONS_PER_SITE such
 * sessions of a site are kept. A grant that is over is kept as long as its session, or until another grant needs the
 * room. Tokens and tickets are stored as digests only.
 */
export interface SessionStore {
  /**
   * Returns the prefix of the ids of this owner's sessions, tokens and tickets. The backend uses it to find each of
   * them by the id alone. Pure; may be empty.
   */
  prefixOf(userId: string): string;
  /** Atomic: stores the session with its first grant. At most SESSIONS_PER_SITE sessions of a site are not over. */
  open(session: NewSession): MaybePromise<{ readonly kind: 'opened'; readonly session: SiteSession } | CreateRefusal>;
  /** Returns one session per id, in the order of the ids, each with all its grants. One round trip. */
  get(sessionIds: readonly string[]): MaybePromise<readonly (SiteSession | null)[]>;
  /** Closes a session. Idempotent: the time of the first close stays. Null: there is no such session. */
  close(sessionId: string): MaybePromise<SiteSession | null>;
  /**
   * Atomic: adds a grant. `gone` if the parent is revoked or over by then. At most GRANTS_PER_SESSION grants of a
   * session are not over.
   */
  addGrant(
    sessionId: string,
    grant: NewGrant,
  ): MaybePromise<{ readonly kind: 'added'; readonly grant: Grant } | CreateRefusal>;
  /**
   * Atomic: revokes the grant and all grants derived from it. Returns the ids that are newly revoked (none if it was
   * revoked before). Null: there is no such grant.
   */
  revokeGrant(sessionId: string, grantId: string): MaybePromise<readonly string[] | null>;
  /** Returns the grant of a token, whether over or not, with its session. Null: there is none. */
  findByToken(tokenHash: string): MaybePromise<{ readonly session: SiteSession; readonly grant: Grant } | null>;
  /**
   * Stores a ticket, which must be redeemed within `ttlMs` milliseconds. `full`: the session already has
   * SESSION_TICKETS tickets that are not redeemed.
   */
  putTicket(
    ticketHash: string,
    ticket: Ticket & { readonly ttlMs: number },
  ): MaybePromise<{ readonly kind: 'put'; readonly expiresAt: number } | CreateRefusal>;
  /**
   * Atomic: redeems a ticket. The first redemption must be within the ticket's `ttlMs`. After that the ticket may be
   * redeemed again for as long as its session is returned. At most SESSION_TICKETS_REDEEMED redeemed tickets of a
   * session are kept; the one redeemed longest ago is dropped first. Null: the ticket is unknown, or this call is too
   * late.
   */
  redeemTicket(ticketHash: string): MaybePromise<Ticket | null>;
  /** Lists the sessions of one site, oldest first. */
  list(key: SiteKey, page: PageRequest): MaybePromise<Scan<SiteSession>>;
}

// The one rule of what a grant allows in a session.

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
    siteId: id('site_id', definition.siteId),
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
  /** COOPERATIVE, or absent. */
  readonly mode?: typeof COOPERATIVE | null | undefined;
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
