/** Holds the sessions of sites in memory, and the indexes that find them. */
import type { Clock } from '../../core/clock.ts';
import { GRANTS_PER_SESSION, SESSION_KEPT_MS, SESSION_TICKETS_REDEEMED, SESSIONS_PER_SITE } from '../../core/limits.ts';
import { isGrantLive, isOpen, type Grant, type SiteSession } from '../../core/sites/session.ts';
import { siteKeyText } from '../../core/sites/site.ts';
import type { NewGrant, Ticket } from '../../core/sites/store.ts';
import { DueIndex, DueItem } from './due.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

/** A session with its grants and tickets. */
export class SessionRow extends DueItem {
  session: SiteSession;
  /** The digest of each grant's token, by grant id. */
  readonly hashes = new Map<string, string>();
  /** When each ticket that is not redeemed expires, by ticket, in the order in which the tickets were stored. */
  readonly tickets = new Map<string, number>();
  /** The redeemed tickets; the one that was redeemed last is at the end. */
  readonly redeemed = new Set<string>();

  constructor(session: SiteSession) {
    super();
    this.session = session;
  }
}

/**
 * The sessions, found by id, by token, by ticket, or by the time at which they are forgotten. The sessions of a site
 * are in the order of their ids.
 */
export class SessionTable {
  readonly tokens = new Map<string, { readonly row: SessionRow; readonly grantId: string }>();
  readonly tickets = new Map<string, Ticket & { readonly until: number }>();
  readonly #rows = new Map<string, SessionRow>();
  readonly #bySite = new Map<string, SortedMap<SessionRow>>();
  readonly #ends: DueIndex<SessionRow>;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#ends = new DueIndex(clock.now());
  }

  /** Forgets sessions that are due (at most SESSIONS_PER_SITE in one call), and returns the present time. */
  now(): number {
    const now = this.#clock.now();
    for (const row of this.#ends.due(now, SESSIONS_PER_SITE)) this.#drop(row);
    return now;
  }

  find(sessionId: string): SessionRow | undefined {
    this.now();
    return this.#rows.get(sessionId);
  }

  ofSite(site: string, after: string | null = null): IteratorObject<SessionRow> {
    return this.#bySite.get(site)?.values({ after }) ?? [].values();
  }

  /**
   * Makes room for a session. Returns false if the site already has the maximum number of open sessions. Sessions that
   * are over have a limit too: the oldest ones beyond it are dropped.
   */
  hasRoom(site: string, now: number): boolean {
    const over: SessionRow[] = [];
    let open = 0;
    for (const row of this.ofSite(site)) {
      if (isOpen(row.session, now)) open++;
      else over.push(row);
    }
    if (open >= SESSIONS_PER_SITE) return false;
    for (const row of over.slice(0, Math.max(0, over.length - SESSIONS_PER_SITE + 1))) this.#drop(row);
    return true;
  }

  add(session: SiteSession): SessionRow {
    const row = new SessionRow(session);
    const site = siteKeyText(session);
    const sorted = this.#bySite.get(site) ?? createSortedMap<SessionRow>();
    this.#bySite.set(site, sorted);
    sorted.set(session.sessionId, row);
    this.#rows.set(session.sessionId, row);
    this.#ends.set(row, session.expiresAt + SESSION_KEPT_MS);
    return row;
  }

  /**
   * Closes a session. A second close changes nothing. If the session had already expired, closing it does not make it
   * stay longer.
   */
  close(row: SessionRow, now: number): void {
    if (row.session.closedAt !== null) return;
    row.session = { ...row.session, closedAt: now };
    this.#ends.set(row, Math.min(now, row.session.expiresAt) + SESSION_KEPT_MS);
  }

  give(row: SessionRow, given: NewGrant, { now, latest }: { readonly now: number; readonly latest: number }): Grant {
    const { ttlMs, tokenHash, ...rest } = given;
    const expiresAt = ttlMs === null ? latest : Math.min(latest, now + ttlMs);
    const grant: Grant = { ...rest, grantedAt: now, expiresAt, revokedAt: null };
    row.hashes.set(grant.grantId, tokenHash);
    this.tokens.set(tokenHash, { row, grantId: grant.grantId });
    row.session = { ...row.session, grants: [...row.session.grants, grant] };
    return grant;
  }

  /**
   * Makes room for a grant. If the limit is reached, drops all grants that have expired or were revoked; no live grant
   * depends on them. Returns false if all grants are live.
   */
  hasGrantRoom(row: SessionRow, now: number): boolean {
    const { grants } = row.session;
    if (grants.length < GRANTS_PER_SESSION) return true;
    const live = grants.filter((grant) => isGrantLive(grant, now));
    if (live.length >= GRANTS_PER_SESSION) return false;
    for (const grant of grants) if (!live.includes(grant)) this.#forgetToken(row, grant.grantId);
    row.session = { ...row.session, grants: live };
    return true;
  }

  /**
   * Redeems a ticket, and returns it; null if it may not be redeemed now. The ticket then counts as the one that was
   * redeemed last.
   */
  redeem(ticketHash: string): Ticket | null {
    const now = this.now();
    const known = this.tickets.get(ticketHash);
    const row = known && this.#rows.get(known.sessionId);
    if (!known || !row) return null;
    const { until, ...ticket } = known;
    const again = row.redeemed.delete(ticketHash);
    row.tickets.delete(ticketHash);
    if (!again && now >= until) {
      this.tickets.delete(ticketHash);
      return null;
    }
    row.redeemed.add(ticketHash);
    const [oldest] = row.redeemed.size > SESSION_TICKETS_REDEEMED ? row.redeemed : [];
    if (oldest !== undefined) {
      row.redeemed.delete(oldest);
      this.tickets.delete(oldest);
    }
    return ticket;
  }

  #forgetToken(row: SessionRow, grantId: string): void {
    this.tokens.delete(row.hashes.get(grantId) ?? '');
    row.hashes.delete(grantId);
  }

  #drop(row: SessionRow): void {
    const { sessionId } = row.session;
    const site = siteKeyText(row.session);
    this.#rows.delete(sessionId);
    this.#ends.delete(row);
    const sorted = this.#bySite.get(site);
    sorted?.delete(sessionId);
    if (sorted?.size === 0) this.#bySite.delete(site);
    for (const hash of row.hashes.values()) this.tokens.delete(hash);
    for (const hash of row.tickets.keys()) this.tickets.delete(hash);
    for (const hash of row.redeemed) this.tickets.delete(hash);
  }
}
