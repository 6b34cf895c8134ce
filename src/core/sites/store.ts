import type { Maybe } from '../maybe.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Grant, SiteSession } from './session.ts';
import type { Site, SiteKey } from './site.ts';

/** A definition to put. */
export type NewSite = Omit<Site, 'registeredAt'>;

/** The definitions of sites. The backend stamps the times. */
export interface SiteStore {
  /** Atomic. Makes the site, or replaces its definition (sessions and `registeredAt` stay). `full`: the owner has SITES_PER_USER others. */
  put(site: NewSite): Maybe<{ readonly kind: 'put'; readonly site: Site } | { readonly kind: 'full' }>;
  /** Atomic: the definition and every session of it that is not over, whose ids are answered. Null: there is none. Idempotent. */
  remove(key: SiteKey): Maybe<{ readonly site: Site; readonly closed: readonly string[] } | null>;
  /** One answer per key, in the order asked. One round trip. */
  get(keys: readonly SiteKey[]): Maybe<readonly (Site | null)[]>;
  /** Of one owner or of all, in order of (owner, site). */
  list(userId: string | null, page: PageRequest): Maybe<Scan<Site>>;
  /** Per user asked for: the first sites in order, and how many there are in all. One round trip. */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): Maybe<readonly { readonly total: number; readonly rows: readonly Site[] }[]>;
}

/** A grant to make. Its end is `ttlMs` from now, and never later than its parent's and the session's. */
export type NewGrant = Pick<Grant, 'grantId' | 'parentId' | 'events' | 'actions' | 'share'> & {
  /** Null: as long as its parent. */
  readonly ttlMs: number | null;
  /** SHA-256 of its token, led by `prefixOf` its owner. */
  readonly tokenHash: string;
};

export type NewSession = SiteKey & {
  readonly sessionId: string;
  readonly ttlMs: number;
  readonly grant: NewGrant;
};

/** `gone`: no such site, session or parent, or it is over. `full`: the bound is reached. Nothing was written then. */
export type NotMade = { readonly kind: 'gone' | 'full' };

/** For one `EventSource` and its reconnects: who took it, in place of a token. `expiresAt` of the holder ends the stream that it opens. */
export type Ticket = {
  readonly sessionId: string;
  /** OWNER_GRANT for the owner. */
  readonly grantId: string;
  readonly holderExpiresAt: number | null;
};

/**
 * Sessions with their grants and tickets. The backend stamps the times. A session that is over is still answered for SESSION_KEPT_MS (under
 * pressure shorter: at most SESSIONS_PER_SITE such a site), so that its viewers can be told; a grant that is over, for as long as its
 * session or until its place is needed. Tokens and tickets are only ever seen as digests.
 */
export interface SessionStore {
  /** What ids of sessions, tokens and tickets of this owner begin with, so that each is found by itself alone. Pure; may be empty. */
  prefixOf(userId: string): string;
  /** Atomic: the session with its first grant. At most SESSIONS_PER_SITE that are not over. */
  open(session: NewSession): Maybe<{ readonly kind: 'opened'; readonly session: SiteSession } | NotMade>;
  /** One answer per id, in the order asked, each with all its grants. One round trip. */
  get(sessionIds: readonly string[]): Maybe<readonly (SiteSession | null)[]>;
  /** Idempotent: the time of the first close stays. Null: there is none. */
  close(sessionId: string): Maybe<SiteSession | null>;
  /** Atomic. `gone` when the parent was revoked or is over by then. At most GRANTS_PER_SESSION that are not over. */
  addGrant(sessionId: string, grant: NewGrant): Maybe<{ readonly kind: 'added'; readonly grant: Grant } | NotMade>;
  /** Atomic: the grant and all that came from it. Answers the ids newly revoked (none when it was already). Null: there is none. */
  revokeGrant(sessionId: string, grantId: string): Maybe<readonly string[] | null>;
  /** The grant of a token, over or not, with its session. */
  findByToken(tokenHash: string): Maybe<{ readonly session: SiteSession; readonly grant: Grant } | null>;
  /** `full`: SESSION_TICKETS of the session are not redeemed. A ticket is good for `ttlMs`. */
  putTicket(
    ticketHash: string,
    ticket: Ticket & { readonly ttlMs: number },
  ): Maybe<{ readonly kind: 'put'; readonly expiresAt: number } | NotMade>;
  /**
   * Atomic. The first time must be within the ticket's `ttlMs`; from then on it may be redeemed again for as long as its session is answered.
   * Of a session at most SESSION_TICKETS_REDEEMED stay so; the one redeemed longest ago goes first. Null: unknown, or too late.
   */
  redeemTicket(ticketHash: string): Maybe<Ticket | null>;
  /** Of one site, oldest first. */
  list(key: SiteKey, page: PageRequest): Maybe<Scan<SiteSession>>;
}
