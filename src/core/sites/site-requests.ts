/** The requests about sites and their answers. Types only. */
import type { Principal } from '../auth/principal.ts';
import type { InvokeRequest } from '../calls/call.ts';
import type { Cancel } from '../ports.ts';
import type { HostedSite } from './session-policy.ts';
import type { SiteSession, SessionState, Grant } from './site-session.ts';
import type { COOPERATIVE, CapabilityProfile } from './site.ts';

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
