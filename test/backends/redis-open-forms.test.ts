/** Tests opening the backend over a Redis Cluster and over sentinels. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectCommands } from '../kit/redis.ts';
import type { RedisBackend } from '../../src/backends/redis/open.ts';
import { trustJson } from '../../src/core/json.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';
import { startRedisSentinel, type RedisSentinel } from '../kit/redis-sentinel.ts';
import { impatient, openRedis } from './kit/open-redis.ts';

function open(url: string, partitions: number): Promise<RedisBackend> {
  return openRedis({ url, partitions });
}

const isReady = ({ backend }: RedisBackend): Promise<boolean> =>
  Promise.resolve(backend.ready()).then(
    () => true,
    () => false,
  );

/** Writes to every partition and reads the values back. Throws if that fails. */
async function works({ clock, spill }: RedisBackend): Promise<void> {
  for (let i = 0; i < 24; i++) {
    const text = trustJson(JSON.stringify(`payload ${i}`));
    const ref = await spill.put(text, clock.now() + 60_000, 'alice');
    expect(await spill.read(ref)).toEqual({ state: 'present', text });
  }
}

describe('over a Redis Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());
  const address = (): string => `redis+cluster://${cluster.urls.map((url) => new URL(url).host).join(',')}`;

  it('opens, is ready, and uses every partition', async () => {
    const redis = await open(address(), 6);
    await redis.backend.ready();
    await works(redis);
    await redis.backend.close();
  });

  it('checks every master before it opens', async () => {
    const [, , last] = cluster.masters;
    if (!last) throw new Error('there is no third master');
    const hand = connectCommands(last.url);
    await hand.connect();
    await hand.config('SET', 'maxmemory-policy', 'volatile-lru');
    await expect(open(address(), 6)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining(`:${last.port} has maxmemory-policy volatile-lru`),
    });
    await hand.config('SET', 'maxmemory-policy', 'noeviction');
    hand.disconnect();
  });
});

describe('over sentinels', () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startRedisSentinel();
  });
  afterAll(() => sentinel.stop());
  const address = (): string => `redis+sentinel://${new URL(sentinel.url).host}/${sentinel.name}`;

  it('opens on the master, and continues with the next one after a failover', async () => {
    const redis = await open(address(), 1);
    await works(redis);
    const before = await sentinel.master();
    await sentinel.failOver();
    expect(await sentinel.master()).not.toBe(before);
    await expect.poll(() => isReady(redis)).toBe(true);
    await expect
      .poll(() =>
        works(redis).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await redis.backend.close();
  });

  it('gives up after a bounded time if no sentinel answers', async () => {
    const opening = openRedis({ url: 'redis+sentinel://127.0.0.1:1/main', partitions: 1, system: impatient });
    await expect(opening).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
