/** The rows of sessions in memory, and their indexes. */
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
  /** Digests of the tokens, by grant. */
  readonly hashes = new Map<string, string>();
  /** The expiry of the tickets that are not redeemed, in the order stored. */
  readonly tickets = new Map<string, number>();
  /** The redeemed tickets, in the order of their last redemption. */
  readonly redeemed = new Set<string>();

  constructor(session: SiteSession) {
    super();
    this.session = session;
  }
}

/**
 * The rows of sessions: by id, by site in the order of their ids, by token and ticket, and by the time at which they
 * are forgotten.
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

  /** Returns the present time, after forgetting sessions that are due (at most SESSIONS_PER_SITE in one call). */
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
   * Makes room for a session. False: the site already has the maximum number of open sessions. Of the sessions that are
   * over, the oldest beyond the limit are dropped.
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

  /** Closes a session; a second close changes nothing. A session that had expired is not kept longer for it. */
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
   * Makes room for a grant. If the limit is reached, drops all grants that are over; no live grant depends on them.
   * Returns false if all grants are live.
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

  /** Redeems a ticket if that is allowed now. It then counts as the ticket that was redeemed last. */
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
