/** The requests about sites and their answers. Types only. */
import type { Principal } from '../auth/principal.ts';
import type { InvokeRequest } from '../calls/call.ts';
import type { Cancel } from '../ports.ts';
import type { HostedSite } from './session-policy.ts';
import type { SiteSession, SessionState, Grant } from './site-session.ts';
import type { COOPERATIVE, CapabilityProfile } from './site.ts';

/**
 * A site as one requester sees it. `granted`: seen through a grant of the session `sessionId`: with its title, mode and
 * profile, but only the names that the grant may use.
 */
export type SiteView = HostedSite &
  ({ readonly seen: 'whole' } | { readonly seen: 'granted'; readonly sessionId: string });

/**
 * The definition of a site, as a request gives it. Defaults of absent members: no title, any event, no action, and
 * viewers may only listen.
 */
export type SiteDefinition = {
  readonly siteId: string;
  readonly clientId: string;
  /** Must be COOPERATIVE or absent. */
  readonly mode?: typeof COOPERATIVE | null | undefined;
  readonly title?: string | null | undefined;
  readonly eventNames?: readonly string[] | null | undefined;
  readonly actions?: readonly string[] | null | undefined;
  readonly capabilityProfile?: Partial<CapabilityProfile> | null | undefined;
};

/** A session as one requester sees it. */
export type SessionView = {
  readonly session: SiteSession;
  readonly state: SessionState;
  /** The site; null if its definition was removed. */
  readonly site: SiteView | null;
  /** The requester's own grant; null for an administrator. */
  readonly grant: Grant | null;
  /** All grants of the session. Null for the holder of a grant, who must not see those of others. */
  readonly grants: readonly Grant[] | null;
  /** The number of live subscriptions to the session on this node. Null for the holder of a grant. */
  readonly subscribers: number | null;
};

/**
 * A request for a new grant. An absent member means everything that the giver may do, for as long as the giver may. A
 * new session without `ttlSeconds` lasts one hour.
 */
export type GrantRequest = {
  readonly events?: readonly string[] | null | undefined;
  readonly actions?: readonly string[] | null | undefined;
  readonly ttlSeconds?: number | null | undefined;
};
export type ShareRequest = GrantRequest & { readonly share?: boolean | null | undefined };

/** A new grant with its token. This is the only time that the token is shown. */
export type NewToken = { readonly grant: Grant; readonly token: string };
export type OpenedSession = NewToken & { readonly view: SessionView };

export type RedeemedTicket = {
  /** The principal that took the ticket: the session's owner, or the holder of a grant. */
  readonly principal: Principal;
  /**
   * Makes the caller's stream the only one that uses this ticket: an earlier stream with the ticket ends, even on
   * another node. `onReplaced`: called at most once, when a later stream takes over. Call the returned function when
   * the stream ends.
   */
  occupy(onReplaced: () => void): Cancel;
};

/** An InvokeRequest without its target. The target is the host of the session's site. */
export type SiteInvokeRequest = Omit<InvokeRequest, 'userId' | 'clientId' | 'onAdmitted' | 'onStage'>;
