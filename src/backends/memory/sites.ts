/** Core's SiteStore and SessionStore in memory: the registered sites, and their sessions with grants and tickets. */
import {
  GRANTS_PER_SESSION,
  SESSIONS_PER_SITE,
  SESSION_KEPT_MS,
  SESSION_TICKETS,
  SESSION_TICKETS_REDEEMED,
  SITES_PER_USER,
} from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import type { Clock } from '../../core/ports.ts';
import { descendsFrom, isGrantLive, isOpen, type Grant, type SiteSession } from '../../core/sites/site-session.ts';
import type { NewGrant, NewSession, SessionStore, SiteStore, Ticket } from '../../core/sites/site-stores.ts';
import { siteKeyText, type Site, type SiteKey } from '../../core/sites/site.ts';
import { DueIndex, DueItem } from './due-index.ts';
import { createSortedMap, type SortedMap } from './sorted-map.ts';

/** A session as a journal stores it: the session with its grants, and the digest of each grant's token by grant id. */
type KeptSession = { readonly session: SiteSession; readonly hashes: ReadonlyMap<string, string> };

/** Reads and restores the state of sites and sessions, for a journal. */
export type SiteTables = {
  allSites(): IteratorObject<Site>;
  restoreSite(site: Site): void;
  removeSite(key: SiteKey): void;
  allSessions(): IteratorObject<KeptSession>;
  keptSession(sessionId: string): KeptSession | null;
  /** Restores a session, or replaces it by a later state. Tickets are not restored. */
  restoreSession(kept: KeptSession): void;
};

/** Creates core's SiteStore and SessionStore in memory. Removing a site closes its sessions in the same tick. */
export function createMemorySites(clock: Clock): {
  readonly sites: SiteStore;
  readonly sessions: SessionStore;
  readonly tables: SiteTables;
} {
  const users = createSortedMap<{ readonly userId: string; readonly sites: SortedMap<Site> }>();
  const find = (userId: string, siteId: string): Site | null => users.get(userId)?.sites.get(siteId) ?? null;
  const { closeOf, tables, ...sessions } = createMemorySessions(
    clock,
    ({ userId, siteId }) => find(userId, siteId) !== null,
  );
  const rows = function* (userId: string | null, after: readonly string[] | null): Generator<Site> {
    const [afterUser = null, afterSite = null] = after ?? [];
    const one = userId === null ? undefined : users.get(userId);
    for (const user of userId === null ? users.values({ from: afterUser }) : one ? [one] : [])
      yield* user.sites.values({ after: user.userId === afterUser ? afterSite : null });
  };
  const store = (site: Site): void => {
    const user = users.get(site.userId) ?? { userId: site.userId, sites: createSortedMap<Site>() };
    user.sites.set(site.siteId, site);
    users.set(site.userId, user);
  };
  const removeSite = ({ userId, siteId }: SiteKey): Site | null => {
    const user = users.get(userId);
    const site = user?.sites.get(siteId);
    if (!user || !site) return null;
    user.sites.delete(siteId);
    if (user.sites.size === 0) users.delete(userId);
    return site;
  };
  return {
    tables: { ...tables, allSites: () => rows(null, null), restoreSite: store, removeSite },
    sites: {
      put(definition) {
        const { userId, siteId } = definition;
        const known = find(userId, siteId);
        if (!known && (users.get(userId)?.sites.size ?? 0) >= SITES_PER_USER) return { kind: 'full' };
        const site = { ...definition, registeredAt: known?.registeredAt ?? clock.now() };
        store(site);
        return { kind: 'put', site };
      },
      remove(key) {
        const site = removeSite(key);
        return site && { site, closed: closeOf(siteKeyText(site)) };
      },
      get: (keys) => keys.map(({ userId, siteId }) => find(userId, siteId)),
      list: (userId, page) => scanSorted(rows(userId, page.after), page, (site) => [site.userId, site.siteId]),
      ofUsers: (userIds, first) =>
        userIds.map((userId) => ({
          total: users.get(userId)?.sites.size ?? 0,
          rows: [...rows(userId, null).take(first)],
        })),
    },
    sessions,
  };
}

// Core's SessionStore in memory: the rules for sessions of sites, with their grants and tickets.

/** Core's SessionStore, and the method `closeOf`, which closes all open sessions of a site and returns their ids. */
type MemorySessions = SessionStore & {
  closeOf(site: string): readonly string[];
  readonly tables: Pick<SiteTables, 'allSessions' | 'keptSession' | 'restoreSession'>;
};

/** Creates core's SessionStore in memory. */
function createMemorySessions(clock: Clock, siteIsThere: (key: SiteKey) => boolean): MemorySessions {
  const table = new SessionTable(clock);
  return {
    tables: {
      allSessions: () => table.all(),
      keptSession: (sessionId) => table.find(sessionId) ?? null,
      restoreSession: (kept) => table.restore(kept),
    },
    prefixOf: () => '',
    open: (session) => (siteIsThere(session) ? open(table, session) : { kind: 'gone' }),
    get: (sessionIds) => sessionIds.map((sessionId) => table.find(sessionId)?.session ?? null),
    close(sessionId) {
      const row = table.find(sessionId);
      if (row) table.close(row, clock.now());
      return row?.session ?? null;
    },
    addGrant: (sessionId, grant) => addGrant(table, sessionId, grant),
    revokeGrant: (sessionId, grantId) => revokeGrant(table, sessionId, grantId),
    findByToken(tokenHash) {
      table.now();
      const found = table.tokens.get(tokenHash);
      const grant = found?.row.session.grants.find(({ grantId }) => grantId === found.grantId);
      return found && grant ? { session: found.row.session, grant } : null;
    },
    putTicket: (ticketHash, ticket) => putTicket(table, ticketHash, ticket),
    redeemTicket: (ticketHash) => table.redeem(ticketHash),
    list(key, page) {
      table.now();
      const rows = table.ofSite(siteKeyText(key), page.after?.[0] ?? null);
      const scan = scanSorted(rows, page, ({ session }) => [session.sessionId]);
      return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: row.session, position })) };
    },
    closeOf(site) {
      const now = table.now();
      const rows = table.ofSite(site).filter(({ session }) => isOpen(session, now));
      return [...rows].map((row) => {
        table.close(row, now);
        return row.session.sessionId;
      });
    },
  };
}

