import type { Clock } from '../../core/clock.ts';
import { GRANTS_PER_SESSION, SESSION_KEPT_MS, SESSION_TICKETS, SESSIONS_PER_SITE } from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import { descendsFrom, isGrantLive, isOpen, type Grant, type SiteSession } from '../../core/sites/session.ts';
import { siteKeyText, type SiteKey } from '../../core/sites/site.ts';
import type { NewGrant, SessionStore, Ticket } from '../../core/sites/store.ts';
import { DueIndex } from './due.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

/** `hashes`: of the tokens, by grant. `tickets`: those not redeemed, with their ends, in the order put. */
type Row = {
  session: SiteSession;
  readonly hashes: Map<string, string>;
  readonly tickets: Map<string, number>;
};
type Found = { readonly row: Row; readonly grantId: string };

/** The port, and the closing of all sessions of a site; answers which were open. */
export type MemorySessions = SessionStore & { closeOf(site: string): readonly string[] };

/** Rows by id, by site in the order opened, and by what is due to be forgotten. */
export function createMemorySessions(clock: Clock, siteIsThere: (key: SiteKey) => boolean): MemorySessions {
  const rows = new Map<string, Row>();
  const bySite = new Map<string, SortedMap<Row>>();
  const tokens = new Map<string, Found>();
  const tickets = new Map<string, Ticket & { readonly until: number }>();
  const ends = new DueIndex<Row>(clock.now());

  const drop = (row: Row): void => {
    const { sessionId } = row.session;
    const site = siteKeyText(row.session);
    rows.delete(sessionId);
    ends.delete(row);
    bySite.get(site)?.delete(sessionId);
    if (bySite.get(site)?.size === 0) bySite.delete(site);
    for (const hash of row.hashes.values()) tokens.delete(hash);
    for (const hash of row.tickets.keys()) tickets.delete(hash);
  };
  const forget = (now: number): void => {
    for (const row of ends.due(now, SESSIONS_PER_SITE)) drop(row);
  };
  const find = (sessionId: string): Row | undefined => {
    forget(clock.now());
    return rows.get(sessionId);
  };
  const ofSite = (site: string): readonly Row[] => [...(bySite.get(site)?.values() ?? [])];
  const end = (row: Row, now: number): void => {
    if (row.session.closedAt !== null) return;
    row.session = { ...row.session, closedAt: now };
    // One that had expired by itself is not kept the longer for being closed.
    ends.set(row, Math.min(now, row.session.expiresAt) + SESSION_KEPT_MS);
  };
  const give = (row: Row, grant: Grant, tokenHash: string): void => {
    const { grantId } = grant;
    row.hashes.set(grantId, tokenHash);
    tokens.set(tokenHash, { row, grantId });
    row.session = { ...row.session, grants: [...row.session.grants, grant] };
  };
  /** Makes room among the grants: those that are over go first, and nothing that is not over hangs on them. */
  const makeRoom = (row: Row, now: number): boolean => {
    const { grants } = row.session;
    if (grants.length < GRANTS_PER_SESSION) return true;
    const live = grants.filter((grant) => isGrantLive(grant, now));
    if (live.length >= GRANTS_PER_SESSION) return false;
    for (const { grantId } of grants) {
      const hash = row.hashes.get(grantId);
      if (hash === undefined || live.some((grant) => grant.grantId === grantId)) continue;
      row.hashes.delete(grantId);
      tokens.delete(hash);
    }
    row.session = { ...row.session, grants: live };
    return true;
  };

  return {
    prefixOf: () => '',
    open({ userId, siteId, sessionId, ttlMs, grant }) {
      const now = clock.now();
      forget(now);
      if (!siteIsThere({ userId, siteId })) return { kind: 'gone' };
      const site = siteKeyText({ userId, siteId });
      const known = ofSite(site);
      const over = known.filter(({ session }) => !isOpen(session, now));
      if (known.length - over.length >= SESSIONS_PER_SITE) return { kind: 'full' };
      for (const row of over.slice(0, Math.max(0, known.length + 1 - 2 * SESSIONS_PER_SITE))) drop(row);
      const expiresAt = now + ttlMs;
      const session = { userId, siteId, sessionId, openedAt: now, expiresAt, closedAt: null, grants: [] };
      const row: Row = { session, hashes: new Map(), tickets: new Map() };
      give(row, grantOf(grant, { now, latest: expiresAt }), grant.tokenHash);
      rows.set(sessionId, row);
      const sorted = bySite.get(site) ?? createSortedMap<Row>();
      bySite.set(site, sorted);
      sorted.set(sessionId, row);
      ends.set(row, expiresAt + SESSION_KEPT_MS);
      return { kind: 'opened', session: row.session };
    },
    get: (sessionIds) => sessionIds.map((sessionId) => find(sessionId)?.session ?? null),
    close(sessionId) {
      const row = find(sessionId);
      if (row) end(row, clock.now());
      return row?.session ?? null;
    },
    addGrant(sessionId, grant) {
      const now = clock.now();
      const row = find(sessionId);
      if (!row || !isOpen(row.session, now)) return { kind: 'gone' };
      const { grants, expiresAt } = row.session;
      const parent = grants.find(({ grantId }) => grantId === grant.parentId);
      if (grant.parentId !== null && (!parent || !isGrantLive(parent, now))) return { kind: 'gone' };
      if (!makeRoom(row, now)) return { kind: 'full' };
      const made = grantOf(grant, { now, latest: Math.min(expiresAt, parent?.expiresAt ?? expiresAt) });
      give(row, made, grant.tokenHash);
      return { kind: 'added', grant: made };
    },
    revokeGrant(sessionId, grantId) {
      const row = find(sessionId);
      if (!row?.session.grants.some((grant) => grant.grantId === grantId)) return null;
      const now = clock.now();
      const { grants } = row.session;
      const isMeant = (grant: Grant): boolean =>
        grant.revokedAt === null && descendsFrom(grants, grant.grantId, grantId);
      const revoked = grants.filter(isMeant).map((grant) => grant.grantId);
      row.session = {
        ...row.session,
        grants: grants.map((grant) => (isMeant(grant) ? { ...grant, revokedAt: now } : grant)),
      };
      return revoked;
    },
    findByToken(tokenHash) {
      forget(clock.now());
      const found = tokens.get(tokenHash);
      const grant = found?.row.session.grants.find(({ grantId }) => grantId === found.grantId);
      return found && grant ? { session: found.row.session, grant } : null;
    },
    putTicket(ticketHash, { ttlMs, ...ticket }) {
      const now = clock.now();
      const row = find(ticket.sessionId);
      if (!row || !isOpen(row.session, now)) return { kind: 'gone' };
      for (const [hash, until] of row.tickets) {
        if (until > now) break;
        row.tickets.delete(hash);
        tickets.delete(hash);
      }
      if (row.tickets.size >= SESSION_TICKETS) return { kind: 'full' };
      const until = now + ttlMs;
      row.tickets.set(ticketHash, until);
      tickets.set(ticketHash, { ...ticket, until });
      return { kind: 'put', expiresAt: until };
    },
    redeemTicket(ticketHash) {
      const known = tickets.get(ticketHash);
      if (!known) return null;
      const { until, ...ticket } = known;
      tickets.delete(ticketHash);
      rows.get(ticket.sessionId)?.tickets.delete(ticketHash);
      return clock.now() < until ? ticket : null;
    },
    list(key, page) {
      forget(clock.now());
      const after = page.after?.[0] ?? null;
      const known = bySite.get(siteKeyText(key))?.values({ after }) ?? [];
      const scan = scanSorted(known, page, ({ session }) => [session.sessionId]);
      return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: row.session, position })) };
    },
    closeOf(site) {
      const now = clock.now();
      const open = ofSite(site).filter(({ session }) => isOpen(session, now));
      for (const row of open) end(row, now);
      return open.map(({ session }) => session.sessionId);
    },
  };
}

function grantOf(
  { grantId, parentId, events, actions, share, ttlMs }: NewGrant,
  { now, latest }: { readonly now: number; readonly latest: number },
): Grant {
  const expiresAt = ttlMs === null ? latest : Math.min(latest, now + ttlMs);
  return { grantId, parentId, events, actions, share, grantedAt: now, expiresAt, revokedAt: null };
}
