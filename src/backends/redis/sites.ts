/** Core's SiteStore over Redis: the definitions of cooperative sites. */
import { SESSION_KEPT_MS, SITES_PER_USER } from '../../core/limits.ts';
import type { PageRequest, Scan } from '../../core/page.ts';
import type { SiteStore } from '../../core/sites/site-stores.ts';
import type { Site, SiteKey } from '../../core/sites/site.ts';
import type { RedisDeps } from './deps.ts';
import { listOf, type ReadCommand, type Reply } from './replies.ts';
import { decodeSite } from './sites-rows.ts';
import { inByteOrder, scattered } from './store-partitions.ts';
import type { Store } from './store.ts';

/** Creates core's SiteStore over Redis. A site is stored in the partition of its owner, like its sessions. */
export function createRedisSites({ store }: RedisDeps): SiteStore {
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

/** Reads sites by key. Reads all partitions at the same time, in one round trip each. */
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

/** Lists sites: reads the index, then the rows. A site that was removed between the two reads is left out. */
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

/** Lists the sites of several users in two round trips: first the index, then the rows. */
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
