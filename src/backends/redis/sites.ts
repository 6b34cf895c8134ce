/**
 * Core's SiteStore and SessionStore over Redis: the definitions of cooperative sites, and their sessions, grants and
 * tickets.
 */
import {
  GRANTS_PER_SESSION,
  SESSIONS_PER_SITE,
  SESSION_KEPT_MS,
  SESSION_TICKETS,
  SESSION_TICKETS_REDEEMED,
  SITES_PER_USER,
} from '../../core/limits.ts';
import type { PageRequest, Scan } from '../../core/page.ts';
import type { Grant, SiteSession } from '../../core/sites/site-session.ts';
import type { NewGrant, NewSession, NewSite, SessionStore, SiteStore, Ticket } from '../../core/sites/site-stores.ts';
import type { Site, SiteKey } from '../../core/sites/site.ts';
import type { RedisParts } from './parts.ts';
import { inByteOrder, scattered, type Store } from './store.ts';
import { fieldsOf, listOf, numberOr, type ReadCommand, type Reply } from './client.ts';

/** Creates core's SiteStore over Redis. A site is in the partition of its owner, like its sessions. */
export function createRedisSites({ store }: RedisParts): SiteStore {
  return {
    async put(definition) {
      const { userId } = definition;
      const bounds = [ofUser(userId).from, ofUser(userId).to, SITES_PER_USER];
      const args = [hashOfSite(store, definition), memberOf(definition), ...bounds, JSON.stringify(definition)];
      const reply = await store.act(store.partitionOfUser(userId), 'sites-put', args);
      if (reply === 'full') return { kind: 'full' };
      return { kind: 'put', site: { ...definition, registeredAt: Number(reply) } };
    },
    async remove(key) {
      const args = [hashOfSite(store, key), memberOf(key), SESSION_KEPT_MS];
      const [definition, since, ...closed] = listOf(
        await store.act(store.partitionOfUser(key.userId), 'sites-remove', args),
      );
      const site = decodeSite(definition, since);
      return site && { site, closed: closed.map(String).sort() };
    },
    get: (keys) => readSites(store, keys),
    list: (userId, page) => listSites(store, userId, page),
    ofUsers: (userIds, first) => ofUsers(store, userIds, first),
  };
}

function hashOfSite(store: Store, { userId, siteId }: SiteKey): string {
  return store.hash(userId, siteId);
}

function memberOf({ userId, siteId }: SiteKey): string {
  return `${userId}\0${siteId}`;
}

function keyIn(member: Reply): SiteKey {
  const [userId = '', siteId = ''] = String(member).split('\0');
  return { userId, siteId };
}

/** Returns the bounds of one user's members in the index `sites`, for ZRANGEBYLEX. */
function ofUser(userId: string): { readonly from: string; readonly to: string } {
  return { from: `[${userId}\0`, to: `(${userId}\u0001` };
}

/** Reads sites by key, in one round trip over all partitions at once. */
async function readSites(store: Store, keys: readonly SiteKey[]): Promise<readonly (Site | null)[]> {
  return scattered(store, keys, {
    most: Infinity,
    async ask(partition, some) {
      const rows = await store.read(
        some.map((key): ReadCommand => {
          return ['HMGET', store.key(partition, 'site', hashOfSite(store, key)), 'definition', 'registeredAt'];
        }),
      );
      return rows.map((row) => {
        const [definition, since] = listOf(row);
        return decodeSite(definition, since);
      });
    },
  });
}

/** Lists sites: reads the index, then the rows. A site that is removed between the two reads is left out. */
async function listSites(store: Store, userId: string | null, { first, after }: PageRequest): Promise<Scan<Site>> {
  const own = userId === null ? { from: '-', to: '+' } : ofUser(userId);
  const from =
    after === null ? own.from : later(own.from, `(${memberOf({ userId: after[0] ?? '', siteId: after[1] ?? '' })}`);
  const command = (partition: number): ReadCommand[] => [
    ['ZRANGEBYLEX', store.key(partition, 'sites'), from, own.to, 'LIMIT', 0, first + 1],
  ];
  const partition = userId === null ? null : store.partitionOfUser(userId);
  const found = partition === null ? await store.readAll(command) : [await store.read(command(partition))];
  const members = inByteOrder(
    found.flatMap(([members]) => listOf(members).map(String)),
    (member) => member,
  );
  const keys = members.slice(0, first).map(keyIn);
  const rows = (await readSites(store, keys)).flatMap((row) =>
    row ? [{ row, position: [row.userId, row.siteId] }] : [],
  );
  const last = keys.at(-1);
  return { rows, next: members.length > first && last ? [last.userId, last.siteId] : null, gaps: [] };
}

