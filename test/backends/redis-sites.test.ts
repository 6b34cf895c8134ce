/** Tests cooperative sites, their sessions and tickets over Redis, on two nodes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KINDS } from '../../src/backends/redis/keys.ts';
import { partitionOfId, prefixOfPartition } from '../../src/backends/redis/sites-ids.ts';
import { SESSION_KEPT_MS, SITES_PER_USER } from '../../src/core/limits.ts';
import type { NewGrant, SessionStore } from '../../src/core/sites/site-stores.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { BOARD } from '../contract/sites.ts';

const HOUR = 3600_000;

describe('sites over Redis, on two nodes', () => {
  let here: RedisBench;
  let there: RedisBench;
  beforeEach(async () => {
    here = await redisBench();
    there = await redisBench({ beside: here });
    await here.backend.sites.put(BOARD);
  });
  afterEach(async () => {
    await there.close();
    await here.close();
  });

  const sessions = (bench = here): SessionStore => bench.backend.sessions;
  const led = (text: string, userId = 'alice'): string => sessions().prefixOf(userId) + text;
  const grant = (grantId: string, over: Partial<NewGrant> = {}, userId = 'alice'): NewGrant => ({
    ...{ grantId, parentId: null, events: [], actions: ['task.add'], share: true, ttlMs: null },
    tokenHash: led(`hash-${grantId}`, userId),
    ...over,
  });
  const open = (name: string, userId = 'alice', bench = here) => {
    const sessionId = led(name, userId);
    return sessions(bench).open({ ...BOARD, userId, sessionId, ttlMs: HOUR, grant: grant(`${name}-root`, {}, userId) });
  };
  const ticket = () => ({ sessionId: led('s1'), grantId: 's1-root', holderExpiresAt: null, ttlMs: 30_000 });

  it('shows on each node what was done on the other', async () => {
    await open('s1');
    await sessions(there).addGrant(led('s1'), grant('g1', { parentId: 's1-root', events: null }));
    const found = await sessions().findByToken(led('hash-g1'));
    expect(found?.grant).toMatchObject({ grantId: 'g1', events: null, actions: ['task.add'] });
    expect(found?.session.grants.map(({ events }) => events)).toEqual([[], null]);
    expect(await sessions(there).revokeGrant(led('s1'), 's1-root')).toEqual(['s1-root', 'g1']);
    const [seen] = await sessions().get([led('s1')]);
    expect(seen?.grants.map(({ revokedAt }) => revokedAt)).toEqual([here.now(), here.now()]);
    expect((await there.backend.sites.remove(BOARD))?.closed).toEqual([led('s1')]);
    expect(await here.backend.sites.get([BOARD])).toEqual([null]);
    expect((await sessions().get([led('s1')]))[0]?.closedAt).toBe(here.now());
  });

  it('redeems a ticket on any node, and again on any other', async () => {
    await open('s1');
    for (let round = 0; round < 20; round++) {
      await sessions().putTicket(led(`t${round}`), ticket());
      const redeemed = await Promise.all(
        [here, there, here, there].map((bench) => sessions(bench).redeemTicket(led(`t${round}`))),
      );
      expect(redeemed.filter((one) => one !== null)).toHaveLength(4);
    }
  });

  it('keeps its bounds when both nodes fill them', async () => {
    const puts = Array.from({ length: SITES_PER_USER + 9 }, (_, i) =>
      (i % 2 === 0 ? here : there).backend.sites.put({ ...BOARD, siteId: `more-${i}` }),
    );
    const kinds = (await Promise.all(puts)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'put')).toHaveLength(SITES_PER_USER - 1);
    const [alice] = await here.backend.sites.ofUsers(['alice'], 1000);
    expect([alice?.total, alice?.rows.length]).toEqual([SITES_PER_USER, SITES_PER_USER]);
  });

  it('answers a repeated act as before, and does it once', async () => {
    const first = await open('s1');
    const given = await sessions().addGrant(led('s1'), grant('g1', { ttlMs: 5000 }));
    const put = await sessions().putTicket(led('t1'), ticket());
    await here.advance(1000);
    const { session } = first.kind === 'opened' ? first : expect.fail('not opened');
    const [before] = await sessions().get([led('s1')]);
    expect(await open('s1')).toEqual({ kind: 'opened', session: before });
    expect(before?.openedAt).toBe(session.openedAt);
    expect(await sessions().addGrant(led('s1'), grant('g1', { ttlMs: 5000 }))).toEqual(given);
    expect(await sessions().putTicket(led('t1'), ticket())).toEqual(put);
    expect(await sessions().get([led('s1')])).toEqual([before]);
    const { rows } = await sessions().list(BOARD, { first: 10, after: null });
    expect(rows).toHaveLength(1);
  });

  it('rejects ids without a partition prefix, or with the prefix of another partition than the owner’s', async () => {
    const bob = usersApart();
    await open('s1');
    await sessions().putTicket(led('t1'), ticket());
    for (const lead of ['', '-', '~', ' ', sessions().prefixOf(bob)]) {
      expect(await sessions().get([`${lead}s1`])).toEqual([null]);
      expect(await sessions().close(`${lead}s1`)).toBeNull();
      expect(await sessions().addGrant(`${lead}s1`, grant('g1'))).toEqual({ kind: 'gone' });
      expect(await sessions().revokeGrant(`${lead}s1`, 's1-root')).toBeNull();
      expect(await sessions().findByToken(`${lead}hash-s1-root`)).toBeNull();
      expect(await sessions().redeemTicket(`${lead}t1`)).toBeNull();
      expect(await sessions().putTicket(`${lead}t2`, ticket())).toEqual({ kind: 'gone' });
    }
    expect(await sessions().redeemTicket(led('t1'))).not.toBeNull();
  });

  /** Returns a user whose partition is not alice's. */
  function usersApart(): string {
    const apart = (name: string): boolean => here.store.partitionOfUser(name) !== here.store.partitionOfUser('alice');
    for (let i = 0; ; i++) if (apart(`user-${i}`)) return `user-${i}`;
  }

  it('lists the sites of all partitions in one order, page by page, and needs no more round trips for more', async () => {
    const owners = ['alice', usersApart(), 'Zoë', 'zed', 'a.b', 'alice-b', '文'];
    for (const userId of owners)
      for (const siteId of ['b', 'a']) await here.backend.sites.put({ ...BOARD, userId, siteId });
    await here.backend.sites.remove(BOARD);
    const listed: string[] = [];
    for (let after: readonly string[] | null = null, more = true; more; more = after !== null) {
      const scan = await there.backend.sites.list(null, { first: 3, after });
      expect(scan.rows.length).toBeLessThanOrEqual(3);
      listed.push(...scan.rows.map(({ row }) => `${row.userId}/${row.siteId}`));
      after = scan.next;
    }
    const inOrder = [...owners].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(listed).toEqual(inOrder.flatMap((userId) => [`${userId}/a`, `${userId}/b`]));
    const trips = async (userIds: readonly string[]): Promise<number> => {
      const before = here.store.roundTrips;
      await here.backend.sites.ofUsers(userIds, 1);
      await here.backend.sites.get(userIds.map((userId) => ({ userId, siteId: 'a' })));
      return here.store.roundTrips - before;
    };
    const pair = owners.slice(0, 2);
    expect(await trips(owners)).toBe(await trips(pair));
  });

  it('leaves nothing of sessions and sites that have ended, and no key without an expiry by mistake', async () => {
    const user = usersApart();
    await here.backend.sites.put({ ...BOARD, userId: user });
    for (const userId of ['alice', user]) {
      await open(`old-${userId}`, userId);
      await sessions().addGrant(led(`old-${userId}`, userId), grant(`more-${userId}`, {}, userId));
      const own = { ...ticket(), sessionId: led(`old-${userId}`, userId) };
      await sessions().putTicket(led(`t-${userId}`, userId), own);
      await sessions().putTicket(led(`u-${userId}`, userId), own);
      await sessions().redeemTicket(led(`u-${userId}`, userId));
    }
    expect(await withoutExpiry()).toEqual(['site', 'site', 'sites', 'sites']);
    await here.advance(HOUR + SESSION_KEPT_MS);
    for (const userId of ['alice', user]) await sessions().list({ ...BOARD, userId }, { first: 10, after: null });
    expect(await kinds()).toEqual(['site', 'site', 'sites', 'sites']);
    for (const userId of ['alice', user]) await here.backend.sites.remove({ ...BOARD, userId });
    expect(await kinds()).toEqual([]);
  });

  /** Returns the keys of the namespace, each with its remaining time. */
  async function keys(): Promise<readonly { readonly kind: string; readonly ttl: number }[]> {
    const client = here.connect();
    await client.connect();
    const names = await client.keys(`{cb:${here.store.namespace}:*`);
    const ttls = await Promise.all(names.map((name) => client.pttl(name)));
    client.disconnect();
    const known = new Set(Object.keys(KINDS));
    return names.map((name, i) => {
      const [kind = ''] = name.slice(name.indexOf('}:') + 2).split(':');
      expect(known).toContain(kind);
      return { kind, ttl: ttls[i] ?? 0 };
    });
  }
  const kinds = async (): Promise<string[]> => (await keys()).map(({ kind }) => kind).sort();
  const withoutExpiry = async (): Promise<string[]> =>
    (await keys())
      .filter(({ ttl }) => ttl === -1)
      .map(({ kind }) => kind)
      .sort();
});

describe('the prefix of ids', () => {
  it('has the same width for every partition, uses characters of a token, and leads back to the partition', () => {
    for (const partitions of [1, 2, 6, 64, 65, 4096, 4097]) {
      const all = Array.from({ length: partitions }, (_, partition) => prefixOfPartition(partition, partitions));
      expect(new Set(all).size).toBe(partitions);
      expect(new Set(all.map((prefix) => prefix.length)).size).toBe(1);
      for (const [partition, prefix] of all.entries()) {
        expect(prefix).toMatch(/^[A-Za-z0-9_-]*$/);
        expect(partitionOfId(`${prefix}0199-id`, partitions)).toBe(partition);
      }
    }
    expect(prefixOfPartition(0, 1)).toBe('');
    expect([partitionOfId('Gx', 6), partitionOfId('', 6), partitionOfId('é', 6), partitionOfId('', 1)]).toEqual([
      ...[null, null, null, 0],
    ]);
  });
});