function open(table: SessionTable, { ttlMs, grant, ...ids }: NewSession): ReturnType<SessionStore['open']> {
  const now = table.now();
  if (!table.hasRoom(siteKeyText(ids), now)) return { kind: 'full' };
  const expiresAt = now + ttlMs;
  const row = table.add({ ...ids, openedAt: now, expiresAt, closedAt: null, grants: [] });
  table.give(row, grant, { now, latest: expiresAt });
  return { kind: 'opened', session: row.session };
}

function addGrant(table: SessionTable, sessionId: string, grant: NewGrant): ReturnType<SessionStore['addGrant']> {
  const now = table.now();
  const row = table.find(sessionId);
  if (!row || !isOpen(row.session, now)) return { kind: 'gone' };
  const { grants, expiresAt } = row.session;
  const parent = grants.find(({ grantId }) => grantId === grant.parentId);
  if (grant.parentId !== null && (!parent || !isGrantLive(parent, now))) return { kind: 'gone' };
  if (!table.hasGrantRoom(row, now)) return { kind: 'full' };
  return { kind: 'added', grant: table.give(row, grant, { now, latest: parent?.expiresAt ?? expiresAt }) };
}

function revokeGrant(table: SessionTable, sessionId: string, grantId: string): readonly string[] | null {
  const now = table.now();
  const row = table.find(sessionId);
  if (!row?.session.grants.some((grant) => grant.grantId === grantId)) return null;
  const { grants } = row.session;
  const meant = grants.filter((grant) => grant.revokedAt === null && descendsFrom(grants, grant.grantId, grantId));
  if (meant.length === 0) return [];
  row.session = {
    ...row.session,
    grants: grants.map((grant) => (meant.includes(grant) ? { ...grant, revokedAt: now } : grant)),
  };
  return meant.map((grant) => grant.grantId);
}

type NewTicket = Ticket & { readonly ttlMs: number };

function putTicket(
  table: SessionTable,
  ticketHash: string,
  { ttlMs, ...ticket }: NewTicket,
): ReturnType<SessionStore['putTicket']> {
  const now = table.now();
  const row = table.find(ticket.sessionId);
  if (!row || !isOpen(row.session, now)) return { kind: 'gone' };
  for (const [hash, until] of row.tickets) {
    if (until > now) break;
    row.tickets.delete(hash);
    table.tickets.delete(hash);
  }
  if (row.tickets.size >= SESSION_TICKETS) return { kind: 'full' };
  const until = now + ttlMs;
  row.tickets.set(ticketHash, until);
  table.tickets.set(ticketHash, { ...ticket, until });
  return { kind: 'put', expiresAt: until };
}

// The sessions of sites in memory, and the indexes that find them.

/** A session with its grants and tickets. */
class SessionRow extends DueItem {
  session: SiteSession;
  /** The digest of each grant's token, by grant id. */
  readonly hashes = new Map<string, string>();
  /** When each ticket that was not redeemed expires, by ticket, in the order in which the tickets were stored. */
  readonly tickets = new Map<string, number>();
  /** The redeemed tickets, the last redeemed one at the end. */
  readonly redeemed = new Set<string>();

  constructor(session: SiteSession) {
    super();
    this.session = session;
  }
}

/**
 * The sessions, found by id, token or ticket, and by the time at which they are forgotten. The sessions of one site are
 * sorted by id.
 */
class SessionTable {
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

  /** Forgets sessions whose retention is over (at most SESSIONS_PER_SITE in one call), and returns the current time. */
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
   * Makes room for a session. Returns false if the site already has the maximum number of open sessions. Ended sessions
   * have the same limit: the oldest beyond it are dropped.
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

  all(): IteratorObject<SessionRow> {
    return this.#rows.values();
  }

  restore({ session, hashes }: KeptSession): void {
    const known = this.#rows.get(session.sessionId);
    if (known) this.#drop(known);
    const row = this.add(session);
    for (const [grantId, hash] of hashes) {
      row.hashes.set(grantId, hash);
      this.tokens.set(hash, { row, grantId });
    }
    if (session.closedAt !== null) this.#ends.set(row, Math.min(session.closedAt, session.expiresAt) + SESSION_KEPT_MS);
  }

  /** Closes a session. A second close has no effect. Closing an expired session does not extend its retention. */
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
   * Makes room for a grant. If the limit is reached, drops all grants that have expired or were revoked, because no
   * live grant depends on them. Returns false if all grants are live.
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
   * Redeems a ticket and returns it, or null if the ticket may not be redeemed now. The ticket then counts as the last
   * redeemed one.
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
