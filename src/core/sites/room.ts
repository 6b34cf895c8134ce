import type { GrantPrincipal, Principal } from '../auth/principal.ts';
import type { Cancel } from '../clock.ts';
import type { PageArgs } from '../cursor.ts';
import type { Shared, Subscription } from '../live.ts';
import type { Page } from '../page.ts';
import type { HostedSite } from './policy.ts';
import type { Grant, SessionState, SiteSession } from './session.ts';
import type { CapabilityProfile, SiteEvent, SiteKey } from './site.ts';

/** A site as one asker may see it. `granted`: through a grant, so title, mode and profile, and of the names only those that it may use. */
export type SiteView = HostedSite & { readonly seen: 'whole' | 'granted' };

/** What registering says. Left out: no title, any event, no action, nothing that viewers may do beside listening. */
export type SiteDefinition = {
  readonly siteId: string;
  readonly clientId: string;
  readonly title?: string | null | undefined;
  readonly eventNames?: readonly string[] | null | undefined;
  readonly actions?: readonly string[] | null | undefined;
  readonly capabilityProfile?: Partial<CapabilityProfile> | null | undefined;
};

/** A session as one asker may see it. */
export type SessionView = {
  readonly session: SiteSession;
  readonly state: SessionState;
  /** Null once the definition was removed. */
  readonly site: SiteView | null;
  /** What the asker itself may do; null for an administrator. */
  readonly grant: Grant | null;
  /** All of them, for the owner and administrators; null for the holder of a grant. */
  readonly grants: readonly Grant[] | null;
  /** Live subscriptions on this node; null for the holder of a grant. */
  readonly subscribers: number | null;
};

/** Left out: all that the giver may, and as long as it may (a session: an hour). */
export type GrantRequest = {
  readonly events?: readonly string[] | null | undefined;
  readonly actions?: readonly string[] | null | undefined;
  readonly ttlSeconds?: number | null | undefined;
};
export type ShareRequest = GrantRequest & { readonly share?: boolean | null | undefined };

/** The one time that the token of a grant is seen. */
export type NewToken = { readonly grant: Grant; readonly token: string };
export type OpenedSession = NewToken & { readonly view: SessionView };

/** Definitions. Writing them needs the scope `host`, reading `invoke`; an administrator reads those of all. */
export interface SiteRegistry {
  /** Makes or replaces one's own site. Throws `capacity_exceeded` when it would be one too many. */
  register(who: Principal | null, definition: SiteDefinition): Promise<SiteView>;
  /** Ends its sessions with it. Null: there is none. */
  remove(
    who: Principal | null,
    siteId: string,
  ): Promise<{ readonly siteId: string; readonly closedSessions: number } | null>;
  /** `owner` null: one's own; for an administrator, all. */
  list(who: Principal | null, owner: string | null, page: PageArgs): Promise<Page<SiteView>>;
  /** `owner` null: one's own. Null: absent or foreign. */
  get(who: Principal | null, owner: string | null, siteId: string): Promise<SiteView | null>;
  /** Of one site, oldest first, after the site was authorised. */
  sessions(who: Principal | null, key: SiteKey, page: PageArgs): Promise<Page<SessionView>>;
}

export type RedeemedTicket = {
  /** The owner of the session, or the holder of the grant, that took the ticket. */
  readonly principal: Principal;
  /**
   * Makes the caller's stream the one stream of this ticket: a stream opened earlier with it is ended, on whichever node it is. `onReplaced`
   * is called once if a later one takes its place. Call the returned function when the stream ends.
   */
  occupy(onReplaced: () => void): Cancel;
};

/**
 * Sessions. The owner and the holders of its grants enter one; for anybody else there is none. All ask `sessionPolicy`. What the rules of a
 * site refuse throws its code.
 */
export interface SiteSessions {
  /** Scope `host`. Null: no such site. */
  open(who: Principal | null, siteId: string, request: GrantRequest): Promise<OpenedSession | null>;
  /** Null: absent or foreign. An administrator reads any. */
  session(who: Principal | null, sessionId: string): Promise<SessionView | null>;
  /** Owner, scope `host`. Its streams end within a second. Null: absent or foreign. */
  close(who: Principal | null, sessionId: string): Promise<SessionView | null>;
  /** Owner (scope `host`), or the holder of a grant that may be shared. */
  share(who: Principal | null, sessionId: string, request: ShareRequest): Promise<NewToken | null>;
  /** Owner (scope `host`), or the holder of the grant or of one that it came from. Answers all that are revoked by it. */
  revoke(who: Principal | null, sessionId: string, grantId: string): Promise<readonly string[] | null>;
  /** For one `EventSource`, instead of a token in a URL: to be redeemed within TICKET_MS, then good for its reconnects. */
  ticket(
    who: Principal | null,
    sessionId: string,
  ): Promise<{ readonly ticket: string; readonly expiresAt: number } | null>;
  /**
   * Redeems a ticket, for the first time within TICKET_MS, then again while session, grant and its taker's token live. Throws
   * `unauthenticated` when it is unknown, too old, or of another session.
   */
  redeem(sessionId: string, ticket: string): Promise<RedeemedTicket>;
  /** The holder of a grant's token. Throws `unauthenticated`. */
  holder(token: string): Promise<GrantPrincipal>;
  /**
   * What `subscribe` gives, in a form that many may share: the events are the same for all who share a key, and the tenure is the asker's own.
   * Its end says why; see `subscribe`. Null: absent or foreign.
   */
  listen(who: Principal | null, sessionId: string, names: readonly string[] | null): Promise<Shared<SiteEvent> | null>;
  /**
   * Live events of a session that is not over, from now on: `names` narrows to some (null: all that the asker may see). Ends with an error:
   * `session_inactive` when the session is closed, expires or loses its site, `unauthenticated` when the grant or the token is over. Null:
   * absent or foreign.
   */
  subscribe(
    who: Principal | null,
    sessionId: string,
    names: readonly string[] | null,
  ): Promise<Subscription<SiteEvent> | null>;
}
