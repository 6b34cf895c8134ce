/** Core's SessionStore in one process: the rules. The rows are in sites-session-rows.ts. */
import type { Clock } from '../../core/clock.ts';
import { SESSION_TICKETS } from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import { descendsFrom, isGrantLive, isOpen } from '../../core/sites/session.ts';
import { siteKeyText, type SiteKey } from '../../core/sites/site.ts';
import type { NewGrant, NewSession, SessionStore, Ticket } from '../../core/sites/store.ts';
import { SessionRows } from './sites-session-rows.ts';

/** The port, plus `closeOf`, which closes all open sessions of a site and returns their ids. */
export type MemorySessions = SessionStore & { closeOf(site: string): readonly string[] };

/** Core's SessionStore in one process. */
export function createMemorySessions(clock: Clock, siteIsThere: (key: SiteKey) => boolean): MemorySessions {
  const sessionRows = new SessionRows(clock);
  return {
    prefixOf: () => '',
    open: (session) => (siteIsThere(session) ? open(sessionRows, session) : { kind: 'gone' }),
    get: (sessionIds) => sessionIds.map((sessionId) => sessionRows.find(sessionId)?.session ?? null),
    close(sessionId) {
      const row = sessionRows.find(sessionId);
      if (row) sessionRows.close(row, clock.now());
      return row?.session ?? null;
    },
    addGrant: (sessionId, grant) => addGrant(sessionRows, sessionId, grant),
    revokeGrant: (sessionId, grantId) => revokeGrant(sessionRows, sessionId, grantId),
    findByToken(tokenHash) {
      sessionRows.now();
      const found = sessionRows.tokens.get(tokenHash);
      const grant = found?.row.session.grants.find(({ grantId }) => grantId === found.grantId);
      return found && grant ? { session: found.row.session, grant } : null;
    },
    putTicket: (ticketHash, ticket) => putTicket(sessionRows, ticketHash, ticket),
    redeemTicket: (ticketHash) => sessionRows.redeem(ticketHash),
    list(key, page) {
      sessionRows.now();
      const rows = sessionRows.ofSite(siteKeyText(key), page.after?.[0] ?? null);
      const scan = scanSorted(rows, page, ({ session }) => [session.sessionId]);
      return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: row.session, position })) };
    },
    closeOf(site) {
      const now = sessionRows.now();
      const rows = sessionRows.ofSite(site).filter(({ session }) => isOpen(session, now));
      return [...rows].map((row) => {
        sessionRows.close(row, now);
        return row.session.sessionId;
      });
    },
  };
}

function open(rows: SessionRows, { ttlMs, grant, ...ids }: NewSession): ReturnType<SessionStore['open']> {
  const now = rows.now();
  if (!rows.hasRoom(siteKeyText(ids), now)) return { kind: 'full' };
  const expiresAt = now + ttlMs;
  const row = rows.add({ ...ids, openedAt: now, expiresAt, closedAt: null, grants: [] });
  rows.give(row, grant, { now, latest: expiresAt });
  return { kind: 'opened', session: row.session };
}

function addGrant(rows: SessionRows, sessionId: string, grant: NewGrant): ReturnType<SessionStore['addGrant']> {
  const now = rows.now();
  const row = rows.find(sessionId);
  if (!row || !isOpen(row.session, now)) return { kind: 'gone' };
  const { grants, expiresAt } = row.session;
  const parent = grants.find(({ grantId }) => grantId === grant.parentId);
  if (grant.parentId !== null && (!parent || !isGrantLive(parent, now))) return { kind: 'gone' };
  if (!rows.hasGrantRoom(row, now)) return { kind: 'full' };
  return { kind: 'added', grant: rows.give(row, grant, { now, latest: parent?.expiresAt ?? expiresAt }) };
}

function revokeGrant(rows: SessionRows, sessionId: string, grantId: string): readonly string[] | null {
  const now = rows.now();
  const row = rows.find(sessionId);
  if (!row?.session.grants.some((grant) => grant.grantId === grantId)) return null;
  const { grants } = row.session;
  const meant = grants.filter((grant) => grant.revokedAt === null && descendsFrom(grants, grant.grantId, grantId));
  row.session = {
    ...row.session,
    grants: grants.map((grant) => (meant.includes(grant) ? { ...grant, revokedAt: now } : grant)),
  };
  return meant.map((grant) => grant.grantId);
}

type NewTicket = Ticket & { readonly ttlMs: number };

function putTicket(
  rows: SessionRows,
  ticketHash: string,
  { ttlMs, ...ticket }: NewTicket,
): ReturnType<SessionStore['putTicket']> {
  const now = rows.now();
  const row = rows.find(ticket.sessionId);
  if (!row || !isOpen(row.session, now)) return { kind: 'gone' };
  for (const [hash, until] of row.tickets) {
    if (until > now) break;
    row.tickets.delete(hash);
    rows.tickets.delete(hash);
  }
  if (row.tickets.size >= SESSION_TICKETS) return { kind: 'full' };
  const until = now + ttlMs;
  row.tickets.set(ticketHash, until);
  rows.tickets.set(ticketHash, { ...ticket, until });
  return { kind: 'put', expiresAt: until };
}
