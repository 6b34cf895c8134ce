/** Tests how many round trips to Redis a nested query needs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectCommands, type RedisServer, startRedis } from '../kit/redis.ts';
import { browserWindow, context, report, snapshot, worker } from '../contract/kit/contexts-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { advertisement, connect, user } from '../kit/core.ts';
import { startTestRelay, until, type TestRelay } from '../relay/kit/test-relay.ts';

const FEW = 5;
const MANY = 50;
const CLIENTS = 4;

/** The query in docs/graphql.md. */
const SHOWN = readFileSync(join(import.meta.dirname, '../relay/kit/nested.graphql'), 'utf8');
/**
 * The lists under a user: name, a query that reads only this list, and the most round trips that the query may take.
 */
const WAYS: readonly (readonly [name: string, fields: string, most: number])[] = [
  ['users alone', 'id connectionCount streamCount', 2],
  [
    'their connections, with actions and load',
    'connections(first: 10) { nodes { actions { items { name } } queued } }',
    5,
  ],
  ['callers on connections', 'connections(first: 10) { nodes { pendingRpcs(first: 5) { nodes { rpcId ageMs } } } }', 8],
  ['contexts of connections', 'connections(first: 10) { nodes { contexts(first: 5) { nodes { id taskId } } } }', 6],
  ['callers', 'pendingRpcs(first: 5) { nodes { rpcId instanceMismatch { observedInstanceId } } }', 6],
  ['history', 'streams(first: 10) { nodes { suffix messageCount firstAt } }', 4],
  ['windows and their contexts', 'browserWindows(first: 10) { nodes { contexts(first: 5) { nodes { id } } } }', 6],
  ['workers', 'workers(first: 10) { available { items { id } } }', 4],
  ['sites and their hosts', 'sites(first: 5) { nodes { hostConnected host { status } } }', 8],
];
const LIST = 2;
const DEDUP = 2;
const beyondList = (ways: typeof WAYS): number => ways.reduce((sum, [, , most]) => sum + most - LIST, LIST);
/** The rows of WAYS whose lists the query WIDE reads together. */
const BRANCHES = WAYS.filter(([name]) => !name.includes('with actions'));
const WIDE = `{ dedup { stats { seen } } users(first: 50) { nodes { ${BRANCHES.map(([, fields]) => fields).join(' ')} } } }`;

type Place = AsyncDisposable & { readonly server: RedisServer; readonly bench: RedisBench; readonly at: TestRelay };
type Cost = { readonly trips: number; readonly programs: number; readonly answer: Record<string, any> };

/** Opens a relay over its own Redis, with this many users. */
async function place(users: number): Promise<Place> {
  const server = await startRedis();
  const bench = await redisBench({ partitions: 1, connect: () => connectCommands(server.url) });
  const at = await startTestRelay({}, { backend: bench.backend, clock: bench.clock });
  for (let i = 0; i < users; i++) await settleUser(at, `user-${String(i).padStart(2, '0')}`);
  return {
    server,
    bench,
    at,
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await bench.close();
      await server.stop();
    },
  };
}

/**
 * Gives a user rows of every kind: clients with contexts, an ended command, a running command with a caller that waits,
 * and a site.
 */
async function settleUser(at: TestRelay, name: string): Promise<void> {
  const { core } = at.callboard;
  const ids = Array.from({ length: CLIENTS }, (_, i) => `tab-${i}`);
  const clients = await Promise.all(
    ids.map((clientId) => connect(core, user(name), { clientId, actions: [advertisement('open')] })),
  );
  const reported = report(
    snapshot(context('mail', { windowId: 'w1' }), worker('flow', { windowId: 'w1' })),
    snapshot(browserWindow('w1')),
  );
  await Promise.all(clients.map(({ session }) => session.report(reported)));
  await core.sites.register(user(name), { siteId: 'board', clientId: 'tab-0' });
  for (const [i, client] of clients.slice(0, 2).entries()) {
    const request = { userId: name, clientId: `tab-${i}`, action: 'open', params: null };
    const called = core.rpc.invoke(user(name), request);
    await until(() => client.sent.length > 0);
    if (i > 0) continue;
    await client.result(client.last);
    await called;
  }
}

let few: Place;
let many: Place;
beforeAll(async () => {
  [few, many] = await Promise.all([place(FEW), place(MANY)]);
});
afterAll(() => Promise.all([few, many].map((one) => one[Symbol.asyncDispose]())));

/** Returns the cost of one query: round trips as the store counts them, and program calls as Redis counts them. */
async function cost({ server, bench, at }: Place, query: string): Promise<Cost> {
  const hand = new Redis(server.url);
  try {
    // The first query of a kind loads code that later ones share, so it is not counted.
    await at.data(query);
    const [trips, programs] = [bench.store.roundTrips, await programsOf(hand)];
    const answer = await at.data(query);
    return { trips: bench.store.roundTrips - trips, programs: (await programsOf(hand)) - programs, answer };
  } finally {
    hand.disconnect();
  }
}

/** Returns how many times Redis has called the program since Redis started. */
async function programsOf(hand: Redis): Promise<number> {
  const found = /^cmdstat_evalsha:calls=(\d+)/m.exec(await hand.info('commandstats'));
  return Number(found?.[1] ?? 0);
}

const shown = ({ answer }: Cost): number => answer['users'].nodes.length;

describe('a nested query over Redis', () => {
  test.each(WAYS)('%s: needs as many round trips for fifty users as for five', async (name, fields, most) => {
    const query = `{ users(first: 50) { nodes { ${fields} } } }`;
    const [ofFew, ofMany] = [await cost(few, query), await cost(many, query)];
    expect([shown(ofFew), shown(ofMany)]).toEqual([FEW, MANY]);
    // The lists of so many users may need one more program call. The store counts that call as one more round trip.
    const calls = ofMany.programs - ofFew.programs;
    expect(calls).toBeLessThanOrEqual(name === 'windows and their contexts' ? 1 : 0);
    // The waits of many callers are read in a list of their own; those of few share a round trip with another list.
    expect(ofMany.trips - calls).toBe(ofFew.trips + (name.startsWith('callers') ? 1 : 0));
    expect(ofMany.trips - calls).toBeLessThanOrEqual(most);
    expect(ofFew.trips).toBeLessThanOrEqual(most);
  });

  // Branches that are read in the same tick share a round trip, so the count may differ between runs.
  test.each([
    ['the one that the documentation shows', SHOWN, 14],
    ['one through every room', WIDE, beyondList(BRANCHES) + DEDUP + 1],
  ])(
    '%s: needs no more round trips than its branches alone, for five users and for fifty',
    async (_name, query, most) => {
      const [ofFew, ofMany] = [await cost(few, query), await cost(many, query)];
      expect([shown(ofFew), shown(ofMany)]).toEqual([FEW, MANY]);
      expect(ofFew.trips).toBeLessThanOrEqual(most);
      expect(ofMany.trips).toBeLessThanOrEqual(most);
      expect(ofMany.programs).toBeLessThanOrEqual(ofMany.trips);
    },
  );
});
