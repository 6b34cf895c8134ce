/** Tests the check of Redis at a relay's start: which settings, versions and namespaces the relay refuses. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { FakeClock } from '../kit/clock.ts';
import { ownFolder } from '../kit/folder.ts';
import { connectCommands, type RedisServer, startRedis } from '../kit/redis.ts';
import { proveDirectory } from '../../src/backends/redis/spill-directory.ts';
import { enterNamespace, SCHEMA } from '../../src/backends/redis/namespace.ts';
import { surveyRedis, watchSurvey } from '../../src/backends/redis/survey.ts';
import { rootOf } from '../../src/backends/redis/keys.ts';
import { loadPrograms } from '../../src/backends/redis/program/program.ts';
import { createStore, type Store } from '../../src/backends/redis/store.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';

let server: RedisServer;
const clients = new Set<Client>();
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
afterEach(() => {
  for (const client of clients) client.disconnect();
  clients.clear();
});

async function connected(url = server.url): Promise<Client> {
  const client = connectCommands(url);
  clients.add(client);
  await client.connect();
  return client;
}

async function configured(settings: Record<string, string>): Promise<Client> {
  const client = await connected();
  for (const [name, value] of Object.entries(settings)) await client.config('SET', name, value);
  return client;
}

describe('the start check of Redis', () => {
  it('accepts what it finds if nothing is declared', async () => {
    const found = await surveyRedis(await configured({ appendonly: 'yes', appendfsync: 'everysec' }), null);
    expect(found).toMatchObject({ durability: 'aof_everysec', proven: true });
    expect(Number.parseInt(found.version, 10)).toBeGreaterThanOrEqual(7);
    const always = await configured({ appendfsync: 'always' });
    expect(await surveyRedis(always, null)).toMatchObject({ durability: 'aof_always', proven: true });
    expect(await surveyRedis(always, 'aof_everysec')).toMatchObject({ durability: 'aof_everysec', proven: true });
  });

  it.each([
    [{ appendonly: 'yes', appendfsync: 'everysec' }, 'aof_always', 'aof_always was declared'],
    [{ appendonly: 'yes', appendfsync: 'no' }, null, 'no append-only file that is synced'],
    [{ appendonly: 'no' }, null, 'no append-only file that is synced'],
    [{ appendonly: 'no', save: '60 1' }, 'aof_everysec', 'no append-only file that is synced'],
  ] as const)('refuses %j if %s is declared', async (settings, declared, words) => {
    const survey = surveyRedis(await configured(settings), declared);
    await expect(survey).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining(words) });
  });

  it('accepts a Redis without persistence only if it is declared so', async () => {
    const client = await configured({ appendonly: 'no', save: '' });
    await expect(surveyRedis(client, 'memory')).resolves.toMatchObject({ durability: 'memory' });
  });

  it('refuses a Redis that evicts, together with all other faults', async () => {
    const client = await configured({ appendonly: 'no', 'maxmemory-policy': 'allkeys-lru' });
    await expect(surveyRedis(client, null)).rejects.toMatchObject({
      message: expect.stringMatching(/allkeys-lru[^]*\nDURABILITY: /),
    });
    await client.config('SET', 'maxmemory-policy', 'noeviction');
  });

  it('trusts the declaration if CONFIG is denied, logs that, and still checks what INFO shows', async () => {
    const admin = await configured({ appendonly: 'yes' });
    await admin.call('ACL', 'SETUSER', 'guest', 'on', '>pass', '~*', '&*', '+@all', '-config');
    const guest = await connected(server.url.replace('redis://', 'redis://guest:pass@'));
    expect(await surveyRedis(guest, 'aof_always')).toMatchObject({ durability: 'aof_always', proven: false });
    await expect(surveyRedis(guest, null)).rejects.toMatchObject({ message: expect.stringContaining('declare') });
    await admin.config('SET', 'appendonly', 'no');
    await expect(surveyRedis(guest, 'aof_always')).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  it('fails with store_unavailable if Redis does not answer', async () => {
    const client = await connected();
    client.disconnect();
    await expect(surveyRedis(client, 'memory')).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('a change of Redis while the relay runs', () => {
  it('is logged once, and once when it is taken back; a Redis that does not answer changes nothing', async () => {
    const client = await configured({ appendonly: 'no', 'maxmemory-policy': 'noeviction' });
    const clock = new FakeClock();
    const lines: string[] = [];
    const note = (fields: object, text: string): void => void lines.push(`${text} ${JSON.stringify(fields)}`);
    const stop = watchSurvey({
      client,
      declared: 'memory',
      system: clock,
      log: { ...silentLog, info: note, warn: note },
    });
    const look = async (): Promise<number> => {
      await clock.advance(30_000);
      // Answers come in order, so those of the survey are here when these are.
      for (let i = 0; i < 5; i++) await client.ping().catch(() => {});
      return lines.length;
    };
    expect(await look()).toBe(0);
    await configured({ 'maxmemory-policy': 'allkeys-lru' });
    expect([await look(), await look()]).toEqual([1, 1]);
    expect(lines[0]).toContain('has maxmemory-policy allkeys-lru');
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
    expect(await look()).toBe(1);
    await client.connect();
    expect(await look()).toBe(1);
    await configured({ 'maxmemory-policy': 'noeviction' });
    expect([await look(), await look()]).toEqual([2, 2]);
    expect(lines[1]).toContain('are fit again');
    stop();
    await configured({ 'maxmemory-policy': 'allkeys-lru' });
    expect(await look()).toBe(2);
    await configured({ 'maxmemory-policy': 'noeviction' });
  });
});

async function storeOf(namespace: string, partitions: number): Promise<Store> {
  return createStore({
    client: await connected(inject('redisUrl')),
    programs: loadPrograms(),
    namespace,
    partitions,
    sha256: createCrypto('test').sha256,
    scopeOf: (userId) => userId,
  });
}

describe('a namespace', () => {
  it('is fixed by the first node, also when many start at once, and has one key for cursors', async () => {
    const namespace = randomUUID();
    const stores = await Promise.all(Array.from({ length: 5 }, () => storeOf(namespace, 3)));
    const keys = (await Promise.all(stores.map((store) => enterNamespace(store, 'redis')))).map(
      ({ cursorKey }) => cursorKey,
    );
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]?.length).toBeGreaterThanOrEqual(43);
    const other = await enterNamespace(await storeOf(randomUUID(), 3), 'redis');
    expect(other.cursorKey).not.toBe(keys[0]);
  });

  it('records its settings in every partition', async () => {
    const store = await storeOf(randomUUID(), 3);
    await enterNamespace(store, 'redis');
    const metas = await store.readAll((p) => [['HMGET', store.key(p, 'meta'), 'partitions', 'schema', 'store']]);
    expect(metas).toEqual(Array.from({ length: 3 }, () => [['3', String(SCHEMA), expect.stringMatching(/^.{43}$/)]]));
    expect(new Set(metas.map(([row]) => (Array.isArray(row) ? row[2] : null))).size).toBe(3);
  });

  it('refuses a relay of the other store, which would not read its data', async () => {
    const namespace = randomUUID();
    await enterNamespace(await storeOf(namespace, 1), 'redis');
    await expect(enterNamespace(await storeOf(namespace, 1), 'owned')).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(/^STORE: the namespace "[^"]+" has the data of STORE=redis/),
    });
    await enterNamespace(await storeOf(namespace, 1), 'redis');
  });

  it.each([1, 2, 4])(
    'refuses %i partitions once it was created with 3, and leaves nothing behind',
    async (partitions) => {
      const namespace = randomUUID();
      await enterNamespace(await storeOf(namespace, 3), 'redis');
      const wrong = await storeOf(namespace, partitions);
      const keys = async (): Promise<readonly string[]> =>
        ((await wrong.read([['KEYS', `*${namespace}*`]]))[0] as string[]).sort();
      const before = await keys();
      await expect(enterNamespace(wrong, 'redis')).rejects.toMatchObject({
        code: 'invalid_argument',
        message: expect.stringContaining(`was created with 3, not ${partitions}`),
      });
      expect(await keys()).toEqual(before);
    },
  );

  it('refuses data that was written in another schema', async () => {
    const store = await storeOf(randomUUID(), 1);
    await enterNamespace(store, 'redis');
    await store.read([['HSET', rootOf(store.namespace), 'schema', '99']]);
    await expect(enterNamespace(store, 'redis')).rejects.toMatchObject({
      message: expect.stringContaining('schema 99'),
    });
  });
});

describe('a directory for payloads', () => {
  it('is the same for all nodes of a deployment, also when they start at once', async () => {
    const [store, root] = [await storeOf(randomUUID(), 1), join(ownFolder(), 'made')];
    await Promise.all([proveDirectory(store, root), proveDirectory(store, root), proveDirectory(store, root)]);
    await proveDirectory(store, root);
  });

  it('is refused if it is another or an empty directory, or cannot be used', async () => {
    const [store, other] = [await storeOf(randomUUID(), 1), await storeOf(randomUUID(), 1)];
    const [mine, theirs] = [ownFolder(), ownFolder()];
    await proveDirectory(store, mine);
    await proveDirectory(other, theirs);
    for (const root of [theirs, ownFolder(), join(ownFolder(), 'absent'), '/dev/null'])
      await expect(proveDirectory(store, root)).rejects.toMatchObject({
        code: 'invalid_argument',
        message: expect.stringContaining('SPILL_DIR'),
      });
  });
});
