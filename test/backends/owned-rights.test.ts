/**
 * Tests that relays that own partitions work with the documented smallest rights in Redis, name each right that is
 * missing, and start only over a Redis that keeps what they write.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, OWNED_COMMANDS } from '../../src/backends/redis/rights-commands.ts';
import { openCallboard } from '../../src/callboard.ts';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { ADMIN, ask, SECRET, tokenOf } from '../http/kit/http-relay.ts';
import { LEASE_MS, OwnerDeployment } from '../kit/owners.ts';
import { FakeClock } from '../kit/clock.ts';
import { eventually, WAIT_MS } from '../kit/patience.ts';
import { startRedis } from '../kit/redis.ts';
import { OWNED_RULES, smallestRules, startRestrictedRedis, type RestrictedRedis } from '../kit/redis-user.ts';
import { silentLog } from '../../src/core/ports.ts';

/** A right that a relay can lack without ending: it is used by none of the others. */
const WITHDRAWN = '+smembers';

let redis: RestrictedRedis;
beforeAll(async () => {
  redis = await startRestrictedRedis();
});
afterAll(() => redis[Symbol.asyncDispose]());

const rulesOf = (namespace: string): readonly string[] => [...smallestRules(namespace), ...OWNED_RULES];

function open(namespace: string, url = redis.url, durability: 'memory' | null = 'memory') {
  const place = { url, namespace, partitions: 2, durability, store: 'owned', strictMigration: false } as const;
  return openCallboard({
    config: {
      auth: { adminTokens: [ADMIN], secret: SECRET },
      redis: { ...place, legacy: { commandStream: null, pending: null } },
    },
  });
}

/** Waits until a relay is ready, or says this. */
const until = (url: string, expected: Readonly<Record<string, unknown>>): Promise<void> =>
  expect
    .poll(async () => (await ask(`${url}/readyz`, { token: null })).json, { timeout: WAIT_MS })
    .toMatchObject(expected);

describe('the rights of the Redis user of owners', () => {
  it('are sufficient for two relays, and are named while one is missing', async () => {
    const namespace = randomUUID();
    await redis.allow(rulesOf(namespace));
    await using near = await open(namespace);
    await using far = await open(namespace);
    const [url, other] = await Promise.all([near.listen(), far.listen()]);
    for (const one of [url, other]) await until(one, { status: 'ready' });
    await using runtime = createRuntime({
      url: `${url.replace('http', 'ws')}/connect`,
      token: () => tokenOf('alice', 'connect'),
      clientId: 'desk',
      clientType: 'console',
    });
    runtime.handle('echo', {}, ({ say }) => ({ text: say }));
    runtime.connect();
    await runtime.ready();
    await using caller = createHttpCaller({ url: other, token: () => tokenOf('alice', 'invoke') });
    const desk = { userId: 'alice', clientId: 'desk', action: 'echo' };
    expect(await caller.invoke(desk, { say: 'hello' })).toMatchObject({ result: { text: 'hello' } });

    await redis.allow(rulesOf(namespace).filter((rule) => rule !== WITHDRAWN));
    for (const one of [url, other])
      await until(one, { code: 'store_unavailable', reason: expect.stringContaining(`add the rule ${WITHDRAWN}`) });
    await redis.allow(rulesOf(namespace));
    for (const one of [url, other]) await until(one, { status: 'ready' });
    expect(await caller.invoke(desk, { say: 'again' })).toMatchObject({ result: { text: 'again' } });
  });

  it('are sufficient to write snapshots, to take over, and to begin a log anew', async () => {
    await redis.allow(rulesOf('*'));
    const clock = new FakeClock();
    const place = new OwnerDeployment({ clock, namespace: randomUUID(), partitions: 2, log: silentLog });
    const hand = new Redis(redis.server.url);
    const keys = [place.keys.of(0), place.keys.of(1)];
    const untilSeen = (see: () => Promise<void>): Promise<void> =>
      eventually(async () => {
        await clock.advance(LEASE_MS / 4);
        await see();
      });
    const haveSnapshots = async () => expect(await hand.exists(...keys.map(({ snapshotAt }) => snapshotAt))).toBe(2);
    const first = await place.start('a.1', redis.url);
    await untilSeen(async () => expect(first.owners.owned).toHaveLength(2));
    // A full Redis makes snapshots due.
    await hand.config('SET', 'maxmemory', '1048576');
    await untilSeen(haveSnapshots);
    await hand.del(...keys.flatMap(({ fence, log, snapshotAt }) => [fence, log, snapshotAt]));
    await untilSeen(haveSnapshots);
    await hand.config('SET', 'maxmemory', '0');
    await first.die();
    const second = await place.start('b.1', redis.url);
    await untilSeen(async () => expect(second.owners.owned).toHaveLength(2));
    await place[Symbol.asyncDispose]();
    hand.disconnect();
  });

  it('are just those that the tests above used', async () => {
    const used = await redis.used();
    // It is used if there are replicas.
    const unused = ['WAIT'];
    const known: readonly string[] = [...Object.keys(COMMANDS), ...Object.keys(OWNED_COMMANDS)];
    const besides = ['ACL SETUSER', 'AUTH', 'PING', 'HELLO', 'CLIENT SETNAME', 'CLIENT SETINFO', 'CONFIG SET'];
    expect([...used].filter((name) => !known.includes(name.replace(' NUMSUB', '')) && !besides.includes(name))).toEqual(
      [],
    );
    expect(Object.keys(OWNED_COMMANDS).filter((name) => !used.has(name))).toEqual(unused);
  });

  it.each(OWNED_RULES)('are refused at the start without %s', async (rule) => {
    const namespace = randomUUID();
    await redis.allow(rulesOf(namespace).filter((other) => other !== rule));
    await expect(open(namespace)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining(`add the rule ${rule}.`),
    });
  });
});

describe('the Redis of owners', () => {
  it.each([
    ['evicts keys', ['--maxmemory-policy', 'allkeys-lru'], 'memory', 'maxmemory-policy allkeys-lru'],
    ['writes nothing to disk, and that is not accepted', [], null, 'keeps no append-only file that is synced'],
  ] as const)('is refused if it %s', async (_name, args, durability, reason) => {
    const server = await startRedis(['--save', '', '--appendonly', 'no', ...args]);
    try {
      await expect(open(randomUUID(), server.url, durability)).rejects.toMatchObject({
        code: 'invalid_argument',
        message: expect.stringContaining(reason),
      });
    } finally {
      await server.stop();
    }
  });
});
