import { Cluster } from 'ioredis';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { connectCommands } from '../../src/backends/redis/client.ts';
import { KINDS } from '../../src/backends/redis/keys.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import { connectionStatus } from '../../src/core/connections/connection.ts';
import { FORGET_MS, STALE_MS } from '../../src/core/limits.ts';
import { ALL, hello, ids } from '../contract/connections-kit.ts';
import {
  ANY_CONTEXT,
  ANY_WINDOW,
  browserWindow,
  context,
  contextIds,
  report,
  snapshot,
  windowIds,
  worker,
} from '../contract/contexts-kit.ts';
import { redisBench, type RedisBench } from '../contract/redis-kit.ts';

const TAB = { userId: 'alice', clientId: 'tab' };
const PAGE = { first: 1000, after: null };
const ACTION = { name: 'open', summary: null, description: null, version: null, checksArguments: null };
const ACTIONS = [{ ...ACTION, schema: null, metadata: null }];

/** Runs one command against a key of a partition. */
async function raw(
  { store }: RedisBench,
  partition: number,
  command: readonly [string, ...(string | number)[]],
): Promise<unknown> {
  return (await store.read(partition, [command]))[0];
}

/** Sets by when a node's lease ends, in every partition. */
async function lease(bench: RedisBench, nodeId: string, ends: number): Promise<void> {
  for (let p = 0; p < bench.store.partitions; p++)
    await raw(bench, p, ['ZADD', bench.store.key(p, 'nodes'), ends, nodeId]);
}

async function trips(store: Store, run: () => unknown): Promise<number> {
  const before = store.roundTrips;
  await run();
  return store.roundTrips - before;
}

