/** Tests opening the backend over a Redis with passwords, and over TLS. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '../../src/backends/redis/client.ts';
import type { RedisBackend } from '../../src/backends/redis/open.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { trustJson } from '../../src/core/json.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { ask } from '../http/kit/http-relay.ts';
import { freePort } from '../kit/free-port.ts';
import { connectCommands, startRedis, type RedisServer } from '../kit/redis.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { startRedisSentinel, type RedisSentinel } from '../kit/redis-sentinel.ts';
import { openRedis } from './kit/open-redis.ts';
import { eventually } from '../kit/patience.ts';

const PASSWORD = 'p@ss/word#1';
const NO_DISK = ['--save', '', '--appendonly', 'no'];

function open(url: string, log: Log = silentLog): Promise<RedisBackend> {
  return openRedis({ url, partitions: 1, log });
}

/** Opens a backend, uses every kind of connection, and closes it. */
async function works(url: string): Promise<void> {
  const redis = await open(url);
  await redis.backend.ready();
  await usesAll(redis);
  await redis.backend.close();
}

/** Uses every kind of connection. */
async function usesAll(redis: RedisBackend): Promise<void> {
  const { promise: received, resolve } = Promise.withResolvers<void>();
  const deliver = (): void => resolve();
  await redis.backend.nodes.attach('n1', {
    deliver,
    lost: () => Promise.resolve(),
    linksLost: () => {},
    revived: () => {},
  });
  await redis.backend.nodes.post('n1', { kind: 'drain', withinMs: 1 });
  await received;
  const ref = await redis.spill.put(trustJson('1'), redis.clock.now() + 60_000, 'alice');
  expect(await redis.spill.read(ref)).toMatchObject({ state: 'present' });
}

const refusal = (reason: string) => ({
  code: 'store_unavailable',
  cause: expect.objectContaining({ message: expect.stringContaining(reason) }),
});

describe('over a Redis with passwords', () => {
  let server: RedisServer;
  beforeAll(async () => {
    const acl = ['--user', 'relay', 'on', `>${PASSWORD}`, '~*', '&*', '+@all'];
    server = await startRedis([...NO_DISK, '--requirepass', PASSWORD, ...acl]);
  });
  afterAll(() => server.stop());
  const at = (login: string): string => server.url.replace('redis://', `redis://${login}`);

  it('opens by password, and by user and password, percent-encoded', async () => {
    await works(at(`:${encodeURIComponent(PASSWORD)}@`));
    await works(at(`relay:${encodeURIComponent(PASSWORD)}@`));
  });

  it('is refused at once without a password, and with a wrong one', async () => {
    await expect(open(at(''))).rejects.toMatchObject(refusal('NOAUTH'));
    await expect(open(at(':wrong@'))).rejects.toMatchObject(refusal('WRONGPASS'));
  });
});

describe('a password that Redis changes while the relay runs', () => {
  /** Changes the password, and ends each connection that the old one opened. */
  const change = async (admin: Client, password: string): Promise<void> => {
    await admin.call('CONFIG', 'SET', 'requirepass', password);
    for (const type of ['normal', 'pubsub']) await admin.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
  };

  /** Returns `ready`, or why the store is not. */
  const readiness = async ({ backend }: RedisBackend): Promise<string> => {
    try {
      await backend.ready();
      return 'ready';
    } catch (error) {
      return error instanceof CallboardError ? `${error.message} ${String(error.details.reason)}` : String(error);
    }
  };

  it('keeps the relay out until it is told the new one, and then every connection works', async () => {
    const user = ['--user', 'relay', 'on', '>old', '~*', '&*', '+@all'];
    const server = await startRedis([...NO_DISK, '--requirepass', 'old', ...user]);
    const at = (login: string): string => server.url.replace('redis://', `redis://${login}@`);
    const redis = await open(at('relay:old'));
    const admin = connectCommands(at(':old'));
    try {
      await admin.connect();
      await redis.backend.ready();
      await admin.call('ACL', 'DELUSER', 'relay');
      await change(admin, 'new');
      await expect.poll(() => readiness(redis)).toContain('WRONGPASS');
      expect(redis.replaceLogin(`${at(':new')}/1`)).toBe(false);
      expect(redis.replaceLogin(at(':new'))).toBe(true);
      await expect.poll(() => readiness(redis)).toBe('ready');
      await usesAll(redis);
    } finally {
      admin.disconnect();
      await redis.backend.close();
      await server.stop();
    }
  });

  it('does so in a cluster', async () => {
    const cluster = await startRedisCluster();
    const admins = cluster.urls.map((url) => connectCommands(url));
    const at = (password: string): string => cluster.address.replace('://', `://:${password}@`);
    const set = (password: string) => Promise.all(admins.map((admin) => change(admin, password)));
    try {
      await Promise.all(admins.map((admin) => admin.connect()));
      await set('old');
      const redis = await open(at('old'));
      await redis.backend.ready();
      await set('new');
      await expect.poll(() => readiness(redis)).not.toBe('ready');
      expect(redis.replaceLogin(at('new'))).toBe(true);
      await expect.poll(() => readiness(redis)).toBe('ready');
      await usesAll(redis);
      await redis.backend.close();
    } finally {
      for (const admin of admins) admin.disconnect();
      await cluster.stop();
    }
  });
});

describe('over sentinels with passwords', () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startRedisSentinel({ passwords: { servers: 'of-servers', sentinel: 'of-sentinels' } });
  });
  afterAll(() => sentinel.stop());

  it('opens with both, each at its own server', async () => {
    const address = `redis+sentinel://:of-servers@${new URL(sentinel.url).host}/${sentinel.name}`;
    await works(`${address}?sentinel_password=of-sentinels`);
  });
});

describe('over TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-tls-'));
  const authority = join(folder, 'cert.pem');
  const running = new Set<ChildProcess>();
  let port: number;
  let server: RedisServer;
  beforeAll(async () => {
    const key = join(folder, 'key.pem');
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
    const made = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', authority];
    execFileSync('openssl', ['req', ...made, ...subject], { stdio: 'ignore' });
    port = await freePort();
    const files = ['--tls-cert-file', authority, '--tls-key-file', key, '--tls-ca-cert-file', authority];
    server = await startRedis([...NO_DISK, '--tls-port', String(port), ...files, '--tls-auth-clients', 'no']);
  });
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  const serve = (env: Record<string, string>): ChildProcess => {
    const bin = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
    const child = spawn(process.execPath, [bin, 'serve', '--json', '--port', '0', '--durability', 'memory'], {
      env: {
        PATH: process.env['PATH'],
        CALLBOARD_REDIS_URL: `rediss://localhost:${port}`,
        CALLBOARD_SECRET: 'a secret of more than thirty-two bytes',
        CALLBOARD_ADMIN_TOKEN: 'the-administrator',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    return child;
  };

  it('opens by rediss:// if the certificate is trusted, as Node is configured', async () => {
    const child = serve({ NODE_EXTRA_CA_CERTS: authority });
    if (!child.stdout) throw new Error('no output');
    const lines = createInterface({ input: child.stdout });
    const [line] = await once(lines, 'line');
    const { url } = JSON.parse(String(line)) as { readonly url: string };
    await eventually(async () => expect((await ask(`${url}/readyz`, { token: null })).status).toBe(200));
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
  });

  it('is refused with the reason if it is not trusted', async () => {
    await expect(open(`rediss://localhost:${port}`)).rejects.toMatchObject(refusal('self-signed certificate'));
  });
});
