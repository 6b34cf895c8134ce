/** Tests the bus over a Redis Cluster: events reach every node, whichever master each of them subscribed to. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createRedisBus, type RedisBus } from '../../src/backends/redis/bus.ts';
import { connectTo, type Purpose, type Client } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { loadPrograms } from '../../src/backends/redis/program/program.ts';
import { createStore, type Store } from '../../src/backends/redis/store.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';

const PARTITIONS = 6;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterAll(() => cluster.stop());

describe('the bus over a cluster', () => {
  let namespace: string;
  let nodes: { readonly bus: RedisBus; readonly store: Store; readonly client: Client; readonly system: FakeClock }[];
  beforeEach(() => {
    namespace = randomUUID();
    nodes = [];
  });
  afterEach(() => {
    for (const { bus, client } of nodes) {
      bus.close();
      client.disconnect();
    }
  });

  const connect = (purpose: Purpose): Client => {
    const hosts = cluster.urls.map((url) => url.slice('redis://'.length)).join(',');
    return connectTo(readTarget(`redis+cluster://${hosts}`), purpose, silentLog);
  };
  async function begin() {
    const client = connect('commands');
    await client.connect();
    const { sha256 } = createCrypto('test');
    const options = { client, programs: loadPrograms(), namespace, partitions: PARTITIONS, sha256 };
    const store = createStore({ ...options, scopeOf: (userId) => userId });
    const system = new FakeClock();
    const limits = { retentionMs: 1, streamMessages: 1, leaseMs: 1 };
    const bus = createRedisBus({
      store,
      log: silentLog,
      sha256,
      system,
      clock: system,
      connect,
      read: () => Promise.resolve(null),
      ...limits,
    });
    const node = { bus, store, client, system };
    nodes.push(node);
    await bus.ready();
    return node;
  }
  const users = Array.from({ length: 40 }, (_, i) => `user-${i}`);
  const heardOf = (bus: RedisBus, topics: readonly `site:${string}`[]): Promise<unknown> =>
    Promise.all(topics.map((topic) => new Promise((done) => void bus.subscribe(topic, done))));
  const publishAll = (bus: RedisBus, topics: readonly `site:${string}`[]): void => {
    for (const topic of topics) bus.publish(topic, { name: 'saved', data: null, messageId: 'm', publishedAt: 1 });
  };

  it('carries events of every partition, and hints of commands, whichever master each node subscribed at', async () => {
    const [a, ...others] = [await begin(), await begin(), await begin(), await begin()];
    expect(new Set(users.map((user) => a.store.partitionOfUser(user))).size).toBe(PARTITIONS);
    const topics = users.map((user): `site:${string}` => `site:${user}/board`);
    const received = others.map(({ bus }) => heardOf(bus, topics));
    publishAll(a.bus, topics);
    await Promise.all(received);
    for (const { bus } of others) {
      const looked = new Promise((done) => void bus.subscribe('command:alice/tab/c1', done));
      expect(await looked).toMatchObject({ progress: null });
      const moved = new Promise((done) => void bus.subscribe('command:alice/tab/c1', done));
      // The answer to each act says whether any node listens to hints of commands. Without such a node, `a` publishes
      // no hint.
      await a.store.act(a.store.partitionOfUser('alice'), 'nodes-due', [1]);
      a.bus.publish('command:alice/tab/c1', {
        ...{ key: { userId: 'alice', clientId: 'tab', commandId: 'c1' }, progress: null },
      });
      await moved;
    }
  });

  it('receives again from another master, or the same one, after its connection was cut', async () => {
    const a = await begin();
    const b = await begin();
    const topics = users.map((user): `site:${string}` => `site:${user}/board`);
    const channel = b.store.key(0, 'bus');
    expect(await listeners(channel)).toBe(2);
    for (const master of cluster.masters) await kill(master.url);
    await expect.poll(() => listeners(channel)).toBe(2);
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const received = heardOf(to.bus, topics);
      publishAll(from.bus, topics);
      await received;
    }
  });

  /** Closes all connections that are subscribed at the master with this URL. */
  async function kill(url: string): Promise<void> {
    const hand = connectTo(readTarget(url), 'commands', silentLog);
    await hand.connect();
    await hand.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    hand.disconnect();
  }

  /** Returns the number of subscribers of a channel, over all masters. */
  async function listeners(channel: string): Promise<number> {
    const counts = await Promise.all(
      cluster.masters.map(async ({ url }) => {
        const hand = connectTo(readTarget(url), 'commands', silentLog);
        await hand.connect();
        const [, count] = (await hand.call('PUBSUB', 'NUMSUB', channel)) as [string, number];
        hand.disconnect();
        return count;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }
});
