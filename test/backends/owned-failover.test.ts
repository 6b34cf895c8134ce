/** Tests owners over a Redis with a replica: claims wait for it, and a failover that takes a claim or a handover back. */
import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readFence } from '../../src/backends/owned/fence.ts';
import { shouldOwn } from '../../src/backends/owned/placement.ts';
import { Replicas } from '../../src/backends/owned/replicas.ts';
import type { PartitionStores } from '../../src/backends/owned/routes.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { silentLog } from '../../src/core/ports.ts';
import { admission, keyFor } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';
import { LEASE_MS, OwnerDeployment, type OwnerProcess } from '../kit/owners.ts';
import { eventually, TEST_MS } from '../kit/patience.ts';
import { connectCommands } from '../kit/redis.ts';
import { startRedisPair, type RedisPair } from '../kit/redis-pair.ts';

const PARTITIONS = 6;
/** How long a command waits for its client, which never comes, in milliseconds. */
const WAIT_MS = 600_000_000;
const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition);
/** How many failovers occur in a test: a longer run sets CALLBOARD_TEST_ROUNDS. */
const FAILOVERS = Number(process.env['CALLBOARD_TEST_ROUNDS'] ?? 5);

describe('owners over a Redis with a replica', () => {
  let clock: FakeClock;
  let warnings: string[];
  let places: OwnerDeployment[];
  beforeEach(() => {
    clock = new FakeClock();
    warnings = [];
    places = [];
  });

  async function startPair(): Promise<RedisPair> {
    const pair = await startRedisPair();
    onTestFinished(() => pair[Symbol.asyncDispose]());
    return pair;
  }

  function deploy(waitMs?: number): OwnerDeployment {
    // Processes of an earlier test, which may still warn when their connections close, have a list of their own.
    const told = warnings;
    const warn = (fields: object, text: string): void => {
      if (text.startsWith('replicas of Redis are behind')) told.push(inspect(fields));
    };
    const log = { ...silentLog, warn };
    const connect = (url: string): Client => patient(connectCommands(url));
    const options = { clock, namespace: randomUUID(), partitions: PARTITIONS, log, waitMs, connect };
    const place = new OwnerDeployment(options);
    places.push(place);
    onTestFinished(() => place[Symbol.asyncDispose]());
    return place;
  }

  const ownedBy = ({ owners }: OwnerProcess): readonly number[] => owners.owned.map(({ number }) => number);
  const storesOf = ({ owners }: OwnerProcess, partition: number): PartitionStores => {
    const stores = owners.local(partition);
    if (!stores) throw new Error(`the partition ${partition} is not here`);
    return stores;
  };
  /** Lets time pass until what is expected is so. Time never passes while Redis has not answered what was asked before. */
  const until = (see: () => void | Promise<void>): Promise<void> =>
    eventually(async () => {
      await clock.advance(LEASE_MS / 4);
      for (const place of places) await place.answered();
      await see();
    }, 1);

  /** Lets time pass until a process has started: the note that it is known may be lost, and it then waits for a lease. */
  async function started(starting: Promise<OwnerProcess>): Promise<OwnerProcess> {
    let isOver = false;
    void starting.catch(() => {}).then(() => (isOver = true));
    await until(() => expect(isOver).toBe(true));
    return starting;
  }

  /** Admits a command in each partition, and waits until it is acknowledged. A partition may be on its way just now. */
  async function admitAll(processes: readonly OwnerProcess[], commandId: string): Promise<void> {
    for (const partition of ALL)
      await eventually(async () => {
        const owner = processes.find(({ owners }) => owners.local(partition));
        if (!owner) throw new Error(`nobody owns the partition ${partition}`);
        // In the turn in which the owner was found, as the calls of a relay: the stores are of no use after a handover.
        const admitted = storesOf(owner, partition).commands.admit(admission(commandId, { connectWithinMs: WAIT_MS }));
        // An attempt before may have been admitted, although it was not acknowledged.
        expect(['admitted', 'attached']).toContain((await admitted).kind);
        await owner.turns.recorded();
      });
  }

  async function expectCommands(process: OwnerProcess, ids: readonly string[]): Promise<void> {
    for (const partition of ownedBy(process)) {
      const found = await storesOf(process, partition).commands.get(ids.map((id) => keyFor(id)));
      expect(found.map((command) => command?.commandId)).toEqual(ids);
    }
  }

  /** The commands are there, and none was given up. */
  async function expectLive(process: OwnerProcess, ids: readonly string[]): Promise<void> {
    for (const partition of ownedBy(process)) {
      const found = await storesOf(process, partition).commands.get(ids.map((id) => keyFor(id)));
      expect(found.map((command) => [command?.commandId, command?.outcome])).toEqual(ids.map((id) => [id, null]));
    }
  }

  const fencesAt = async (place: OwnerDeployment, url: string): Promise<readonly (string | undefined)[]> => {
    const client = patient(connectCommands(url));
    await client.connect();
    const fences = await client.mget(ALL.map((partition) => place.keys.of(partition).fence));
    client.disconnect();
    return fences.map((text) => readFence(text)?.process);
  };

  it('claim and give only once the replica has the fence', async () => {
    const pair = await startPair();
    const place = deploy(TEST_MS);
    const first = await place.start('a.1', pair.url);
    const seen: Promise<unknown>[] = [];
    const see = ({ owners, id }: OwnerProcess): unknown =>
      owners.onMove((partition) => {
        if (!owners.local(partition)) return;
        const has = fencesAt(place, pair.replica.url).then((fences) => expect(fences[partition]).toBe(id));
        seen.push(has);
      });
    see(first);
    await until(() => expect(ownedBy(first)).toEqual(ALL));
    // A partition that moves on has another fence.
    await Promise.all(seen);
    const second = await started(place.start('b.1', pair.url));
    see(second);
    await until(() => expect(seen.length).toBeGreaterThan(PARTITIONS));
    await Promise.all(seen);
    expect(warnings).toEqual([]);
  });

  it('do not own a partition while they wait for the replica, and go on without one that stays behind', async () => {
    const pair = await startPair();
    const place = deploy(TEST_MS);
    pair.replica.process.kill('SIGSTOP');
    const first = await place.start('a.1', pair.url);
    await until(async () => {
      expect(warnings).toEqual([]);
      const blocked = await blockedAt(pair.master.url);
      expect({ blocked, owned: ownedBy(first) }).toEqual({ blocked: 1, owned: [] });
    });
    expect(await fencesAt(place, pair.master.url)).toContain('a.1');
    pair.replica.process.kill('SIGCONT');
    await until(() => expect(ownedBy(first)).toEqual(ALL));
    expect(warnings).toEqual([]);
    await first.die();

    pair.replica.process.kill('SIGSTOP');
    const hasty = deploy(1);
    const second = await hasty.start('b.1', pair.url);
    await until(() => expect(ownedBy(second)).toEqual(ALL));
    expect(warnings).toHaveLength(1);
  });

  it('do not accept a partition while its giver waits for the replica', async () => {
    const pair = await startPair();
    const place = deploy(TEST_MS);
    const first = await place.start('a.1', pair.url);
    await until(() => expect(ownedBy(first)).toEqual(ALL));
    place.onNote = (text) => {
      // The handover begins with this note. The replica must not have it.
      if (JSON.parse(text).kind === 'ready') pair.replica.process.kill('SIGSTOP');
    };
    const second = await started(place.start(nextAfter(first.id), pair.url));
    await until(async () => expect(await blockedAt(pair.master.url)).toBe(1));
    place.onNote = () => {};
    // After more of them the receiver would claim what it was given.
    for (let look = 0; look < 3; look++) {
      await clock.advance(LEASE_MS / 4);
      await place.answered();
    }
    expect(await blockedAt(pair.master.url)).toBeGreaterThan(0);
    expect(ownedBy(second)).toEqual([]);
    pair.replica.process.kill('SIGCONT');
    await until(() => expect(ownedBy(second).length).toBeGreaterThan(0));
    await until(() => expect([first, second].flatMap(ownedBy).sort()).toEqual(ALL));
    expect(warnings).toEqual([]);
  });

  it('do not wait again for a replica that stayed behind a moment ago', async () => {
    const pair = await startPair();
    pair.replica.process.kill('SIGSTOP');
    const connect = (): Client => patient(connectCommands(pair.master.url));
    const client = connect();
    onTestFinished(() => client.disconnect());
    await client.connect();
    const replicas = new Replicas({ client, connect, clock, log: silentLog, waitMs: 1 });
    onTestFinished(() => replicas.close());
    const waits = async (): Promise<number> =>
      Number(/cmdstat_wait:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
    const before = await waits();
    const claim = async (): Promise<void> => {
      await client.incr('fence');
      await replicas.have({ fence: 'fence', map: 'map' });
    };
    for (let i = 0; i < 3; i++) await claim();
    expect((await waits()) - before).toBe(1);
    await clock.advance(LEASE_MS);
    await claim();
    expect((await waits()) - before).toBe(2);
  });

  it('lose nothing that was acknowledged, and have one owner each, when failovers take handovers back', async () => {
    const pair = await startPair();
    const place = deploy();
    let owner = await place.start('a.0', pair.url);
    await until(() => expect(ownedBy(owner)).toEqual(ALL));
    const ids: string[] = [];
    const acknowledge = async (processes: readonly OwnerProcess[], id: string): Promise<void> => {
      ids.push(id);
      await admitAll(processes, id);
    };
    for (let round = 1; round <= FAILOVERS; round++) {
      await acknowledge([owner], `before-${round}`);
      // The replica has none of the handovers, or some of them.
      if (round % 2 === 0) await pair.part();
      const next = await started(place.start(nextAfter(owner.id), pair.url));
      if (round % 2 === 1) await pair.part();
      const both = [owner, next];
      await until(() => expect(ownedBy(next).length).toBeGreaterThan(0));
      // No handover is half done then: what its giver has forgotten and its receiver not read yet could be lost.
      place.arrives = false;
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
      await until(() => expect(both.flatMap(ownedBy).sort()).toEqual(ALL));
      await acknowledge(both, `after-${round}`);

      await pair.failOver();
      place.arrives = true;
      for (const { client } of both) await eventually(() => client.ping());
      // Each of them looks at the fences once: that must be enough, before anybody would claim from anybody.
      await clock.advance(LEASE_MS / 4);
      await eventually(async () => {
        const fences = await fencesAt(place, pair.master.url);
        for (const process of both)
          for (const partition of ownedBy(process)) expect(fences[partition]).toBe(process.id);
      });
      await until(() => expect(both.flatMap(ownedBy).sort()).toEqual(ALL));
      await acknowledge(both, `later-${round}`);
      for (const process of both) await expectCommands(process, ids);
      expect(both.flatMap(({ events }) => events).filter((event) => event.startsWith('lost'))).toEqual([]);
      await owner.die();
      await until(() => expect(ownedBy(next)).toEqual(ALL));
      await expectCommands(next, ids);
      owner = next;
    }
  });

  it.each([
    ['follows no more', (pair: RedisPair) => pair.part()],
    ['answers no WAIT', (pair: RedisPair) => pair.hold()],
  ])(
    'lose nothing when a failover takes back a handover that was not accepted yet, to a replica that %s',
    async (_, fallBehind) => {
      const pair = await startPair();
      const place = deploy(1);
      let owner = await place.start('a.0', pair.url);
      await until(() => expect(ownedBy(owner)).toEqual(ALL));
      const ids: string[] = [];
      for (let round = 1; round <= FAILOVERS; round++) {
        await fallBehind(pair);
        // The replica lacks this.
        ids.push(`lost-${round}`);
        await admitAll([owner], `lost-${round}`);
        let given: number | null = null;
        place.onNote = (text) => {
          const { kind, partition } = JSON.parse(text);
          if (kind !== 'yours') return;
          given = partition;
          // Its receiver learns nothing of it.
          place.arrives = false;
        };
        const next = await started(place.start(nextAfter(owner.id), pair.url));
        const both = [owner, next];
        await until(() => expect(given).not.toBeNull());
        await pair.failOver();
        place.onNote = () => {};
        place.arrives = true;
        for (const { client } of both) await eventually(() => client.ping());
        await until(() => expect(both.flatMap(ownedBy).sort()).toEqual(ALL));
        ids.push(`later-${round}`);
        await admitAll(both, `later-${round}`);
        for (const process of both) await expectLive(process, ids);
        expect(both.flatMap(({ events }) => events)).toEqual([]);
        await until(() => expect(ownedBy(next).length).toBeGreaterThan(0));
        await owner.die();
        await until(() => expect(ownedBy(next)).toEqual(ALL));
        await expectLive(next, ids);
        next.events.length = 0;
        owner = next;
      }
    },
  );
});

/** Gives no call up for its time, so that a slow machine changes nothing. */
function patient(client: Client): Client {
  if (!('nodes' in client))
    Object.assign(client.options, { commandTimeout: TEST_MS, socketTimeout: TEST_MS, connectTimeout: TEST_MS });
  return client;
}

/** Returns how many clients of a Redis wait for replicas. */
async function blockedAt(url: string): Promise<number> {
  const client = patient(connectCommands(url));
  await client.connect();
  const info = await client.info('clients');
  client.disconnect();
  return Number(/^blocked_clients:(\d+)/m.exec(info)?.[1]);
}

/** Returns the id of a process that should own some of the partitions beside another one. */
function nextAfter(owner: string): string {
  for (;;) {
    const id = `${randomUUID()}.1`;
    const moves = ALL.filter((partition) => shouldOwn(partition, [owner, id]) === id).length;
    if (moves > 1 && moves < PARTITIONS) return id;
  }
}
