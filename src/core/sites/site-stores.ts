/** The ports of site definitions and of sessions. */
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Grant, SiteSession } from './site-session.ts';
import type { Site, SiteKey } from './site.ts';

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
