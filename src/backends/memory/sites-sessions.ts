/**
 * Core's SessionStore in memory: the rules for sessions of sites, their grants and tickets. The data is in
 * sites-session-rows.ts.
 */
import type { Clock } from '../../core/clock.ts';
import { SESSION_TICKETS } from '../../core/limits.ts';
import { scanSorted } from '../../core/page.ts';
import { descendsFrom, isGrantLive, isOpen } from '../../core/sites/session.ts';
import { siteKeyText, type SiteKey } from '../../core/sites/site.ts';
import type { NewGrant, NewSession, SessionStore, Ticket } from '../../core/sites/store.ts';
import { SessionTable } from './sites-session-rows.ts';

/** Core's SessionStore, and the method `closeOf`, which closes all open sessions of a site and returns their ids. */
export type MemorySessions = SessionStore & { closeOf(site: string): readonly string[] };

/** Creates core's SessionStore in memory. */
export function createMemorySessions(clock: Clock, siteIsThere: (key: SiteKey) => boolean): MemorySessions {
  const table = new SessionTable(clock);
  return {
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