/** Returns the later of two lower bounds of ZRANGEBYLEX. */
function later(one: string, other: string): string {
  if (one === '-') return other;
  return Buffer.compare(Buffer.from(one.slice(1)), Buffer.from(other.slice(1))) > 0 ? one : other;
}

/** Lists the sites of any number of users in two round trips: the index, then the rows. */
async function ofUsers(
  store: Store,
  userIds: readonly string[],
  first: number,
): Promise<readonly { readonly total: number; readonly rows: readonly Site[] }[]> {
  const found = new Map<string, { readonly total: number; readonly keys: readonly SiteKey[] }>();
  const readSome = async (partition: number, users: readonly string[]): Promise<void> => {
    const sites = store.key(partition, 'sites');
    const replies = await store.read(
      users.flatMap((userId): ReadCommand[] => {
        const { from, to } = ofUser(userId);
        return [
          ['ZLEXCOUNT', sites, from, to],
          ['ZRANGEBYLEX', sites, from, to, 'LIMIT', 0, first],
        ];
      }),
    );
    users.forEach((userId, i) =>
      found.set(userId, { total: Number(replies[2 * i]), keys: listOf(replies[2 * i + 1]).map(keyIn) }),
    );
  };
  const asked = Map.groupBy(new Set(userIds), (userId) => store.partitionOfUser(userId));
  await Promise.all([...asked].map(([partition, users]) => readSome(partition, users)));
  const rows = await readSites(
    store,
    [...found.values()].flatMap(({ keys }) => keys),
  );
  const byUser = Map.groupBy(
    rows.filter((row) => row !== null),
    ({ userId }) => userId,
  );
  return userIds.map((userId) => ({ total: found.get(userId)?.total ?? 0, rows: byUser.get(userId) ?? [] }));
}

// Core's SessionStore over Redis: sessions of sites, their grants and tickets.

/** The most sessions that are read at once. Each may have a hundred grants. */
const READ_TOGETHER = 50;

type Arguments = readonly (string | number | null)[];
/**
 * Runs an act in the partition that an id, token or ticket names, with the hash of that id as the first argument.
 * Resolves to null if the id begins with no valid partition.
 */
type Acting = (name: string, id: string, args?: Arguments) => Promise<Reply>;

/**
 * Creates core's SessionStore over Redis. A session with its grants and tickets is in the partition of its owner. Every
 * id, token and ticket begins with that partition.
 */
export function createRedisSessions({ store, clock }: RedisParts): SessionStore {
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
  // With the prefix of another partition the ticket would never be found again.
  if (partition === null || partition !== partitionOfId(ticketHash, store.partitions)) return { kind: 'gone' };
  const own = [store.hash(ticketHash), store.hash(sessionId), sessionId, grantId, holderExpiresAt];
  const reply = await store.act(partition, 'sites-put-ticket', [...own, ttlMs, SESSION_TICKETS]);
  return reply === 'gone' || reply === 'full' ? { kind: reply } : { kind: 'put', expiresAt: Number(reply) };
}

function notMade(reply: Reply): { readonly kind: 'gone' | 'full' } {
  return { kind: reply === 'full' ? 'full' : 'gone' };
}

type Reading = Pick<RedisParts, 'store' | 'clock'>;

