/** Tests large payloads in Redis: partitions, full memory, outages and expiry. */
import { afterEach, describe, expect, it } from 'vitest';
import { connectCommands, type RedisServer, startRedis } from '../kit/redis.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createRedisSpill } from '../../src/backends/redis/spill.ts';
import type { SpillRef } from '../../src/core/history/message.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { textOf } from '../contract/spill.ts';

const { sha256 } = createCrypto('test');
const HOUR = 3600_000;

describe('payloads in Redis', () => {
  const opened: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  const open = async (options: Parameters<typeof redisBench>[0] = {}): Promise<RedisBench> => {
    const bench = await redisBench(options);
    opened.push(() => bench.close());
    return bench;
  };
  const redis = async (...args: string[]): Promise<RedisServer> => {
    const server = await startRedis(['--save', '', '--appendonly', 'no', ...args]);
    opened.push(() => server.stop());
    return server;
  };

  it('are readable from every process, whichever partition they are in', async () => {
    const bench = await open({ partitions: 4 });
    const beside = await open({ partitions: 4, beside: bench });
    const here = createRedisSpill({ store: bench.store, sha256, clock: bench, shares: createShares() });
    const there = createRedisSpill({ store: beside.store, sha256, clock: bench, shares: createShares() });
    // The partitions are drawn by chance: one of four stays empty in one run of ten million.
    const refs = await Promise.all(
      Array.from({ length: 60 }, () => here.put(textOf(20_000), bench.now() + HOUR, 'alice')),
    );
    const used = await bench.store.readAll((partition) => [['EXISTS', bench.store.key(partition, 'payloads')]]);
    expect(used).toEqual([[1], [1], [1], [1]]);
    for (const ref of refs) expect(await there.read(ref)).toMatchObject({ state: 'present' });
    for (const ref of refs.slice(0, 10)) await there.discard(ref);
    for (const [i, ref] of refs.entries())
      expect((await here.read(ref)).state).toBe(i < 10 ? 'unavailable' : 'present');
  });

  it('are refused with store_full by a Redis without memory, and can be read and discarded even then', async () => {
    const server = await redis('--maxmemory', '6mb', '--maxmemory-policy', 'noeviction');
    const bench = await open({ connect: () => connectCommands(server.url), partitions: 1 });
    const store = createRedisSpill({ store: bench.store, sha256, clock: bench, shares: createShares() });
    const kept: SpillRef[] = [];
    const error = await (async () => {
      for (let i = 0; i < 100; i++) kept.push(await store.put(textOf(100_000), bench.now() + HOUR, 'alice'));
    })().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'store_full' });
    expect(kept.length).toBeGreaterThan(5);
    for (const ref of kept) expect(await store.read(ref)).toMatchObject({ state: 'present' });
    for (const ref of kept) await store.discard(ref);
    expect(await store.put(textOf(100_000), bench.now() + HOUR, 'alice')).toMatchObject({ bytes: 100_000 });
  });

  it('fail as unavailable, not as full, while Redis is unavailable', async () => {
    const server = await redis();
    const bench = await open({ connect: () => connectCommands(server.url) });
    const store = createRedisSpill({ store: bench.store, sha256, clock: bench, shares: createShares() });
    await server.kill();
    await expect(store.put(textOf(100), bench.now() + HOUR, 'alice')).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });

  it('count once when a put or a discard is repeated because its answer was lost', async () => {
    const { store, now } = await open({ partitions: 1 });
    const name = 'a'.repeat(32);
    const put = (as: string) => store.act(0, 'spill-put', [as, now() + HOUR, 100, 250, textOf(100)]);
    expect([await put(name), await put(name), await put('b'.repeat(32))]).toEqual([1, 1, 1]);
    expect(await put('c'.repeat(32))).toBe(0);
    for (let i = 0; i < 2; i++) await store.act(0, 'spill-discard', [name, 100]);
    expect([await put('c'.repeat(32)), await put('d'.repeat(32))]).toEqual([1, 0]);
  });

  it('expire by themselves without cleaning, and are removed completely with cleaning', async () => {
    const bench = await open({ partitions: 1 });
    const { store } = bench;
    const spill = createRedisSpill({ store, sha256, clock: bench, shares: createShares() });
    const refs = await Promise.all([1, 2, 3].map(() => spill.put(textOf(100), bench.now() + HOUR, 'alice')));
    const ttls = await store.read(refs.map(({ name }) => ['PTTL', store.key(0, 'payload', name)] as const));
    for (const ttl of ttls) expect(Number(ttl)).toBeGreaterThan(HOUR);
    for (const ttl of ttls) expect(Number(ttl)).toBeLessThanOrEqual(2 * HOUR);
    await bench.advance(HOUR);
    expect(await spill.clean()).toBe(3);
    const names = [...refs.map(({ name }) => store.key(0, 'payload', name)), store.key(0, 'payloads')];
    expect(await store.read([['EXISTS', ...names, store.key(0, 'payloadbytes')]])).toEqual([0]);
  });
});