describe('connections over Redis', () => {
  let one: RedisBench;
  let two: RedisBench;
  beforeEach(async () => {
    one = await redisBench();
    two = await redisBench({ beside: one });
  });
  afterEach(async () => {
    await two.close();
    await one.close();
  });

  it('are the same seen from another process, which takes over and fences the first', async () => {
    const first = await one.backend.connections.connect(hello('alice', 'tab'));
    expect(await two.backend.connections.get([TAB])).toEqual([first.connection]);
    const second = await two.backend.connections.connect(hello('alice', 'tab', { nodeId: 'n2' }));
    expect(second).toMatchObject({ kind: 'resumed', previous: first.connection });
    expect(second.connection.epoch).toBeGreaterThan(first.connection.epoch);
    expect(await one.backend.connections.touch(TAB, first.connection.epoch)).toBeNull();
    expect(await one.backend.connections.disconnect(TAB, first.connection.epoch, 'client_closed')).toBeNull();
    expect(await one.backend.connections.get([TAB])).toEqual([second.connection]);
  });

  it('answer a sign of life with what another process changed meanwhile', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    const { epoch } = connection;
    expect(await one.backend.connections.touch(TAB, epoch)).toEqual(connection);
    await two.backend.connections.advertise(TAB, epoch, ACTIONS);
    expect(await one.backend.connections.touch(TAB, epoch)).toEqual({ ...connection, actions: ACTIONS });
    await one.advance(10);
    const touched = { ...connection, actions: ACTIONS, lastSeenAt: one.now() };
    expect(await one.backend.connections.touch(TAB, epoch)).toEqual(touched);
    expect(await two.backend.connections.get([TAB])).toEqual([touched]);
  });

  it('never give an epoch twice, also where the store was lost', async () => {
    const { epoch } = (await one.backend.connections.connect(hello('alice', 'tab'))).connection;
    const partition = one.store.partitionOfUser('alice');
    await raw(one, partition, ['DEL', one.store.key(partition, 'meta')]);
    await raw(one, partition, ['DEL', one.store.key(partition, 'conn', one.store.hash('alice', 'tab'))]);
    await one.advance(1);
    const next = await one.backend.connections.connect(hello('alice', 'tab'));
    expect(next.kind).toBe('connected');
    expect(next.connection.epoch).toBeGreaterThan(epoch);
  });

  it('read as lost from when the lease of their node ended, until it beats again', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    await one.backend.connections.connect(hello('bob', 'tab', { nodeId: 'n2' }));
    const ends = one.now() + 8_000;
    await lease(one, 'n1', ends);
    await one.advance(7_999);
    expect(await two.backend.connections.get([TAB])).toEqual([connection]);
    await one.advance(5_001);
    const lost = { ...connection, disconnectedAt: ends, disconnectCause: 'node_lost' };
    expect(await two.backend.connections.get([TAB])).toEqual([lost]);
    expect(await two.backend.connections.ofUsers(['alice'], 5)).toEqual([{ total: 1, rows: [lost] }]);
    expect(await ids(two, { ...ALL, status: 'disconnected' })).toEqual(['alice/tab']);
    expect(await ids(two, { ...ALL, status: 'connected' })).toEqual(['bob/tab']);
    await lease(one, 'n1', one.now() + 8_000);
    expect(await two.backend.connections.get([TAB])).toEqual([connection]);
  });

  it('are forgotten FORGET_MS after the lease of their node, however late anybody looks', async () => {
    await one.backend.connections.connect(hello('alice', 'tab'));
    const ends = one.now() + 1_000;
    await lease(one, 'n1', ends);
    await one.advance(1_000 + FORGET_MS - 1);
    expect(await ids(one, ALL)).toEqual(['alice/tab']);
    await one.advance(1);
    expect(await ids(one, ALL)).toEqual([]);
    expect(await one.backend.connections.get([TAB])).toEqual([null]);
    expect(await one.backend.connections.ofUsers(['alice'], 5)).toEqual([{ total: 0, rows: [] }]);
    expect(await one.backend.connections.connect(hello('alice', 'tab', { instanceId: 'i2' }))).toMatchObject({
      kind: 'connected',
      previous: null,
    });
  });

  it('keep the time and cause of a loss by lease when a close comes afterwards', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    const ends = one.now() + 1_000;
    await lease(one, 'n1', ends);
    await one.advance(3_000);
    const lost = { ...connection, disconnectedAt: ends, disconnectCause: 'node_lost' };
    expect(await two.backend.connections.disconnect(TAB, connection.epoch, 'operator')).toEqual(lost);
    await lease(one, 'n1', one.now() + 8_000);
    expect(await two.backend.connections.get([TAB])).toEqual([lost]);
    expect(await two.backend.connections.touch(TAB, connection.epoch)).toBeNull();
    const back = await one.backend.connections.connect(hello('alice', 'tab', { instanceId: 'i2' }));
    expect(back).toMatchObject({ kind: 'replaced', previous: lost, connection: { disconnectedAt: null } });
  });

  it('cost as many round trips for a thousand as for one', async () => {
    const users = Array.from({ length: 50 }, (_, i) => `u${i}`);
    const clients = Array.from({ length: 20 }, (_, i) => `c${String(i).padStart(2, '0')}`);
    const keys = users.flatMap((userId) => clients.map((clientId) => ({ userId, clientId })));
    await Promise.all(keys.map(({ userId, clientId }) => one.backend.connections.connect(hello(userId, clientId))));
    const { connections } = two.backend;
    const { partitions } = two.store;
    const found: unknown[] = [];
    const forUsers = await trips(two.store, async () => {
      for (const { total, rows } of await connections.ofUsers(users, 20))
        found.push([total, rows.map((row) => row.clientId)]);
    });
    expect(found).toEqual(users.map(() => [20, clients]));
    expect(forUsers).toBeLessThanOrEqual(2 * partitions);
    expect(await trips(two.store, () => connections.get(keys))).toBeLessThanOrEqual(2 * partitions);
    expect(await trips(two.store, () => connections.list(ALL, PAGE))).toBeLessThanOrEqual(2 * partitions);
    expect(await trips(two.store, () => connections.users(PAGE))).toBeLessThanOrEqual(2 * partitions);
  });

  it('count none that is past its time, however many were lost at once', async () => {
    const many = Array.from({ length: 300 }, (_, i) => hello(`u${i % 3}`, `c${i}`));
    await Promise.all(many.map((request) => one.backend.connections.connect(request)));
    await one.advance(60_000 + FORGET_MS);
    expect((await two.backend.connections.users(PAGE)).rows).toEqual([]);
    expect(await two.backend.connections.ofUsers(['u0', 'u1'], 5)).toEqual([
      { total: 0, rows: [] },
      { total: 0, rows: [] },
    ]);
  });

  it('never take a user for another whose name begins with its own, or a client for another', async () => {
    for (const [userId, clientId] of [
      ['a', 'b'],
      ['a!', 'b'],
      ['ab', 'c'],
      ['a', 'b~'],
    ] as const)
      await one.backend.connections.connect(hello(userId, clientId));
    const { connections } = one.backend;
    expect((await connections.ofUsers(['a'], 9))[0]?.rows.map(({ clientId }) => clientId)).toEqual(['b', 'b~']);
    expect((await connections.users(PAGE)).rows.map(({ row }) => [row.userId, row.count])).toEqual([
      ['a', 2],
      ['a!', 1],
      ['ab', 1],
    ]);
  });
});

