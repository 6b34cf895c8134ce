/** Core's SessionStore over Redis: sessions of sites with their grants and tickets. */
import {
  GRANTS_PER_SESSION,
  SESSIONS_PER_SITE,
  SESSION_KEPT_MS,
  SESSION_TICKETS,
  SESSION_TICKETS_REDEEMED,
} from '../../core/limits.ts';
import type { PageRequest, Scan } from '../../core/page.ts';
import type { SiteSession } from '../../core/sites/site-session.ts';
import type { NewGrant, NewSession, SessionStore, Ticket } from '../../core/sites/site-stores.ts';
import type { SiteKey } from '../../core/sites/site.ts';
import type { RedisDeps } from './deps.ts';
import { fieldsOf, listOf, type Reply } from './replies.ts';
import { partitionOfId, prefixOfPartition } from './sites-ids.ts';
import { decodeGrant, decodeSession, decodeTicket, encodeWhat } from './sites-rows.ts';
import type { Store } from './store.ts';

/** The most sessions that are read at once. Each may have a hundred grants. */
const READ_TOGETHER = 50;

type Arguments = readonly (string | number | null)[];
/**
 * Runs an act in the partition that an id, token or ticket names; the hash of that id is the first argument. Resolves
 * with null if the id names no valid partition.
 */
type Acting = (name: string, id: string, args?: Arguments) => Promise<Reply>;

/**
 * Creates core's SessionStore over Redis. A session is stored in the partition of its owner, with its grants and
 * tickets. Each id, token and ticket begins with the number of that partition.
 */
export function createRedisSessions({ store, clock }: RedisDeps): SessionStore {
  const acting: Acting = async (name, id, args = []) => {
    const partition = partitionOfId(id, store.partitions);
    return partition === null ? null : store.act(partition, name, [store.hash(id), ...args]);
  };
  return {
    prefixOf: (userId) => prefixOfPartition(store.partitionOfUser(userId), store.partitions),
    open: (session) => open(store, session),
    get: (sessionIds) => readSessions({ store, clock }, sessionIds),
    close: async (sessionId) => decodeSession(await acting('sites-close', sessionId, [SESSION_KEPT_MS])),
    addGrant: (sessionId, grant) => addGrant(store, acting, { sessionId, grant }),
    async revokeGrant(sessionId, grantId) {
      const revoked = await acting('sites-revoke-grant', sessionId, [grantId]);
      return revoked === null ? null : listOf(revoked).map(String);
    },
    async findByToken(tokenHash) {
      const [grantId, row] = listOf(await acting('sites-find-token', tokenHash));
      const session = decodeSession(row);
      const grant = session?.grants.find((one) => one.grantId === grantId);
      return session && grant ? { session, grant } : null;
    },
    putTicket: (ticketHash, ticket) => putTicket(store, ticketHash, ticket),
    redeemTicket: async (ticketHash) =>
      decodeTicket(await acting('sites-redeem-ticket', ticketHash, [SESSION_TICKETS_REDEEMED])),
    list: (key, page) => listSessions({ store, clock }, key, page),
  };
}

async function open(store: Store, session: NewSession): Promise<Awaited<ReturnType<SessionStore['open']>>> {
  const { userId, siteId, sessionId, ttlMs, grant } = session;
  const own = [store.hash(sessionId), sessionId, userId, siteId, store.hash(userId, siteId), ttlMs];
  const args = [...own, SESSION_KEPT_MS, SESSIONS_PER_SITE, ...grantArguments(store, grant)];
  const reply = await store.act(store.partitionOfUser(userId), 'sites-open', args);
  const opened = decodeSession(reply);
  return opened ? { kind: 'opened', session: opened } : notMade(reply);
}

function grantArguments(store: Store, grant: NewGrant): Arguments {
  return [grant.grantId, grant.parentId, grant.ttlMs, store.hash(grant.tokenHash), encodeWhat(grant)];
}

async function addGrant(
  store: Store,
  acting: Acting,
  { sessionId, grant }: { readonly sessionId: string; readonly grant: NewGrant },
): Promise<Awaited<ReturnType<SessionStore['addGrant']>>> {
  const args = [GRANTS_PER_SESSION, ...grantArguments(store, grant)];
  const reply = await acting('sites-add-grant', sessionId, args);
  const [life, what] = listOf(reply);
  if (typeof life !== 'string' || typeof what !== 'string') return notMade(reply);
  return { kind: 'added', grant: decodeGrant(grant.grantId, life, what) };
}

async function putTicket(
  store: Store,
  ticketHash: string,
  ticket: Ticket & { readonly ttlMs: number },
): Promise<Awaited<ReturnType<SessionStore['putTicket']>>> {
  const { sessionId, grantId, holderExpiresAt, ttlMs } = ticket;
  const partition = partitionOfId(sessionId, store.partitions);
  // A ticket whose prefix names another partition could never be found.
  if (partition === null || partition !== partitionOfId(ticketHash, store.partitions)) return { kind: 'gone' };
  const own = [store.hash(ticketHash), store.hash(sessionId), sessionId, grantId, holderExpiresAt];
  const reply = await store.act(partition, 'sites-put-ticket', [...own, ttlMs, SESSION_TICKETS]);
  return reply === 'gone' || reply === 'full' ? { kind: reply } : { kind: 'put', expiresAt: Number(reply) };
}

function notMade(reply: Reply): { readonly kind: 'gone' | 'full' } {
  return { kind: reply === 'full' ? 'full' : 'gone' };
}

type Reading = Pick<RedisDeps, 'store' | 'clock'>;

/** Reads sessions by id. Reads all partitions at the same time, in one round trip each. */
async function readSessions(
  { store, clock }: Reading,
  sessionIds: readonly string[],
): Promise<readonly (SiteSession | null)[]> {
  const found = new Map<string, SiteSession | null>();
  const asked = Map.groupBy(new Set(sessionIds), (sessionId) => partitionOfId(sessionId, store.partitions));
  const readSome = async (partition: number, ids: readonly string[]): Promise<void> => {
    const rows = await store.read(ids.map((id) => ['HGETALL', store.key(partition, 'session', store.hash(id))]));
    // Sessions that are due to be forgotten are left out; a later act removes them.
    const kept = rows.map((row) => (Number(fieldsOf(row).get('forgetAt') ?? 0) > clock.now() ? row : null));
    ids.forEach((id, i) => found.set(id, decodeSession(kept[i])));
  };
  const reads: Promise<void>[] = [];
  for (const [partition, ids] of asked) {
    for (let at = 0; partition !== null && at < ids.length; at += READ_TOGETHER)
      reads.push(readSome(partition, ids.slice(at, at + READ_TOGETHER)));
  }
  await Promise.all(reads);
  return sessionIds.map((sessionId) => found.get(sessionId) ?? null);
}

async function listSessions(
  reading: Reading,
  { userId, siteId }: SiteKey,
  page: PageRequest,
): Promise<Scan<SiteSession>> {
  const { store } = reading;
  const after = page.after?.[0];
  const from = after === undefined ? '-' : `(${after}\u0001`;
  const args = [store.hash(userId, siteId), from, page.first + 1];
  const members = listOf(await store.act(store.partitionOfUser(userId), 'sites-list-sessions', args));
  const ids = members.map((member) => String(member).split('\0')[0] ?? '');
  const shown = ids.slice(0, page.first);
  const rows = (await readSessions(reading, shown)).flatMap((row) => (row ? [{ row, position: [row.sessionId] }] : []));
  const last = shown.at(-1);
  return { rows, next: ids.length > page.first && last !== undefined ? [last] : null, gaps: [] };
}
