/**
 * Tests that no break of a connection to Redis, at any of the first commands of a connection, ends the process, and
 * that the relay works and receives events afterwards.
 */
import { setDefaultCACertificates, getCACertificates } from 'node:tls';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from 'ioredis';
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { silentLog } from '../../src/core/ports.ts';
import type { RedisBackend } from '../../src/backends/redis/open.ts';
import type { SentCommand } from '../../faults/outages/processes/command-cut.ts';
import { CERTIFICATE } from '../kit/certificates.ts';
import { REDIS_FORMS, startRedisForm, type ProxiedRedis } from '../kit/redis-forms.ts';
import { openRedis } from './kit/open-redis.ts';

/** How many of the first commands of a connection it is broken at. */
const FIRST = 10;
const PURPOSES = ['callboard-commands', 'callboard-mailbox', 'callboard-bus'] as const;
const quiet = { lost: () => Promise.resolve(), linksLost: () => {}, revived: () => {} };

const faults: unknown[] = [];
const note = (error: unknown): void => void faults.push(error);

beforeAll(() => {
  setDefaultCACertificates([...getCACertificates(), CERTIFICATE.cert]);
  process.on('unhandledRejection', note);
  process.on('uncaughtException', note);
});
afterAll(() => {
  process.off('unhandledRejection', note);
  process.off('uncaughtException', note);
});

describe('a node of a cluster', () => {
  it('that breaks at an ASKING ends nothing', async () => {
    await using redis = await startRedisForm('cluster');
    const client = connectTo(readTarget(redis.url), 'commands', silentLog);
    try {
      await client.connect();
      if (!(client instanceof Cluster)) throw new Error('not a cluster');
      const [node] = client.nodes('master');
      const closed = new Promise((done) => node?.once('end', done));
      // ioredis drops this promise while it follows a slot that moves.
      void node?.asking();
      node?.disconnect();
      await closed;
      await new Promise(setImmediate);
      expect(faults.splice(0)).toEqual([]);
    } finally {
      client.disconnect();
    }
  });
});

describe.each(REDIS_FORMS)('over Redis in the form %s', (form) => {
  let redis: ProxiedRedis;
  /** The node whose connections break, and a node of another relay whose connections go to Redis directly. */
  let broken: RedisBackend;
  const heard = new Set<() => void>();
  beforeAll(async () => {
    redis = await startRedisForm(form);
    broken = await openRedis({ url: redis.url, namespace: randomUUID() });
    const deliver = (): void => heard.forEach((resolve) => resolve());
    await broken.backend.nodes.attach('n1', { ...quiet, deliver });
    await broken.backend.ready?.();
  });
  afterEach(() => {
    redis.breakAt(null);
    expect(faults.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await broken.backend.close();
    await redis[Symbol.asyncDispose]();
  });

  /** Breaks all connections, and then the next connection for which `breaksAt` returns true. Resolves after that break. */
  function breakNext(breaksAt: (command: SentCommand) => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    redis.breakAt((command) => {
      if (!breaksAt(command)) return false;
      redis.breakAt(null);
      resolve();
      return true;
    });
    redis.reset();
    return promise;
  }

  /** Resolves when acts are answered, the mailbox is read, and the bus carries events. */
  async function works(): Promise<void> {
    const { backend } = broken;
    const attempt = async (): Promise<boolean> => {
      await backend.ready?.();
      const { promise: read, resolve } = Promise.withResolvers<void>();
      heard.add(resolve);
      await backend.nodes.post('n1', { kind: 'drain', withinMs: 1 });
      await read.finally(() => heard.delete(resolve));
      return true;
    };
    await expect.poll(() => attempt().catch(String)).toBe(true);
  }

  it.each(PURPOSES)('works again after %s broke at each of its first commands', async (purpose) => {
    for (let number = 1; number <= FIRST; number++) {
      const reached = breakNext((command) => command.connection.endsWith(purpose) && command.number === number);
      // A connection may send fewer commands until everything works: then it does not break again.
      await Promise.race([reached, works()]);
      redis.breakAt(null);
      await works();
    }
  });

  it('subscribes again after it broke at SUBSCRIBE, twice in a row', async () => {
    for (let turn = 0; turn < 3; turn++) {
      await breakNext(({ name }) => name === 'SUBSCRIBE');
      await breakNext(({ name }) => name === 'SUBSCRIBE');
      await works();
    }
  });
});
