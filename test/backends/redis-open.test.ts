/** Tests opening the Redis backend: readiness, outages and what is logged of them. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ownFolder } from '../kit/folder.ts';
import { openRedisBackend, type RedisBackend, type RedisBackendOptions } from '../../src/backends/redis/open.ts';
import { openCallboard, type Settings } from '../../src/callboard.ts';
import { trustJson } from '../../src/core/json.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { FakeClock, meanwhile } from '../kit/clock.ts';
import { startRedis, type RedisServer } from '../kit/redis.ts';
import { redisOptions } from './kit/open-redis.ts';

let server: RedisServer;
const opened: RedisBackend[] = [];
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
afterEach(async () => {
  for (const { backend } of opened.splice(0)) await backend.close();
});

function options(over: Partial<RedisBackendOptions> = {}): RedisBackendOptions {
  return redisOptions({ url: server.url, ...over });
}

async function open(over: Partial<RedisBackendOptions> = {}): Promise<RedisBackend> {
  const redis = await openRedisBackend(options(over));
  opened.push(redis);
  return redis;
}

describe('the Redis backend', () => {
  it('opens with every port, is ready, and uses the time of Redis', async () => {
    const before = Date.now();
    const { backend, clock } = await open();
    expect(backend.capabilities.shared).toBe(true);
    await backend.ready();
    // Redis tells whole milliseconds, at some time between the request and the answer.
    expect(clock.now()).toBeGreaterThan(before - 1_000);
    expect(clock.now()).toBeLessThan(Date.now() + 1_000);
  });

  it('signs cursors alike on every node of a deployment', async () => {
    const namespace = randomUUID();
    const [one, two] = [await open({ namespace }), await open({ namespace })];
    expect(one.cursorKey).toBe(two.cursorKey);
  });

  it('is not ready when Redis does not answer within a second', async () => {
    const system = new FakeClock();
    const { backend } = await open({ system });
    await backend.ready();
    process.kill(server.process.pid ?? 0, 'SIGSTOP');
    try {
      const before = system.monotonic();
      const ready = meanwhile(system, Promise.resolve(backend.ready()), 100);
      await expect(ready).rejects.toMatchObject({ code: 'store_unavailable' });
      expect(system.monotonic() - before).toBeLessThan(1_900);
    } finally {
      process.kill(server.process.pid ?? 0, 'SIGCONT');
    }
  });

  it('is not ready while Redis is unavailable, and recovers by itself', async () => {
    const { backend } = await open();
    await backend.ready();
    await server.kill();
    await expect(backend.ready()).rejects.toMatchObject({ code: 'store_unavailable' });
    await server.restart();
    await expect
      .poll(() =>
        Promise.resolve(backend.ready()).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
  });

  it.each([
    ['redis://:hunter2@127.0.0.1:1', 'redis://127.0.0.1:1/0', 'connect ECONNREFUSED 127.0.0.1:1'],
    ['redis+cluster://:hunter2@127.0.0.1:1', 'redis+cluster://127.0.0.1:1', 'connect ECONNREFUSED 127.0.0.1:1'],
  ])('reports once that nothing listens and why, without the password: %s', async (url, where, message) => {
    const lines: unknown[] = [];
    const at = (...line: unknown[]): void => void lines.push(line);
    await expect(open({ url, log: { debug: at, info: at, warn: at, error: at } })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: `Redis at ${where} cannot be used.`,
      cause: expect.objectContaining({ message }),
    });
    expect(lines).toEqual([]);
  });

  it('logs that its connection was lost', async () => {
    const lines: string[] = [];
    const log: Log = { ...silentLog, warn: (_fields, message) => void lines.push(message) };
    const { backend } = await open({ log });
    await server.kill();
    await expect(backend.ready()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(lines).toContain('a connection to Redis is lost');
    await server.restart();
  });

  it('does not report a refused password either', async () => {
    const lines: unknown[] = [];
    const at = (...line: unknown[]): void => void lines.push(line);
    const url = server.url.replace('redis://', 'redis://nobody:hunter2@');
    const error: unknown = await open({ url, log: { debug: at, info: at, warn: at, error: at } }).catch(
      (e: unknown) => e,
    );
    expect(error).toMatchObject({
      code: 'store_unavailable',
      cause: expect.objectContaining({ message: expect.stringContaining('WRONGPASS') }),
    });
    expect(JSON.stringify(lines) + String(error)).not.toContain('hunter2');
  });

  it('refuses to start while legacy keys hold data, if strict, and otherwise reports how much', async () => {
    const { store, backend } = await open();
    const [stream, pending] = [`legacy-${randomUUID()}`, `legacy-${randomUUID()}`];
    await store.read([
      ['XADD', stream, '*', 'a', 'b'],
      ['RPUSH', pending, 'x', 'y'],
    ]);
    const legacy = { commandStream: stream, pending };
    await expect(open({ legacy, strictMigration: true })).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('STRICT_MIGRATION'),
    });
    const lax = await open({ legacy });
    expect(await lax.backend.inspector.summary()).toMatchObject({
      legacyCommandStreamDepth: 1,
      pendingCommandDepth: 2,
    });
    await store.read([['DEL', stream, pending]]);
    await open({ legacy, strictMigration: true });
    expect(await backend.inspector.summary()).toMatchObject({ legacyCommandStreamDepth: null });
  });

  it('keeps large payloads where every node finds them', async () => {
    const namespace = randomUUID();
    const [one, two] = [await open({ namespace }), await open({ namespace })];
    const ref = await one.spill.put(trustJson('"large"'), one.clock.now() + 60_000, 'alice');
    expect(await two.spill.read(ref)).toEqual({ state: 'present', text: '"large"' });
  });
});

const REDIS = {
  partitions: 1,
  durability: 'memory',
  strictMigration: false,
  legacy: { commandStream: null, pending: null },
} as const;

describe('a relay over Redis', () => {
  it('forms one deployment with every other relay of its namespace', async () => {
    const config: Settings = { redis: { ...REDIS, url: server.url, namespace: randomUUID() }, auth: {} };
    await using one = await openCallboard({ config });
    await using two = await openCallboard({ config });
    await Promise.all([one.listen(), two.listen()]);
    expect(one.core.mode).toBe('shared');
    expect(one.core.nodeId).not.toBe(two.core.nodeId);
    const admin = { kind: 'admin', name: 'test', expiresAt: null } as const;
    const seen = async (): Promise<readonly string[]> => {
      const { nodes } = await one.core.delivery.nodes(admin, {});
      return nodes.map(({ nodeId }) => nodeId).sort();
    };
    // The answer may be one that was read shortly before the second node joined.
    await expect.poll(seen).toEqual([one.core.nodeId, two.core.nodeId].sort());
  });

  it('answers readiness by its store, and recovers with it', async () => {
    const own = await startRedis();
    const config: Settings = { redis: { ...REDIS, url: own.url, namespace: randomUUID() }, auth: {} };
    await using relay = await openCallboard({ config });
    const url = await relay.listen();
    const readiness = async () => (await fetch(`${url}/readyz`)).json();
    await expect.poll(readiness).toEqual({ status: 'ready' });
    await own.kill();
    expect(await readiness()).toEqual({ status: 'not_ready', code: 'store_unavailable' });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await own.restart();
    await expect.poll(readiness).toEqual({ status: 'ready' });
    await relay.close();
    await own.stop();
  });

  it('accepts a shared directory only if it is the same for all nodes', async () => {
    const namespace = randomUUID();
    const at = (spillDir: string): Settings => ({
      redis: { ...REDIS, url: server.url, namespace },
      spillDir,
      auth: {},
    });
    const shared = ownFolder();
    await using one = await openCallboard({ config: at(shared) });
    await using two = await openCallboard({ config: at(shared) });
    expect([one.core.mode, two.core.mode]).toEqual(['shared', 'shared']);
    await expect(openCallboard({ config: at(ownFolder()) })).rejects.toMatchObject({ code: 'invalid_argument' });
  });
});

/** Returns the files that a process loads until its relay listens. */
async function loadedBy(config: string): Promise<readonly string[]> {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    const { openCallboard } = await import(${JSON.stringify(new URL('../../src/callboard.ts', import.meta.url).href)});
    const relay = await openCallboard({ config: ${config} });
    await relay.listen();
    await relay.close();
    process.stdout.write(JSON.stringify(loaded));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  await new Promise((done) => child.on('close', done));
  return JSON.parse(out);
}

describe('direct mode', () => {
  it('loads no Redis client, and nothing of the Redis backend', async () => {
    // The settings check the form of addresses of Redis, in every mode.
    const own = /ioredis|cluster-key-slot|redis-parser|\/backends\/redis\/(?!target\.ts)/;
    const redis = JSON.stringify({ ...REDIS, url: server.url, namespace: randomUUID() });
    const [direct, shared] = await Promise.all([loadedBy('{ auth: {} }'), loadedBy(`{ auth: {}, redis: ${redis} }`)]);
    expect(direct.some((url) => url.endsWith('/backends/memory/backend.ts'))).toBe(true);
    expect(direct.filter((url) => own.test(url))).toEqual([]);
    expect(shared.some((url) => url.includes('/node_modules/ioredis/'))).toBe(true);
    expect(shared.some((url) => url.endsWith('/backends/redis/open.ts'))).toBe(true);
  });
});
