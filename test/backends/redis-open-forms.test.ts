import { createShares } from '../../src/core/shares/shares.ts';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectCommands } from '../kit/redis-client.ts';
import { openRedisBackend, type RedisBackend } from '../../src/backends/redis/open.ts';
import { trustJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createCrypto } from '../../src/platform/crypto.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';
import { startRedisSentinel, type RedisSentinel } from '../kit/redis-sentinel.ts';

function open(url: string, partitions: number): Promise<RedisBackend> {
  return openRedisBackend({
    url,
    namespace: randomUUID(),
    partitions,
    durability: 'memory',
    retentionMs: 3600_000,
    streamMessages: 100,
    scopeOf: (userId) => userId,
    sha256: createCrypto('test').sha256,
    spillDir: null,
    shares: createShares(),
    legacy: { commandStream: null, pending: null },
    strictMigration: false,
    system: systemClock,
    log: silentLog,
  });
}

const isReady = ({ backend }: RedisBackend): Promise<boolean> =>
  Promise.resolve(backend.ready()).then(
    () => true,
    () => false,
  );

/** Writes and reads back in every partition. */
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
    await expect.poll(() => isReady(redis), { timeout: 15_000 }).toBe(true);
    await expect
      .poll(
        () =>
          works(redis).then(
            () => true,
            () => false,
          ),
        { timeout: 15_000 },
      )
      .toBe(true);
    await redis.backend.close();
  }, 60_000);

  it('gives up after a bounded time if no sentinel answers', async () => {
    await expect(open('redis+sentinel://127.0.0.1:1/main', 1)).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