describe('contexts over Redis', () => {
  let one: RedisBench;
  let two: RedisBench;
  beforeEach(async () => {
    one = await redisBench();
    two = await redisBench({ beside: one });
  });
  afterEach(async () => {
    await two.close();
    await one.close();
  });
  const all = report(
    snapshot(context('c'), worker('w', { windowId: 'v', taskId: 'a|b' })),
    snapshot(browserWindow('v')),
  );

  it('are seen from another process, with the state of a link that only the first has', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    expect(await one.backend.contexts.report(TAB, connection.epoch, all)).toBe('taken');
    expect(await contextIds(two)).toEqual(['alice/tab/c', 'alice/tab/w']);
    expect(await two.backend.contexts.window('alice', 'v')).toMatchObject({
      window: { linkLost: false },
      live: { workers: 1, idle: 0, busy: 1 },
    });
    await one.advance(STALE_MS);
    expect(await contextIds(two, { statuses: ['stale'] })).toEqual(['alice/tab/c', 'alice/tab/w']);
    await two.backend.connections.connect(hello('alice', 'tab', { instanceId: 'i2', nodeId: 'n2' }));
    expect([await contextIds(one), await windowIds(one)]).toEqual([[], []]);
    expect(await one.backend.contexts.report(TAB, connection.epoch, all)).toBe('fenced');
  });

  it('say the same when a report is sent again because its answer was lost', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    const say = (given: typeof all) => one.backend.contexts.report(TAB, connection.epoch, given);
    await say(all);
    const delta = {
      contexts: { snapshot: false, set: [worker('x', { windowId: 'v' })], removed: ['w'] },
      windows: null,
    };
    for (let i = 0; i < 3; i++) expect(await say(delta)).toBe('taken');
    expect(await contextIds(two)).toEqual(['alice/tab/c', 'alice/tab/x']);
    expect((await two.backend.contexts.window('alice', 'v'))?.live).toEqual({ workers: 1, idle: 1, busy: 0 });
  });

  it('are stale, and gone, with the lease of their node', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    await one.backend.contexts.report(TAB, connection.epoch, all);
    await lease(one, 'n1', one.now() + 1_000);
    await one.advance(1_000);
    expect(await contextIds(two, { statuses: ['stale'] })).toEqual(['alice/tab/c', 'alice/tab/w']);
    await one.advance(FORGET_MS);
    expect([await contextIds(two), await windowIds(two)]).toEqual([[], []]);
  });

  it('cost as many round trips for many lists as for one', async () => {
    const users = Array.from({ length: 60 }, (_, i) => `u${i}`);
    for (const userId of users) {
      const { connection } = await one.backend.connections.connect(hello(userId, 'tab'));
      await one.backend.contexts.report(connection, connection.epoch, all);
    }
    const { contexts } = two.backend;
    const { partitions } = two.store;
    const filters = users.map((userId) => ({ ...ANY_CONTEXT, userId }));
    const windows = users.map((userId) => ({ ...ANY_WINDOW, userId }));
    expect((await contexts.lists(filters, 10)).map(({ rows }) => rows.length)).toEqual(users.map(() => 2));
    expect(await trips(two.store, () => contexts.lists(filters, 10))).toBeLessThanOrEqual(2 * partitions);
    expect(await trips(two.store, () => contexts.windowLists(windows, 10))).toBeLessThanOrEqual(2 * partitions);
  });

  it('live as long as the signs of life of their link, whatever the expiry of their keys', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    await one.backend.contexts.report(TAB, connection.epoch, all);
    const partition = one.store.partitionOfUser('alice');
    const held = (['conn', 'ctx', 'win', 'ctxwin'] as const).map((kind) =>
      one.store.key(partition, kind, one.store.hash('alice', 'tab')),
    );
    for (const key of held) await raw(one, partition, ['PEXPIRE', key, 600_000]);
    for (let ms = 0; ms < 3600_000; ms += 40_000) {
      await one.advance(40_000);
      expect(await one.backend.connections.touch(TAB, connection.epoch)).not.toBeNull();
    }
    expect([await contextIds(two), await windowIds(two)]).toEqual([['alice/tab/c', 'alice/tab/w'], ['alice/tab/v']]);
    for (const key of held) expect(await raw(one, partition, ['PTTL', key])).toBeGreaterThan(3600_000);
  });

  it('leave nothing behind once their clients are forgotten, and hold no key that would stay for ever', async () => {
    for (const userId of ['alice', 'bob', 'carol']) {
      const { connection } = await one.backend.connections.connect(hello(userId, 'tab'));
      await one.backend.contexts.report(connection, connection.epoch, all);
      expect(connectionStatus(connection, one.now())).toBe('connected');
    }
    const live = await keysOf(one);
    expect(new Set(live.map(({ kind }) => kind))).toEqual(
      new Set(['meta', 'conn', 'conns', 'connusers', 'conngone', 'ctx', 'win', 'ctxwin', 'ctxs', 'wins']),
    );
    for (const { kind, ttl } of live) {
      const { ends } = Object.entries(KINDS).find(([name]) => name === kind)?.[1] ?? { ends: 'unknown' };
      if (ttl === -1) expect(['emptied', 'kept', 'node']).toContain(ends);
      else expect([kind, ends, ttl > 3600_000]).toEqual([kind, 'ttl', true]);
    }
    await one.advance(60_000 + FORGET_MS);
    await two.backend.connections.users(PAGE);
    expect((await keysOf(one)).map(({ kind }) => kind).filter((kind) => kind !== 'meta')).toEqual([]);
  });
});

/** Every key of the bench's namespace, with how long it will live. */
async function keysOf({ store }: RedisBench): Promise<{ readonly kind: string; readonly ttl: number }[]> {
  const client = connectCommands(inject('redisUrl'));
  await client.connect();
  const found: { kind: string; ttl: number }[] = [];
  for (const server of client instanceof Cluster ? client.nodes('master') : [client]) {
    for await (const names of server.scanStream({ match: `{cb:${store.namespace}:*`, count: 1000 })) {
      for (const name of names as string[])
        found.push({ kind: name.split('}:')[1]?.split(':')[0] ?? '', ttl: await client.pttl(name) });
    }
  }
  client.disconnect();
  return found;
}
