/** Runs every contract of the Redis backend as a Redis user that has only the documented rights. */
import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { COMMANDS } from '../../src/backends/redis/rights-commands.ts';
import { createRedisSpill } from '../../src/backends/redis/spill.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { openCallboard } from '../../src/callboard.ts';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { ActionCancelled, createRuntime } from '../../src/clients/runtime/index.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { signToken } from '../../src/http/tokens.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { connectCommands } from '../kit/redis.ts';
import { smallestRules, startRestrictedRedis, type RestrictedRedis } from '../kit/redis-user.ts';
import { ALICE, BOUND, dispatched, ending, keyFor, openNode } from './kit/bench.ts';
import { newMessage } from './kit/history-model.ts';
import { redisBench, type RedisBench, type RedisBenchOptions } from './kit/redis-bench.ts';
import { reconnectContract } from './reconnects.ts';
import { redisContracts } from './redis-contracts.ts';
import { spillContract, spillShares } from './spill.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

const NAME = 'Redis, with the smallest rights';

let redis: RestrictedRedis;
beforeAll(async () => {
  redis = await startRestrictedRedis();
  await redis.allow(smallestRules('*'));
});
afterAll(() => redis[Symbol.asyncDispose]());

function connect(): Client {
  return connectCommands(redis.url);
}

function bench(more: RedisBenchOptions = {}): Promise<RedisBench> {
  return redisBench({ connect, ...more });
}

redisContracts(NAME, bench);
reconnectContract(NAME, bench);
spillContract(NAME, async (total, guarantee) => {
  const { store, clock, close } = await bench(total === undefined ? {} : { partitions: 1 });
  const { sha256 } = createCrypto('test');
  return {
    store: createRedisSpill({ store, sha256, clock, shares: spillShares(total, guarantee) }),
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close,
  };
});

it('two relays relay a call, a cancellation and an event stream with the rights of their namespace only', async () => {
  const namespace = 'smoke';
  await redis.allow(smallestRules(namespace));
  const secret = 'a secret of the tests, long enough for HS256';
  const place = { url: redis.url, namespace, partitions: 2, durability: 'memory', strictMigration: false } as const;
  const config = {
    redis: { ...place, store: 'redis' as const, legacy: { commandStream: null, pending: null } },
    auth: { secret },
  };
  await using near = await openCallboard({ config });
  await using far = await openCallboard({ config });
  const [url, other] = await Promise.all([near.listen(), far.listen()]);
  const token = (...scopes: string[]) =>
    signToken({ secret, user: 'alice', scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now() });
  const runtime = createRuntime({
    url: `${url.replace('http', 'ws')}/connect`,
    token: () => token('connect'),
    clientId: 'desk',
    clientType: 'console',
  });
  await using _ = runtime;
  runtime.handle('echo', {}, ({ say }) => ({ text: say }));
  runtime.handle('wait', {}, (_params, { signal }) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new ActionCancelled({})));
    });
  });
  runtime.connect();
  await runtime.ready();
  await using caller = createHttpCaller({ url: other, token: () => token('invoke') });
  const desk = { userId: 'alice', clientId: 'desk' };
  expect(await caller.invoke({ ...desk, action: 'echo' }, { say: 'hello' })).toMatchObject({
    outcome: 'completed',
    result: { text: 'hello' },
  });
  const running = await caller.invoke({ ...desk, action: 'wait' }, {}, { waitFor: 'acknowledged' });
  const ended = caller.await(running.handle, { withinMs: 10_000 });
  expect(await caller.cancel(running.handle, 'enough')).toMatchObject({ state: 'requested' });
  expect(await ended).toMatchObject({ outcome: 'cancelled' });
  await expect.poll(async () => (await fetch(`${other}/readyz`)).json()).toEqual({ status: 'ready' });
});

it('a command with the maximum number of rows loses its oldest', async () => {
  await redis.allow(smallestRules('*'));
  const { backend, close } = await bench();
  const admin = new Redis(redis.server.url);
  const row = (): Promise<unknown> => Promise.resolve(backend.history.retain(newMessage({ commandId: 'long' })));
  // The first 16 places of a command are stored in `cmdrows`. The 17th place creates the key `cmdmore`.
  for (let i = 0; i < 17; i++) await row();
  const [key = ''] = await admin.keys(`*:cmdmore:*:${createHash('sha1').update('long').digest('hex')}`);
  const time = String((await admin.zrange(key, '0', '0'))[0]).split('\0')[0] ?? '';
  await admin.eval(
    `for i = 1, 100000 do redis.call('ZADD', KEYS[1], 0, ARGV[1] .. '\\0a\\0' .. i) end`,
    1,
    key,
    String(time),
  );
  await row();
  expect(await admin.zcard(key)).toBe(100_000);
  admin.disconnect();
  await close();
});

it('records and deduplication marks beyond their totals are dropped', async () => {
  const bound = (total: number) => ({ guarantee: total, total });
  const bounds = shareBounds({ ended_records: bound(1), marks: bound(9), dedup_marks: bound(1) });
  const opened = await bench({ partitions: 1, bounds });
  const { commands, history } = opened.backend;
  await openNode(opened);
  await commands.rebind(ALICE, BOUND, 'up');
  for (const id of ['r1', 'r2', 'r3']) {
    await dispatched(opened, id, { chosenId: false });
    await commands.finish(keyFor(id), ending());
    await history.ingest({ ...newMessage({ id: `m-${id}` }), clientId: 'tab' });
  }
  await expect.poll(() => commands.get(['r1', 'r2', 'r3'].map((id) => keyFor(id)))).toMatchObject([null, null, {}]);
  await opened.close();
});

it('a command is subscribed to and unsubscribed from', async () => {
  const { backend, close } = await bench();
  const received = Promise.withResolvers<void>();
  const stop = backend.bus.subscribe('command:alice/desk/c1', () => received.resolve());
  await received.promise;
  stop();
  await expect.poll(async () => [...(await redis.used())]).toContain('UNSUBSCRIBE');
  await close();
});

it('the tests above used every command of the list, and no other', async () => {
  const used = await redis.used();
  // Commands of the test's own connection, and commands that every Redis client may send.
  const besides = ['ACL SETUSER', 'AUTH', 'PING', 'HELLO', 'CLIENT SETNAME', 'CLIENT SETINFO', 'KEYS'];
  const listed = Object.keys(COMMANDS).map((name) => (name === 'PUBSUB' ? 'PUBSUB NUMSUB' : name));
  expect([...used].filter((name) => !besides.includes(name)).sort()).toEqual(listed.sort());
});
