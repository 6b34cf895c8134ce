/** The interface of cooperative sites. Types only. */
import type { GrantPrincipal, Principal } from '../auth/principal.ts';
import type { Cancel } from '../clock.ts';
import type { PageArgs } from '../cursor.ts';
import type { SharedSubscription, Subscription } from '../live.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Completeness, Page } from '../page.ts';
import type { HostedSite } from './policy.ts';
import type { Grant, SessionState, SiteSession } from './session.ts';
import type { CapabilityProfile, SiteEvent, SiteKey } from './site.ts';

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

/**
 * Definitions of sites. Writing needs the scope `host`, reading the scope `invoke`. An administrator reads those of all
 * users.
 */
export interface SiteRegistry {
  /**
   * Creates or replaces a site of the requester. Throws `capacity_exceeded` if the user already has SITES_PER_USER
   * others.
   */
  register(requester: Principal | null, definition: SiteDefinition): Promise<SiteView>;
  /** Removes a site of the requester and ends its sessions. Null: there is no such site. */
  remove(
    requester: Principal | null,
    siteId: string,
  ): Promise<{ readonly siteId: string; readonly closedSessions: number } | null>;
  /**
   * Lists the sites of this owner. `owner` null: the requester's own sites; for an administrator, those of all users.
   */
  list(requester: Principal | null, owner: string | null, page: PageArgs): Promise<Page<SiteView>>;
  /**
   * Returns a site of this owner. `owner` null: the requester; an administrator must name an owner. Null if the site is
   * absent or belongs to another user.
   */
  get(requester: Principal | null, owner: string | null, siteId: string): Promise<SiteView | null>;
  /**
   * Says whether the state of a site and of its sessions may be out of date: it has a gap if the node that reports the
   * host is silent. The gap does not name the node to the holder of a grant. `site` null: it was removed.
   */
  completeness(site: SiteView | null): MaybePromise<Completeness>;
  /** Lists the sessions of one site, oldest first. Checks the access to the site first. */
  sessions(requester: Principal | null, key: SiteKey, page: PageArgs): Promise<Page<SessionView>>;
}

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

/**
 * Sessions. Only the owner and the holders of a session's grants take part in it, and an administrator may only read
 * it. For anyone else the session does not exist. `session`, `share`, `ticket`, `listen` and `subscribe` ask
 * `sessionPolicy`, and throw the code with which it refuses.
 */
export interface SiteSessions {
  /** Opens a session. Needs the scope `host`. Null: no such site. */
  open(requester: Principal | null, siteId: string, request: GrantRequest): Promise<OpenedSession | null>;
  /** Returns a session. Null: it does not exist or belongs to another user. An administrator reads any session. */
  session(requester: Principal | null, sessionId: string): Promise<SessionView | null>;
  /**
   * Closes a session, for its owner with the scope `host`. Its streams end within a second. Null: the session does not
   * exist or belongs to another user.
   */
  close(requester: Principal | null, sessionId: string): Promise<SessionView | null>;
  /** Creates a grant, for the owner (scope `host`) or the holder of a grant with permission to share. */
  share(requester: Principal | null, sessionId: string, request: ShareRequest): Promise<NewToken | null>;
  /**
   * Revokes a grant, for the owner (scope `host`), or the holder of that grant or of one that it derives from. Returns
   * the ids of all grants that this revokes.
   */
  revoke(requester: Principal | null, sessionId: string, grantId: string): Promise<readonly string[] | null>;
  /**
   * Issues a ticket for one `EventSource`, so that no token is in a URL. It must be redeemed within TICKET_MS and is
   * then valid for reconnects.
   */
  ticket(
    requester: Principal | null,
    sessionId: string,
  ): Promise<{ readonly ticket: string; readonly expiresAt: number } | null>;
  /**
   * Redeems a ticket: the first time within TICKET_MS, then again for as long as the session, the grant and the token
   * of its taker are valid. Throws `unauthenticated` if the ticket is unknown, too old, or of another session.
   */
  redeem(sessionId: string, ticket: string): Promise<RedeemedTicket>;
  /** Returns the principal that a grant's token represents. Throws `unauthenticated`. */
  holder(token: string): Promise<GrantPrincipal>;
  /**
   * Does the same as `subscribe`, in a form that many requesters can share. The events are the same for all requesters
   * with the same key, and the lifetime is the requester's own. The end of the lifetime gives the reason; see
   * `subscribe`. Null: the session does not exist or belongs to another user.
   */
  listen(
    requester: Principal | null,
    sessionId: string,
    names: readonly string[] | null,
  ): Promise<SharedSubscription<SiteEvent> | null>;
  /**
   * Subscribes to the live events, without replay, of a session that is not over. `names` selects some (null: all that
   * the requester may see). Ends with an error: `session_inactive` if the session is closed, expires or loses its site;
   * `unauthenticated` if the grant or the token is no longer valid. Null: the session does not exist or belongs to
   * another user.
   */
  subscribe(
    requester: Principal | null,
    sessionId: string,
    names: readonly string[] | null,
  ): Promise<Subscription<SiteEvent> | null>;
}
