/** Tests addresses of Redis that are easily wrong: databases, sockets, and certificates that hold names. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../kit/patience.ts';
import { silentLog } from '../../src/core/ports.ts';
import { freePort } from '../kit/free-port.ts';
import { startRedis, type RedisServer } from '../kit/redis.ts';
import { FakeClock } from '../kit/clock.ts';
import { openRedis } from './kit/open-redis.ts';

const NO_DISK = ['--save', '', '--appendonly', 'no'];

describe('a single Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    const acl = ['--user', 'relay', 'on', '>right', '~*', '&*', '+@all'];
    server = await startRedis([...NO_DISK, '--unixsocket', 'redis.sock', '--enable-debug-command', 'yes', ...acl]);
  });
  afterAll(() => server.stop());

  it('opens in its last database, and not in one that it does not have', async () => {
    const last = await openRedis({ url: `${server.url}/15` });
    await last.backend.close();
    await expect(openRedis({ url: `${server.url}/16` })).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(
        /^REDIS_URL: redis:\/\/127\.0\.0\.1:\d+\/16 names a database that this Redis does not have/,
      ),
    });
  });

  it('opens over its socket', async () => {
    const redis = await openRedis({ url: `unix://${server.folder}/redis.sock?db=2` });
    await redis.backend.ready();
    await redis.backend.close();
  });

  it('says why a login that was changed is refused', async () => {
    await using hand = await handOf(server.port);
    const redis = await openRedis({ url: server.url.replace('//', '//relay:right@') });
    await redis.backend.ready();
    await hand.client.call('ACL', 'SETUSER', 'relay', 'resetpass', '>other');
    await hand.client.call('CLIENT', 'KILL', 'USER', 'relay');
    const reason = (): Promise<unknown> =>
      Promise.resolve(redis.backend.ready()).then(
        () => null,
        (error: { details?: { reason?: string } }) => error.details?.reason,
      );
    await expect.poll(reason).toMatch(/WRONGPASS/);
    await hand.client.call('ACL', 'SETUSER', 'relay', 'resetpass', '>right');
    await expect.poll(reason).toBeNull();
    await redis.backend.close();
  });

  it('is waited for while it loads its data', async () => {
    await using hand = await handOf(server.port);
    await hand.client.mset(...Array.from({ length: 2_000 }, (_, i) => [`loaded:${i}`, 'x'.repeat(200)]).flat());
    await hand.client.config('SET', 'loading-process-events-interval-bytes', '1024');
    await hand.client.config('SET', 'key-load-delay', '20000');
    const reloaded = hand.client.call('DEBUG', 'RELOAD').catch(() => {});
    await using other = await handOf(server.port);
    await expect.poll(async () => (await other.client.info('persistence')).includes('loading:1')).toBe(true);
    const clock = new FakeClock();
    const warned = Promise.withResolvers<string>();
    const log = { ...silentLog, warn: (_: unknown, message: string) => warned.resolve(message) };
    const opening = openRedis({ url: server.url, system: clock, log });
    opening.catch(() => {});
    await clock.advance(10_000);
    expect(await warned.promise).toContain('Redis loads its data');
    await other.client.config('SET', 'key-load-delay', '0');
    await reloaded;
    const redis = await opening;
    await redis.backend.close();
  });
});

async function handOf(port: number): Promise<{ client: Redis } & AsyncDisposable> {
  const client = new Redis({ port, enableReadyCheck: false });
  await client.ping().catch(() => {});
  return { client, [Symbol.asyncDispose]: async () => client.disconnect() };
}

describe('servers whose certificates hold names', () => {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-names-'));
  const path = (name: string): string => join(folder, name);
  const text = (name: string): string => readFileSync(path(name), 'utf8');
  let server: RedisServer;
  let port: number;
  beforeAll(async () => {
    const made = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', path('key'), '-out', path('cert')];
    const names = ['-subj', '/CN=redis', '-addext', 'subjectAltName=DNS:localhost'];
    execFileSync('openssl', ['req', ...made, ...names], { stdio: 'ignore' });
    port = await freePort();
    const tls = ['--tls-cert-file', path('cert'), '--tls-key-file', path('key'), '--tls-ca-cert-file', path('cert')];
    const cluster = ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())];
    const named = [
      '--tls-cluster',
      'yes',
      '--cluster-announce-hostname',
      'localhost',
      '--cluster-preferred-endpoint-type',
      'hostname',
    ];
    server = await startRedis([
      ...NO_DISK,
      ...cluster,
      ...named,
      '--tls-port',
      String(port),
      ...tls,
      '--tls-auth-clients',
      'yes',
    ]);
    await using hand = await handOf(server.port);
    await hand.client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    await eventually(async () =>
      expect(String(await hand.client.call('CLUSTER', 'INFO'))).toContain('cluster_state:ok'),
    );
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  it('open as a cluster by their names, with a certificate of the relay', async () => {
    const certificates = { ca: text('cert'), cert: text('cert'), key: text('key') };
    const redis = await openRedis({ url: `rediss+cluster://localhost:${port}`, certificates });
    await redis.backend.ready();
    await redis.backend.close();
  });

  it('are refused with the error of TLS, not only with a closed connection', async () => {
    const refused = (url: string, certificates?: { ca: string }) =>
      openRedis({ url, certificates }).then(
        () => null,
        (error: Error) => (error.cause instanceof Error ? error.cause.message : ''),
      );
    const trusted = { ca: text('cert') };
    expect(await refused(`rediss+cluster://localhost:${port}`)).toMatch(/self-signed certificate/);
    expect(await refused(`rediss+cluster://127.0.0.1:${port}`, trusted)).toMatch(/does not match certificate/);
    expect(await refused(`rediss://127.0.0.1:${port}`, trusted)).toMatch(/does not match certificate/);
    // Without a certificate of the relay, the server ends the connection after its handshake.
    expect(await refused(`rediss+cluster://localhost:${port}`, trusted)).not.toBeNull();
  });
});
