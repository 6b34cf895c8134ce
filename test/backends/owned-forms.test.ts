/** Tests processes that own partitions over sentinels, a cluster whose slots move, TLS, and a socket of the machine. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import calculateSlot from 'cluster-key-slot';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readFence } from '../../src/backends/owned/fence.ts';
import { Keys } from '../../src/backends/owned/keys.ts';
import { ownedNamespace } from '../../src/backends/redis/keys.ts';
import { openOwned, type OwnedBackend } from '../../src/backends/owned/open.ts';
import { connectTo, type ConnectTarget } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import { admission } from '../contract/kit/bench.ts';
import { CERTIFICATE } from '../kit/certificates.ts';
import { eventually } from '../kit/patience.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { startRedisForm } from '../kit/redis-forms.ts';
import { startRedisSentinel } from '../kit/redis-sentinel.ts';
import { startRedis } from '../kit/redis.ts';

const PARTITIONS = 6;
const DIVISION = { partitions: PARTITIONS, groups: 3, digest: 'd' };
/** How often each test runs: a longer run sets CALLBOARD_TEST_ROUNDS. */
const ROUNDS = Number(process.env['CALLBOARD_TEST_ROUNDS'] ?? 1);
/** A lease that no test outlives. */
const LEASE_MS = 600_000;

type Place = {
  readonly keys: Keys;
  open(nodeId: string, claims: boolean): Promise<OwnedBackend>;
};

function placeAt(target: ConnectTarget): Place {
  const namespace = randomUUID();
  return {
    keys: new Keys(ownedNamespace(namespace), DIVISION),
    open: (nodeId, claims) =>
      openOwned({
        connect: (purpose, findNode) => connectTo(target, purpose, silentLog, { findNode }),
        ...{ namespace, ...DIVISION, nodeId, claims, version: 'test', scopeOf: (userId) => userId },
        ...{
          leaseMs: LEASE_MS,
          clock: systemClock,
          system: systemClock,
          loop: systemLoop,
          random: createCrypto('test'),
          log: silentLog,
        },
        memory: { sha256: createCrypto('test').sha256, markSecret: 'x' },
      }),
  };
}

/** Opens the owner of all partitions, and a process whose calls all go to it. */
async function openBoth({ open }: Place): Promise<{ readonly owner: OwnedBackend; readonly foreign: OwnedBackend }> {
  const owner = await open('b', true);
  await eventually(() => expect(owner.owners.owned).toHaveLength(PARTITIONS + 1));
  return { owner, foreign: await open('a', false) };
}

/** A load of calls of both processes, each for a user of its own. */
class Load {
  readonly admitted: string[] = [];
  readonly #backends: readonly OwnedBackend[];
  readonly #running: Promise<unknown>[] = [];

  constructor(...backends: readonly OwnedBackend[]) {
    this.#backends = backends;
  }

  /** Begins calls, and ends when the event loop had a turn for each. */
  async begin(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const userId = `user-${this.#running.length}`;
      const call = this.#backends.map(({ backend }, at) => this.#admit(backend, `${userId}-${at}`));
      // `ended` rejects with what went wrong.
      for (const one of call) one.catch(() => undefined);
      this.#running.push(...call);
      await new Promise((next) => setImmediate(next));
    }
  }

  /** Resolves when all calls have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Sees that a process has all that was acknowledged. */
  async expectIn({ backend }: OwnedBackend): Promise<void> {
    expect(this.admitted.length).toBe(this.#running.length);
    for (const userId of this.admitted) {
      const [command] = await backend.commands.get([{ userId, clientId: 'tab', commandId: 'c' }]);
      expect([userId, command?.commandId]).toEqual([userId, 'c']);
    }
  }

  async #admit(backend: OwnedBackend['backend'], userId: string): Promise<void> {
    const over = { userId, scopeId: userId, connectWithinMs: 600_000 };
    const result = await backend.commands.admit(admission('c', over));
    expect(result).toMatchObject({ kind: 'admitted' });
    await new Promise<void>((recorded) => backend.onRecord?.(recorded));
    this.admitted.push(userId);
  }
}

/** Runs calls of both processes, and looks from a third one that takes over when the owner has ended. */
async function works(
  target: ConnectTarget,
  meanwhile: (place: Place) => Promise<void> = async () => {},
): Promise<void> {
  const place = placeAt(target);
  const { owner, foreign } = await openBoth(place);
  const load = new Load(owner, foreign);
  await load.begin(30);
  const going = load.begin(100);
  await meanwhile(place);
  await going;
  await load.begin(30);
  await load.ended();
  await load.expectIn(foreign);
  const next = await place.open('c', true);
  await owner.backend.close();
  await eventually(() => expect(next.owners.owned).toHaveLength(PARTITIONS + 1));
  await load.expectIn(next);
  await foreign.backend.close();
  await next.backend.close();
}

describe('processes that own partitions', { repeats: ROUNDS - 1 }, () => {
  it('go on after a failover under a sentinel, without a call that fails', async () => {
    const sentinel = await startRedisSentinel();
    onTestFinished(() => sentinel.stop());
    const before = await sentinel.master();
    await works(readTarget(`redis+sentinel://${new URL(sentinel.url).host}/${sentinel.name}`), () =>
      sentinel.failOver(),
    );
    expect(await sentinel.master()).not.toBe(before);
  });

  it('go on in a cluster while the slot of some partitions moves, and fence themselves never', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const hands = cluster.urls.map((url) => new Redis(url));
    onTestFinished(() => hands.forEach((hand) => hand.disconnect()));
    await works(readTarget(cluster.address), async ({ keys }) => {
      const { fence, log } = keys.of(0);
      const { to } = await cluster.moveSlotOf(fence);
      const hand = hands[to];
      if (!hand) throw new Error('there is no such server');
      const number = async (): Promise<number> => readFence(await hand.get(fence))?.number ?? 0;
      expect(await hand.exists(log)).toBe(1);
      const moved = await number();
      await eventually(async () => expect(await number()).toBeGreaterThan(moved));
      expect(readFence(await hand.get(fence))?.process).toMatch(/^b\./);
    });
  });

  it('go on in a cluster after the master of some partitions was killed', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const hands = cluster.urls.map((url) => patient(new Redis(url)));
    onTestFinished(() => hands.forEach((hand) => hand.disconnect()));
    await works(readTarget(cluster.address), async ({ keys }) => {
      const slot = calculateSlot(keys.of(0).fence);
      const owners = await Promise.all(hands.map((hand) => hand.cluster('COUNTKEYSINSLOT', slot)));
      await cluster.failOver(owners.findIndex((count) => count > 0));
    });
  });

  it('work over TLS, and over a socket of the machine', async () => {
    await using tls = await startRedisForm('tls');
    await works({ ...readTarget(tls.url), certificates: { ca: CERTIFICATE.cert } });
    const server = await startRedis(['--save', '', '--appendonly', 'no', '--unixsocket', 'redis.sock']);
    onTestFinished(() => server.stop());
    await works(readTarget(`unix:${join(server.folder, 'redis.sock')}`));
  });
});

/** Its server may be killed. */
function patient(hand: Redis): Redis {
  hand.on('error', () => {});
  return hand;
}
