/** The storage ports of site definitions and of sessions. */
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Grant, SiteSession } from './site-session.ts';
import type { Site, SiteKey } from './site.ts';

/** A definition to store. */
export type NewSite = Omit<Site, 'registeredAt'>;

/** Stores the definitions of sites. The backend's clock gives the times. */
export interface SiteStore {
  /**
   * Atomic. Creates the site, or replaces its definition and keeps its sessions and `registeredAt`. `full`: the owner
   * already has SITES_PER_USER other sites.
   */
  put(site: NewSite): MaybePromise<{ readonly kind: 'put'; readonly site: Site } | { readonly kind: 'full' }>;
  /**
   * Atomic. Removes the definition, and closes all sessions of the site that are not over. Returns the ids of these
   * sessions. Null if there is no such site. Idempotent.
   */
  remove(key: SiteKey): MaybePromise<{ readonly site: Site; readonly closed: readonly string[] } | null>;
  /** Returns one site per key, in the order of the keys. One round trip. */
  get(keys: readonly SiteKey[]): MaybePromise<readonly (Site | null)[]>;
  /** Lists the sites of one owner, or of all owners (null), ordered by owner and site. */
  list(userId: string | null, page: PageRequest): MaybePromise<Scan<Site>>;
  /** Returns for each user the first sites in order and the total number. Reads all users together. */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly { readonly total: number; readonly rows: readonly Site[] }[]>;
}

/** A grant to create. It ends `ttlMs` from now, but not later than its parent and its session. */
export type NewGrant = Pick<Grant, 'grantId' | 'parentId' | 'events' | 'actions' | 'share'> & {
  /** How long the grant is valid, in milliseconds; null: as long as its parent. */
  readonly ttlMs: number | null;
  /** The digest of the grant's token: the owner's prefix (`prefixOf`), then the token's SHA-256. */
  readonly tokenHash: string;
};

export type NewSession = SiteKey & {
  readonly sessionId: string;
  readonly ttlMs: number;
  readonly grant: NewGrant;
};

/**
 * Why nothing was created. `gone`: the site, the session or the parent grant does not exist or is over. `full`: the
 * limit is reached.
 */
export type CreateRefusal = { readonly kind: 'gone' | 'full' };

/**
 * A stored ticket, which an `EventSource` uses instead of a token, even when it reconnects. `holderExpiresAt`: when the
 * token of the ticket's taker expires, in epoch milliseconds; the streams that were opened with the ticket end at the
 * same time. Null if that token does not expire.
 */
export type Ticket = {
  readonly sessionId: string;
  /** The grant of the ticket's taker; OWNER_GRANT for the session's owner. */
  readonly grantId: string;
  readonly holderExpiresAt: number | null;
};

/**
 * Stores sessions with their grants and tickets. The backend's clock gives the times. A session that is over is still
 * returned for SESSION_KEPT_MS, so that its viewers learn that it is over. At most SESSIONS_PER_SITE such sessions of a
 * site are stored. A grant that is over is stored as long as its session, or until its room is needed for another
 * grant. Of tokens and tickets only digests are stored.
 */
export interface SessionStore {
  /**
   * Returns the prefix of this owner's session ids, tokens and tickets. By this prefix, the backend finds each of them
   * without other information. Pure; may be empty.
   */
  prefixOf(userId: string): string;
  /**
   * Atomic: stores the session with its first grant. A site has at most SESSIONS_PER_SITE sessions that are not over.
   */
  open(session: NewSession): MaybePromise<{ readonly kind: 'opened'; readonly session: SiteSession } | CreateRefusal>;
  /** Returns one session per id, in the order of the ids, each with all its grants. One round trip. */
  get(sessionIds: readonly string[]): MaybePromise<readonly (SiteSession | null)[]>;
  /**
   * Closes a session. Idempotent: a second close does not change the time of the first. Null if there is no such
   * session.
   */
  close(sessionId: string): MaybePromise<SiteSession | null>;
  /**
   * Atomic: adds a grant. `gone`: the parent grant is revoked or over by now. A session has at most GRANTS_PER_SESSION
   * grants that are not over.
   */
  addGrant(
    sessionId: string,
    grant: NewGrant,
  ): MaybePromise<{ readonly kind: 'added'; readonly grant: Grant } | CreateRefusal>;
  /**
   * Atomic: revokes the grant and all grants that derive from it. Returns the ids of the grants that were not revoked
   * before. Null if there is no such grant.
   */
  revokeGrant(sessionId: string, grantId: string): MaybePromise<readonly string[] | null>;
  /** Returns the grant of a token, and its session, even if they are over. Null if there is no such grant. */
  findByToken(tokenHash: string): MaybePromise<{ readonly session: SiteSession; readonly grant: Grant } | null>;
  /**
   * Stores a ticket. It must be redeemed within `ttlMs` milliseconds. `full`: the session already has SESSION_TICKETS
   * tickets that were not redeemed.
   */
  putTicket(
    ticketHash: string,
    ticket: Ticket & { readonly ttlMs: number },
  ): MaybePromise<{ readonly kind: 'put'; readonly expiresAt: number } | CreateRefusal>;
  /**
   * Atomic: redeems a ticket. The first redemption must be within the ticket's `ttlMs`. Afterwards the ticket can be
   * redeemed again as long as its session is returned. At most SESSION_TICKETS_REDEEMED redeemed tickets of a session
   * are stored; beyond this, the one that was redeemed first is removed. Null if the ticket is unknown, or if this call
   * is too late.
   */
  redeemTicket(ticketHash: string): MaybePromise<Ticket | null>;
  /** Lists the sessions of one site, oldest first. */
  list(key: SiteKey, page: PageRequest): MaybePromise<Scan<SiteSession>>;
}
