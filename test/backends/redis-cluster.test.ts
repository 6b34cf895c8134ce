/** Tests partitions on a Redis Cluster: where they are, and where their acts run. */
import { randomUUID } from 'node:crypto';
import calculateSlot from 'cluster-key-slot';
import { Cluster } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectTo, type Client } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { loadPrograms } from '../../src/backends/redis/program/program.ts';
import { createStore, type Store } from '../../src/backends/redis/store.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';

const FOLDER = new URL('./redis-lua/', import.meta.url);
const MASTERS = 3;
const PARTITIONS = 6;
const EVERY = Array.from({ length: PARTITIONS }, (_, partition) => partition);
const USERS = Array.from({ length: 300 }, (_, i) => `user-${i}`);

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster(MASTERS);
});
afterAll(() => cluster.stop());

function connect(): Client {
  return connectTo(readTarget(cluster.address), 'commands', silentLog);
}

describe('six partitions on a cluster of three masters', () => {
  let client: Client;
  let store: Store;
  beforeEach(async () => {
    client = connect();
    await client.connect();
    store = createStore({
      client,
      programs: loadPrograms(FOLDER),
      namespace: randomUUID(),
      partitions: PARTITIONS,
      sha256: createCrypto('test').sha256,
      scopeOf: (userId) => userId,
    });
  });
  afterEach(() => void client.disconnect());

  const note = (partition: number, what: string) => store.act(partition, 'test-note', [what]);
  const notes = (partition: number) => ['LRANGE', store.key(partition, 'bus'), 0, -1] as const;
  /** Returns how many commands each master ran while `run` was in progress. */
  const grown = async (command: string, run: () => Promise<unknown>): Promise<readonly number[]> => {
    const before = await cluster.calls(command);
    await run();
    const after = await cluster.calls(command);
    return after.map((calls, i) => calls - (before[i] ?? 0));
  };

  it('keeps each partition in one slot, and two partitions on each master', () => {
    const slots = EVERY.map((partition) => calculateSlot(store.key(partition, 'meta')));
    const others = EVERY.map((partition) => calculateSlot(store.key(partition, 'client', store.hash('any', 'thing'))));
    expect(others).toEqual(slots);
    const masters = slots.map((slot) => Math.floor((slot * MASTERS) / 16_384));
    expect(masters).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it('runs the acts of each partition on its own master', async () => {
    const shares = await grown('rpush', () => Promise.all(EVERY.map((partition) => note(partition, `p${partition}`))));
    expect(shares).toEqual([2, 2, 2]);
    const kept = await store.readAll((partition) => [notes(partition)]);
    expect(kept).toEqual(EVERY.map((partition) => [[`p${partition}`]]));
  });

  it('reads each partition from its own master, several commands at once', async () => {
    await Promise.all(EVERY.map((partition) => note(partition, 'x')));
    const read = () =>
      store.readAll((partition) => [notes(partition), ['EXISTS', store.key(partition, 'bus')], notes(partition)]);
    expect(await grown('lrange', read)).toEqual([4, 4, 4]);
    expect(await store.read([notes(3), ['EXISTS', store.key(3, 'bus')]])).toEqual([['x'], 1]);
  });

  it('spreads the load of many users over all masters', async () => {
    const shares = await grown('rpush', () =>
      Promise.all(USERS.map((userId) => note(store.partitionOfUser(userId), userId))),
    );
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(USERS.length);
    for (const share of shares) expect(share).toBeGreaterThan(USERS.length / MASTERS / 2);
  });

  it('loads the program again on a master that lost it', async () => {
    await note(0, 'a');
    await note(5, 'a');
    if (client instanceof Cluster) await Promise.all(client.nodes('master').map((node) => node.script('FLUSH')));
    expect(await Promise.all([note(0, 'b'), note(5, 'b')])).toEqual([2, 2]);
  });
});