/** Reads sessions by id, in one round trip over all partitions at once. */
async function readSessions(
  { store, clock }: Reading,
  sessionIds: readonly string[],
): Promise<readonly (SiteSession | null)[]> {
  const found = new Map<string, SiteSession | null>();
  const asked = Map.groupBy(new Set(sessionIds), (sessionId) => partitionOfId(sessionId, store.partitions));
  const readSome = async (partition: number, ids: readonly string[]): Promise<void> => {
    const rows = await store.read(ids.map((id) => ['HGETALL', store.key(partition, 'session', store.hash(id))]));
    // A later act removes what is to be forgotten.
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

// Decodes rows of sites, sessions, grants and tickets, and encodes what a grant allows. Pure.

const LIFE = 'life:';

/** The part of a grant that acts read and change. Its stamps are texts. */
type Life = {
  readonly order: string;
  readonly parentId?: string;
  readonly grantedAt: string;
  readonly expiresAt: string;
  readonly revokedAt?: string;
};
type What = Pick<Grant, 'events' | 'actions' | 'share'>;

/**
 * Decodes a site from its definition and the time when it was first registered; null if either is absent. Trusts the
 * JSON, which our own acts wrote.
 */
function decodeSite(definition: Reply | undefined, registeredAt: Reply | undefined): Site | null {
  if (typeof definition !== 'string' || typeof registeredAt !== 'string') return null;
  return { ...(JSON.parse(definition) as NewSite), registeredAt: Number(registeredAt) };
}

/** Decodes a session from its row; null if there is none. */
function decodeSession(row: Reply | undefined): SiteSession | null {
  const fields = fieldsOf(row ?? null);
  if (fields.size === 0) return null;
  const text = (name: string): string => fields.get(name) ?? '';
  return {
    userId: text('userId'),
    siteId: text('siteId'),
    sessionId: text('sessionId'),
    openedAt: Number(text('openedAt')),
    expiresAt: Number(text('expiresAt')),
    closedAt: numberOr(fields.get('closedAt')),
    grants: grantsOf(fields),
  };
}

function grantsOf(fields: ReadonlyMap<string, string>): readonly Grant[] {
  const found: { readonly order: number; readonly grant: Grant }[] = [];
  for (const [name, life] of fields) {
    if (!name.startsWith(LIFE)) continue;
    const grantId = name.slice(LIFE.length);
    const { order } = JSON.parse(life) as Life;
    found.push({ order: Number(order), grant: decodeGrant(grantId, life, fields.get(`what:${grantId}`) ?? '') });
  }
  return found.sort((a, b) => a.order - b.order).map(({ grant }) => grant);
}

/** Decodes a grant. Its session's row has it as two texts: `life` has its times and its parent, `what` the rest. */
function decodeGrant(grantId: string, life: string, what: string): Grant {
  const { parentId, grantedAt, expiresAt, revokedAt } = JSON.parse(life) as Life;
  return {
    grantId,
    parentId: parentId ?? null,
    ...(JSON.parse(what) as What),
    grantedAt: Number(grantedAt),
    expiresAt: Number(expiresAt),
    revokedAt: numberOr(revokedAt),
  };
}

/** Encodes what a grant allows as JSON. Acts return it without parsing it, because Lua cannot write an empty list. */
function encodeWhat({ events, actions, share }: NewGrant): string {
  return JSON.stringify({ events, actions, share } satisfies What);
}

/** Decodes a ticket from its row; null if there is none. */
function decodeTicket(row: Reply): Ticket | null {
  const fields = fieldsOf(row);
  if (fields.size === 0) return null;
  return {
    sessionId: fields.get('sessionId') ?? '',
    grantId: fields.get('grantId') ?? '',
    holderExpiresAt: numberOr(fields.get('holderExpiresAt')),
  };
}

// Writes a partition into the ids of sessions, tokens and tickets, and reads it from such an id, so that each can be
// found without its owner. Pure.

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/**
 * Returns the text with which all ids of a partition begin: its number in base 64, padded to equal width. Returns '' if
 * there is only one partition.
 */
export function prefixOfPartition(partition: number, partitions: number): string {
  let prefix = '';
  for (let rest = partition, left = widthOf(partitions); left > 0; left--) {
    prefix = (DIGITS[rest % DIGITS.length] ?? '') + prefix;
    rest = Math.floor(rest / DIGITS.length);
  }
  return prefix;
}

/** Reads the partition from the start of an id; null if the id begins with no valid partition. */
export function partitionOfId(id: string, partitions: number): number | null {
  let partition = 0;
  for (const digit of id.slice(0, widthOf(partitions)).padEnd(widthOf(partitions), ' ')) {
    const value = DIGITS.indexOf(digit);
    if (value < 0) return null;
    partition = partition * DIGITS.length + value;
  }
  return partition < partitions ? partition : null;
}

function widthOf(partitions: number): number {
  let width = 0;
  for (let reach = 1; reach < partitions; reach *= DIGITS.length) width++;
  return width;
}
