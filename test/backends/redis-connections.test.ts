/** Tests connections over Redis, seen from two processes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { trustJson } from '../../src/core/json.ts';
import { DEAD_MS, FORGET_MS } from '../../src/core/limits.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { ALL, hello, ids } from '../contract/kit/connections-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { setLeaseEnd, runRaw, countRoundTrips } from './kit/redis-raw.ts';

const TAB = { userId: 'alice', clientId: 'tab' };
const PAGE = { first: 1000, after: null };
const ACTION = { name: 'open', summary: null, description: null, version: null, checksArguments: null };
const ACTIONS = [{ ...ACTION, schema: null, metadata: null }];

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

  it('share one list in the process that reads them if they advertise the same', async () => {
    const actionsOf = async (clientIds: readonly string[]) =>
      (await two.backend.connections.get(clientIds.map((clientId) => ({ userId: 'alice', clientId })))).map(
        (row) => row?.actions,
      );
    const named = (name: string) => [{ ...ACTIONS[0]!, name, description: 'x'.repeat(100) }];
    for (const [clientId, name] of [
      ['a', 'open'],
      ['b', 'open'],
      ['c', 'shut'],
    ] as const)
      await one.backend.connections.connect(hello('alice', clientId, { actions: named(name) }));
    const [a, b, c] = await actionsOf(['a', 'b', 'c']);
    expect([a, c]).toEqual([named('open'), named('shut')]);
    expect(b).toBe(a);
  });

  it('answer a sign of life with the changes that another process made', async () => {
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

  it('are read again by a process that cached them: changes, links that are down, and other instances', async () => {
    const seen = async () => (await two.backend.connections.get([TAB, { ...TAB, clientId: 'gone' }]))[0];
    const text = hello('alice', 'tab', { actions: ACTIONS, metadata: trustJson('{"a":1}') });
    const { connection } = await one.backend.connections.connect(text);
    expect([await seen(), await seen()]).toEqual([connection, connection]);
    await one.advance(10);
    await one.backend.connections.touch(TAB, connection.epoch);
    const touched = { ...connection, lastSeenAt: one.now() };
    expect(await seen()).toEqual(touched);
    await one.backend.connections.advertise(TAB, connection.epoch, []);
    expect(await seen()).toEqual({ ...touched, actions: [] });
    const down = await one.backend.connections.disconnect(TAB, connection.epoch, 'client_closed');
    expect([await seen(), await seen()]).toEqual([down, down]);
    const next = await one.backend.connections.connect(hello('alice', 'tab', { instanceId: 'other' }));
    expect([await seen(), next.connection.replacedInstanceId]).toEqual([next.connection, connection.instanceId]);
    await one.advance(DEAD_MS + FORGET_MS);
    expect([await seen(), await two.backend.connections.ofUsers(['alice'], 5)]).toEqual([
      null,
      [{ total: 0, rows: [] }],
    ]);
  });

  it('never assign an epoch twice, even after the store lost its data', async () => {
    const { epoch } = (await one.backend.connections.connect(hello('alice', 'tab'))).connection;
    const partition = one.store.partitionOfUser('alice');
    await runRaw(one, ['DEL', one.store.key(partition, 'meta')]);
    await runRaw(one, ['DEL', one.store.key(partition, 'conn', one.store.hash('alice', 'tab'))]);
    await one.advance(1);
    const next = await one.backend.connections.connect(hello('alice', 'tab'));
    expect(next.kind).toBe('connected');
    expect(next.connection.epoch).toBeGreaterThan(epoch);
  });

  it("are shown as lost from the end of their node's lease, until the node beats again", async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    await one.backend.connections.connect(hello('bob', 'tab', { nodeId: 'n2' }));
    const ends = one.now() + 8_000;
    await setLeaseEnd(one, 'n1', ends);
    await one.advance(7_999);
    expect(await two.backend.connections.get([TAB])).toEqual([connection]);
    await one.advance(5_001);
    const lost = { ...connection, disconnectedAt: ends, disconnectCause: 'node_lost' };
    expect(await two.backend.connections.get([TAB])).toEqual([lost]);
    expect(await two.backend.connections.ofUsers(['alice'], 5)).toEqual([{ total: 1, rows: [lost] }]);
    expect(await ids(two, { ...ALL, status: 'disconnected' })).toEqual(['alice/tab']);
    expect(await ids(two, { ...ALL, status: 'connected' })).toEqual(['bob/tab']);
    await setLeaseEnd(one, 'n1', one.now() + 8_000);
    expect(await two.backend.connections.get([TAB])).toEqual([connection]);
  });

  it("are forgotten FORGET_MS after the end of their node's lease, however late they are read", async () => {
    await one.backend.connections.connect(hello('alice', 'tab'));
    const ends = one.now() + 1_000;
    await setLeaseEnd(one, 'n1', ends);
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

  it('keep the time and cause of a loss by lease when a close follows', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    const ends = one.now() + 1_000;
    await setLeaseEnd(one, 'n1', ends);
    await one.advance(3_000);
    const lost = { ...connection, disconnectedAt: ends, disconnectCause: 'node_lost' };
    expect(await two.backend.connections.disconnect(TAB, connection.epoch, 'operator')).toEqual(lost);
    await setLeaseEnd(one, 'n1', one.now() + 8_000);
    expect(await two.backend.connections.get([TAB])).toEqual([lost]);
    expect(await two.backend.connections.touch(TAB, connection.epoch)).toBeNull();
    const back = await one.backend.connections.connect(hello('alice', 'tab', { instanceId: 'i2' }));
    expect(back).toMatchObject({ kind: 'replaced', previous: lost, connection: { disconnectedAt: null } });
  });

  it('need as many round trips for a thousand rows as for one', async () => {
    const users = Array.from({ length: 50 }, (_, i) => `u${i}`);
    const clients = Array.from({ length: 20 }, (_, i) => `c${String(i).padStart(2, '0')}`);
    const keys = users.flatMap((userId) => clients.map((clientId) => ({ userId, clientId })));
    await Promise.all(keys.map(({ userId, clientId }) => one.backend.connections.connect(hello(userId, clientId))));
    const { connections } = two.backend;
    const { partitions } = two.store;
    const found: unknown[] = [];
    const forUsers = await countRoundTrips(two.store, async () => {
      for (const { total, rows } of await connections.ofUsers(users, 20))
        found.push([total, rows.map((row) => row.clientId)]);
    });
    expect(found).toEqual(users.map(() => [20, clients]));
    expect(forUsers).toBeLessThanOrEqual(2 * partitions);
    expect(await countRoundTrips(two.store, () => connections.get(keys))).toBeLessThanOrEqual(2 * partitions);
    expect(await countRoundTrips(two.store, () => connections.list(ALL, PAGE))).toBeLessThanOrEqual(2 * partitions);
    expect(await countRoundTrips(two.store, () => connections.users(PAGE))).toBeLessThanOrEqual(2 * partitions);
  });

  it('are read, announced and compared without hashing again what a client advertises', async () => {
    const { sha256 } = createCrypto('test');
    let hashed = 0;
    const reader = await redisBench({ beside: one, sha256: (text) => ((hashed += text.length), sha256(text)) });
    const actions = [{ ...ACTION, schema: null, metadata: null, description: 'x'.repeat(100_000) }];
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab', { actions }));
    const [read] = await reader.backend.connections.get([TAB]);
    expect(await reader.backend.connections.get([TAB])).toEqual([connection]);
    expect(await reader.backend.connections.touch(TAB, connection.epoch)).toEqual(connection);
    if (read) reader.backend.bus.publish('connections', { change: 'stale', connection: read, cause: null, at: 1 });
    expect(hashed).toBeLessThan(10_000);
    await reader.close();
  });

  it('keep no copy of what a client advertises: only hashes of short texts are cached', async () => {
    const { sha256 } = createCrypto('test');
    const digested: number[] = [];
    const other = await redisBench({ sha256: (text) => (digested.push(text.length), sha256(text)) });
    for (const length of [900, 900, 100_000, 100_000]) other.store.hash('x'.repeat(length));
    expect(digested.filter((length) => length > 800).map((length) => Math.floor(length / 100))).toEqual([
      9, 1000, 1000,
    ]);
    await other.close();
  });

  it('do not count any row that has expired, however many were lost at once', async () => {
    const many = Array.from({ length: 300 }, (_, i) => hello(`u${i % 3}`, `c${i}`));
    await Promise.all(many.map((request) => one.backend.connections.connect(request)));
    await one.advance(60_000 + FORGET_MS);
    expect((await two.backend.connections.users(PAGE)).rows).toEqual([]);
    expect(await two.backend.connections.ofUsers(['u0', 'u1'], 5)).toEqual([
      { total: 0, rows: [] },
      { total: 0, rows: [] },
    ]);
  });

  it('do not confuse users or clients whose names share a prefix', async () => {
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
