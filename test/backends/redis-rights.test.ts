/**
 * Tests that a relay works with the documented smallest rights in Redis, and that it names each right that is missing.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import type { RedisBackend, RedisBackendOptions } from '../../src/backends/redis/open.ts';
import { KINDS } from '../../src/backends/redis/keys.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { COMMAND_RULES, smallestRules, startRestrictedRedis, type RestrictedRedis } from '../kit/redis-user.ts';
import { openRedis } from './kit/open-redis.ts';

const NO_LEGACY = { commandStream: null, pending: null };

let redis: RestrictedRedis;
const opened: RedisBackend[] = [];
beforeAll(async () => {
  redis = await startRestrictedRedis();
});
afterAll(() => redis[Symbol.asyncDispose]());
afterEach(async () => {
  for (const { backend } of opened.splice(0)) await backend.close();
});

async function open(namespace: string, over: Partial<RedisBackendOptions> = {}): Promise<RedisBackend> {
  const backend = await openRedis({ url: redis.url, namespace, ...over });
  opened.push(backend);
  return backend;
}

function refusal(...texts: readonly string[]) {
  const message = expect.stringMatching(texts.map((text) => text.replaceAll(/[{}+*|.~&%\\()]/g, '\\$&')).join('[^]*'));
  return { code: 'invalid_argument', message };
}

describe('the rights of the Redis user at the start', () => {
  it('are sufficient with the smallest rules of the namespace', async () => {
    const namespace = randomUUID();
    await redis.allow(smallestRules(namespace));
    const { backend } = await open(namespace);
    await backend.ready();
  });

  it.each(COMMAND_RULES)('are refused without %s, and only the missing one is named', async (rule) => {
    const namespace = randomUUID();
    await redis.allow(smallestRules(namespace).filter((other) => other !== rule));
    const command = rule.slice(1).toUpperCase().replace('|', ' ');
    const where = `REDIS_URL: The Redis user "relay" at 127.0.0.1:${redis.server.port}`;
    await expect(open(namespace)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: `${where} may not run ${command}: add the rule ${rule}.`,
    });
  });

  it('are refused without the keys or the channels of the namespace', async () => {
    const namespace = randomUUID();
    const [keys = '', channels = ''] = smallestRules(namespace);
    await redis.allow([channels, ...COMMAND_RULES]);
    await expect(open(namespace)).rejects.toMatchObject(
      refusal(`may not use the key {cb:${namespace}:root}:meta and `, `add the rule ~{cb:${namespace}:*.`),
    );
    await redis.allow([keys, ...COMMAND_RULES]);
    await expect(open(namespace)).rejects.toMatchObject(
      refusal(`may not use the channel {cb:${namespace}:0.`, `add the rule &{cb:${namespace}:*.`),
    );
  });

  it('are refused by name for one kind of key, for a read-only key, and for another namespace', async () => {
    const namespace = randomUUID();
    const [, channels = ''] = smallestRules(namespace);
    const others = Object.keys(KINDS).filter((kind) => kind !== 'win');
    const keys = others.flatMap((kind) => [`~{cb:${namespace}:*}:${kind}`, `~{cb:${namespace}:*}:${kind}:*`]);
    await redis.allow([...keys, channels, ...COMMAND_RULES]);
    await expect(open(namespace)).rejects.toMatchObject(refusal('may not use the key {cb:', '}:win:x: add the rule'));
    await redis.allow([`%R~{cb:${namespace}:*`, channels, ...COMMAND_RULES]);
    await expect(open(namespace)).rejects.toMatchObject(refusal('may not use the key', `~{cb:${namespace}:*.`));
    await redis.allow(smallestRules(randomUUID()));
    await expect(open(namespace)).rejects.toMatchObject(
      refusal(`~{cb:${namespace}:*.`, 'REDIS_URL', `&{cb:${namespace}:*.`),
    );
  });

  it('are named all at once', async () => {
    const namespace = randomUUID();
    const allowed = COMMAND_RULES.filter((rule) => rule !== '+zadd' && rule !== '+subscribe');
    await redis.allow(allowed);
    await expect(open(namespace)).rejects.toMatchObject(
      refusal('~{cb:', '&{cb:', 'may not run SUBSCRIBE, ZADD: add the rules +subscribe +zadd.'),
    );
  });

  it('include another database only where the address names one', async () => {
    const namespace = randomUUID();
    await redis.allow(smallestRules(namespace));
    await expect(open(namespace, { url: `${redis.url}/3` })).rejects.toMatchObject({
      message: expect.stringContaining('+select'),
    });
    await redis.change('+select');
    await open(namespace, { url: `${redis.url}/3` });
  });

  it('include the legacy keys only where they are configured', async () => {
    const namespace = randomUUID();
    const legacy = { commandStream: 'old[1]', pending: 'pending' };
    await redis.allow(smallestRules(namespace));
    await expect(open(namespace, { legacy })).rejects.toMatchObject(
      refusal('TYPE', '+type', '+xlen', '+xinfo|groups', '+xpending', '+llen', '+scard'),
    );
    await redis.change('+type', '+xlen', '+xinfo|groups', '+xpending', '+llen', '+scard');
    await expect(open(namespace, { legacy })).rejects.toMatchObject({
      message: expect.stringContaining(
        'may not read the legacy key old[1]: add the rule %R~old\\[1\\].\nREDIS_URL: The Redis user',
      ),
    });
    await redis.change('%R~old\\[1\\]', '%R~pending');
    const { backend } = await open(namespace, { legacy });
    expect(await backend.inspector.summary()).toMatchObject({ legacyCommandStreamDepth: 0, pendingCommandDepth: 0 });
  });
});

it('callboard serve exits with the error line and never listens', async () => {
  const namespace = randomUUID();
  await redis.allow(smallestRules(namespace).filter((rule) => rule !== '+hset'));
  const bin = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
  const child = spawn(process.execPath, [bin, 'serve', '--json', '--port', '0', '--namespace', namespace], {
    env: {
      PATH: process.env['PATH'],
      CALLBOARD_REDIS_URL: redis.url,
      CALLBOARD_STORE: 'redis',
      CALLBOARD_DURABILITY: 'memory',
      CALLBOARD_SECRET: 'a secret of more than thirty-two bytes',
      CALLBOARD_ADMIN_TOKEN: 'the-administrator',
    },
  });
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  expect({ out, code }).toEqual({ out: '', code: 2 });
  expect(err).toContain(`at 127.0.0.1:${redis.server.port} may not run HSET: add the rule +hset.`);
  expect(err).not.toContain(redis.password);
});

describe('a right that is taken away while the relay runs', () => {
  type Line = { readonly fields: object; readonly message: string };

  async function relay(namespace: string) {
    const lines: Line[] = [];
    const say = (fields: object, message: string): void => void lines.push({ fields, message });
    const log: Log = { ...silentLog, info: say, warn: say };
    const settings = {
      url: redis.url,
      namespace,
      store: 'redis',
      partitions: 1,
      durability: 'memory',
      strictMigration: false,
    } as const;
    const callboard = await openCallboard({ config: { redis: { ...settings, legacy: NO_LEGACY }, auth: {} }, log });
    const url = await callboard.listen();
    return { callboard, lines, readiness: async () => (await fetch(`${url}/readyz`)).json() };
  }

  it.each([
    ['-zadd', '+zadd', (at: string) => `The Redis user "relay" at ${at} may not run ZADD: add the rule +zadd.`],
    ['-eval', '+eval', (at: string) => `The Redis user "relay" at ${at} may not run EVAL: add the rule +eval.`],
    ['-xread', '+xread', (at: string) => `The Redis user "relay" at ${at} may not run XREAD: add the rule +xread.`],
  ])('is named by /readyz and in the log: %s', async (take, give, sentence) => {
    const namespace = randomUUID();
    await redis.allow(smallestRules(namespace));
    const { callboard, lines, readiness } = await relay(namespace);
    await using _ = callboard;
    await expect.poll(readiness).toEqual({ status: 'ready' });
    await redis.change(take);
    const reason = sentence(`127.0.0.1:${redis.server.port}`);
    expect(await readiness()).toEqual({ status: 'not_ready', code: 'store_unavailable', reason });
    expect(lines).toContainEqual({ fields: { missing: reason }, message: 'the Redis user lacks rights' });
    await redis.change(give);
    await expect.poll(readiness).toEqual({ status: 'ready' });
    expect(lines.filter(({ message }) => message === 'the Redis user lacks rights')).toHaveLength(1);
    expect(lines.at(-1)?.message).toBe('the Redis user has all its rights again');
  });

  it('is named for keys and channels too', async () => {
    const namespace = randomUUID();
    await redis.allow(smallestRules(namespace));
    const { callboard, readiness } = await relay(namespace);
    await using _ = callboard;
    await expect.poll(readiness).toEqual({ status: 'ready' });
    await redis.change('resetkeys', `~{cb:${namespace}:root}:*`);
    expect(await readiness()).toMatchObject({ reason: expect.stringContaining(`~{cb:${namespace}:*.`) });
    await redis.change(`~{cb:${namespace}:*`, 'resetchannels');
    expect(await readiness()).toMatchObject({ reason: expect.stringContaining(`&{cb:${namespace}:*.`) });
  });

  it('is logged when an act or a read needs it, and the requester gets store_unavailable', async () => {
    const namespace = randomUUID();
    await redis.allow(smallestRules(namespace));
    const found = Promise.withResolvers<object>();
    const warn: Log['warn'] = (fields, message) => {
      if (message === 'the Redis user lacks rights') found.resolve(fields);
    };
    const { store } = await open(namespace, { log: { ...silentLog, warn } });
    await redis.change('-publish');
    await expect(store.act(0, 'bus-publish', [null, 'bus', null, 'text'])).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect(await found.promise).toEqual({
      missing: expect.stringContaining('may not run PUBLISH: add the rule +publish.'),
    });
    await redis.change('-hget');
    await expect(store.read([['HGET', store.key(0, 'meta'), 'x']])).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });
});
