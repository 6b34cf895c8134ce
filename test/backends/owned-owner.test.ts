/** Tests who owns a partition: claims after a death, moves, losses, and a Redis that is out of reach. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { fenceText, nodeOf, readFence } from '../../src/backends/owned/fence.ts';
import { Owners } from '../../src/backends/owned/owner.ts';
import { setFence } from '../../src/backends/owned/scripts.ts';
import type { PartitionStores } from '../../src/backends/owned/routes.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { silentLog } from '../../src/core/ports.ts';
import { ALICE, admission, keyFor } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';
import { LEASE_MS, OwnerDeployment, type OwnerProcess } from '../kit/owners.ts';
import { eventually } from '../kit/patience.ts';
import { connectCommands } from '../kit/redis.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';

const PARTITIONS = 6;
const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition);
const REDIS = inject('redisUrl');

describe('processes that own partitions', () => {
  let clock: FakeClock;
  let place: OwnerDeployment;
  let errors: string[];
  beforeEach(() => {
    clock = new FakeClock();
    errors = [];
    const log = { ...silentLog, error: (_fields: object, text: string) => void errors.push(text) };
    place = new OwnerDeployment({ clock, namespace: randomUUID(), partitions: PARTITIONS, log });
  });
  afterEach(() => place[Symbol.asyncDispose]());

  const ownedBy = ({ owners }: OwnerProcess): readonly number[] => owners.owned.map(({ number }) => number);
  const storesOf = ({ owners }: OwnerProcess, partition: number): PartitionStores => {
    const stores = owners.local(partition);
    if (!stores) throw new Error(`the partition ${partition} is not here`);
    return stores;
  };
  /** Lets time pass until what is expected is so. Time never passes while Redis has not answered what was asked before. */
  const until = (see: () => void): Promise<void> =>
    eventually(async () => {
      await clock.advance(LEASE_MS / 4);
      await place.answered();
      see();
    }, 1);
  const ownsAll = (process: OwnerProcess) => until(() => expect(ownedBy(process)).toEqual(ALL));
  /** Lets one lease pass, in looks of a process. */
  async function passLease({ client }: OwnerProcess): Promise<void> {
    for (let look = 0; look < 4; look++) {
      await clock.advance(LEASE_MS / 4);
      // A look has a few round trips.
      for (let trip = 0; trip < 4; trip++) await client.ping();
    }
  }

  /** Admits a command in each partition of a process, whose client is connected to `node`. */
  async function admitAll(process: OwnerProcess, commandId: string, node = nodeOf(process.id)): Promise<void> {
    for (const partition of ownedBy(process)) {
      const { commands, connections } = storesOf(process, partition);
      if ((await connections.get([ALICE]))[0] == null) {
        const about = { instanceId: 'i1', clientType: 'browser', host: false, metadata: null, actions: [] } as const;
        const { connection } = await connections.connect({ ...ALICE, ...about, nodeId: node });
        const { epoch } = connection;
        await commands.rebind(ALICE, { nodeId: node, instanceId: 'i1', epoch }, 'up');
      }
      expect(await commands.admit(admission(commandId))).toMatchObject({ kind: 'admitted' });
    }
    await process.turns.recorded();
  }

  async function expectCommands(processes: readonly OwnerProcess[], ids: readonly string[]): Promise<void> {
    for (const process of processes)
      for (const partition of ownedBy(process)) {
        const found = await storesOf(process, partition).commands.get(ids.map((id) => keyFor(id)));
        expect(found.map((command) => command?.commandId)).toEqual(ids);
      }
  }

  it('claim all at once if there was nobody before', async () => {
    const first = await place.start('a.1', REDIS);
    await eventually(() => expect(ownedBy(first)).toEqual(ALL));
    expect(ALL.map((partition) => first.owners.ownerOf(partition)?.process)).toEqual(ALL.map(() => 'a.1'));
    expect(first.owners.orphans).toBe(0);
  });

  it('share them when another joins: each moves with all that it has, and is never owned twice', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    await admitAll(first, 'c1');
    const second = await place.start('b.1', REDIS);
    const moved: number[] = [];
    second.owners.onMove((partition) => {
      if (!second.owners.local(partition)) return;
      moved.push(partition);
      expect(first.owners.local(partition)).toBeNull();
    });
    await until(() => expect(moved.length).toBeGreaterThan(1));
    await until(() => expect([...ownedBy(first), ...ownedBy(second)].sort()).toEqual(ALL));
    await expectCommands([first, second], ['c1']);
    await admitAll(second, 'c2');
    await expectCommands([second], ['c1', 'c2']);
    expect([...first.events, ...second.events]).toEqual([]);
    for (const partition of ownedBy(second))
      expect(first.owners.ownerOf(partition)).toEqual({ process: 'b.1', nodeId: 'b' });
  });

  it('take over from one that died, with its commands; its links are lost, and those of the living are not', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    const second = await place.start('b.1', REDIS);
    await until(() => expect(ownedBy(second).length).toBeGreaterThan(0));
    await until(() => expect([...ownedBy(first), ...ownedBy(second)].sort()).toEqual(ALL));
    const [dead = -1, living = -1] = ownedBy(first);
    for (const [partition, node] of [
      [dead, 'a'],
      [living, 'b'],
    ] as const) {
      const { commands, connections } = storesOf(first, partition);
      const about = { instanceId: 'i1', clientType: 'browser', host: false, metadata: null, actions: [] } as const;
      const { connection } = await connections.connect({ ...ALICE, ...about, nodeId: node });
      await commands.rebind(ALICE, { nodeId: node, instanceId: 'i1', epoch: connection.epoch }, 'up');
      await commands.admit(admission('c1'));
    }
    await first.turns.recorded();
    await first.die();
    // In more time the lost connections would be forgotten.
    await passLease(second);
    await eventually(() => expect(ownedBy(second)).toEqual(ALL));
    expect(second.events).toEqual(['gone a.1']);
    for (const [partition, cause] of [
      [dead, 'node_lost'],
      [living, null],
    ] as const) {
      const { commands, connections } = storesOf(second, partition);
      expect((await connections.get([ALICE]))[0]).toMatchObject({ disconnectCause: cause });
      expect((await commands.get([keyFor('c1')]))[0]).toMatchObject({
        stage: cause === null ? 'queued' : 'admitted',
        nodeId: cause === null ? 'b' : null,
      });
    }
  });

  it('tell the links of a node from those of the process that had its name before', async () => {
    const owner = await place.start('a.1', REDIS);
    await ownsAll(owner);
    const before = await place.start('web.1', REDIS, false);
    const link = async (of: OwnerProcess, userId: string) => {
      const about = { instanceId: 'i1', clientType: 'browser', host: false, metadata: null, actions: [] } as const;
      const client = { userId, clientId: 'tab' };
      const { connection } = await storesOf(of, 0).connections.connect({ ...client, ...about, nodeId: 'web' });
      return connection.epoch;
    };
    const causeOf = async (of: OwnerProcess, userId: string) =>
      (await storesOf(of, 0).connections.get([{ userId, clientId: 'tab' }]))[0]?.disconnectCause;
    await link(owner, 'alice');
    await before.die();
    await place.start('web.2', REDIS, false);
    expect(await causeOf(owner, 'alice')).toBe('node_lost');
    await link(owner, 'bob');
    await owner.turns.recorded();
    const next = await place.start('b.1', REDIS);
    await owner.die();
    // It claims after one and a half. In much more time the lost connections would be forgotten.
    for (let leases = 0; leases < 2; leases++) await passLease(next);
    await eventually(() => expect(ownedBy(next)).toEqual(ALL));
    expect(await causeOf(next, 'bob')).toBeNull();
  });

  it('claim nothing from one that was only silent for less than its lease', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    const second = await place.start('b.1', REDIS);
    place.arrives = false;
    for (let i = 0; i < 12; i++) await until(() => {});
    expect(ownedBy(second)).toEqual([]);
    expect(ownedBy(first)).toEqual(ALL);
  });

  it('that were stopped while others took over lose what waits, and answer nothing of it', async () => {
    await using proxy = await startTcpProxy(REDIS);
    const first = await place.start('a.1', proxy.url);
    await ownsAll(first);
    await admitAll(first, 'c1');
    const second = await place.start('b.1', REDIS);
    place.arrives = false;
    proxy.cut();
    const left: string[] = [];
    void storesOf(first, 0).commands.admit(admission('c2'));
    first.turns.onRecord(() => left.push('answer'), { destroy: () => left.push('destroyed') });
    const redis = connectCommands(REDIS);
    await redis.connect();
    for (const group of [0, 1]) await redis.del(place.keys.ofGroup(group).live('a.1'));
    redis.disconnect();
    await ownsAll(second);
    await expectCommands([second], ['c1']);
    await until(() => expect(left).toEqual(['destroyed']));
    expect(first.owners.local(0)).toBeNull();
    proxy.mend();
    await until(() => expect(first.events.filter((event) => event.startsWith('lost'))).toHaveLength(PARTITIONS));
    expect(left).toEqual(['destroyed']);
    expect((await storesOf(second, 0).commands.get([keyFor('c2')]))[0]).toBeNull();
    // Its links are to be looked at: what the others had noticed by then, and what they notice later.
    await until(() => expect(first.revivals).toHaveLength(2));
    await passLease(first);
    expect([first.revivals.length, second.revivals.length]).toEqual([2, 0]);
  });

  it('go on with all that they decided when Redis was out of reach and nobody else took over', async () => {
    await using proxy = await startTcpProxy(REDIS);
    const first = await place.start('a.1', proxy.url);
    await ownsAll(first);
    await admitAll(first, 'c1');
    const stores = storesOf(first, 0);
    proxy.cut();
    void stores.commands.admit(admission('c2'));
    await until(() => expect(first.owners.local(0)).toBeNull());
    proxy.mend();
    await until(() => expect(first.owners.local(0)).toBe(stores));
    await first.turns.recorded();
    await first.die();
    const second = await place.start('b.1', REDIS);
    await ownsAll(second);
    expect((await storesOf(second, 0).commands.get([keyFor('c2')]))[0]).toMatchObject({ commandId: 'c2' });
    expect(first.events).toEqual([]);
  });

  it('that end give what they own to the others, and without others leave it to whoever comes', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    await admitAll(first, 'c1');
    const second = await place.start('b.1', REDIS);
    await until(() => expect(first.owners.alive.size).toBe(2));
    await first.owners.close();
    await until(() => expect(ownedBy(second)).toEqual(ALL));
    await second.owners.close();
    const third = await place.start('c.1', REDIS);
    await eventually(() => expect(ownedBy(third)).toEqual(ALL));
    await expectCommands([third], ['c1']);
  });

  it('do not renew the lease of a process that starts, whatever they say to it before it has looked for an earlier one', async () => {
    await ownsAll(await place.start('a.1', REDIS));
    const { start } = Owners.prototype;
    const hand = connectCommands(REDIS);
    await hand.connect();
    onTestFinished(() => {
      vi.restoreAllMocks();
      hand.disconnect();
    });
    vi.spyOn(Owners.prototype, 'start').mockImplementation(async function (this: Owners) {
      this.receive('a.1', JSON.stringify({ kind: 'owns', partition: 0 }));
      // A renewal has a few round trips.
      for (let trip = 0; trip < 8; trip++) await hand.ping();
      expect(await hand.exists(place.keys.ofGroup(0).live('b.1'))).toBe(0);
      return start.call(this);
    });
    const second = await place.start('b.1', REDIS);
    await until(() => expect(second.owners.alive.size).toBe(2));
  });

  describe('after Redis has lost what it had', () => {
    let redis: Client;
    beforeEach(async () => {
      redis = connectCommands(REDIS);
      await redis.connect();
    });
    afterEach(() => redis.disconnect());

    /** Starts two processes that share the partitions, the first one over this address. No partition moves afterwards. */
    async function startTwo(url: string): Promise<readonly [OwnerProcess, OwnerProcess]> {
      const first = await place.start('a.1', url);
      await ownsAll(first);
      await admitAll(first, 'c1');
      const second = await place.start('b.1', REDIS);
      // What moves began with a note that has arrived.
      place.arrives = false;
      for (let i = 0; i < 8; i++) await until(() => expect(second.owners.alive.size).toBe(2));
      return [first, second];
    }

    async function loseAll(): Promise<void> {
      const keys = ALL.map((partition) => place.keys.of(partition));
      const groups = [0, 1].map((group) => place.keys.ofGroup(group));
      const leases = groups.flatMap(({ live, map, processes }) => [live('a.1'), live('b.1'), map, processes]);
      await redis.del(...keys.flatMap(({ fence, log, snapshotAt }) => [fence, log, snapshotAt]), ...leases);
    }

    it('nobody counts as dead, and the owner writes all of it again, however late', async () => {
      await using proxy = await startTcpProxy(REDIS);
      const [first, second] = await startTwo(proxy.url);
      const [ofFirst, ofSecond] = [ownedBy(first), ownedBy(second)];
      expect(ofFirst.length).toBeGreaterThan(0);
      proxy.hold();
      await loseAll();
      for (let look = 0; look < 3; look++) {
        await clock.advance(LEASE_MS / 4);
        // A look that is still in progress when the next one is due takes its place.
        await eventually(async () => {
          await clock.advance(1);
          expect(await redis.exists(place.keys.ofGroup(0).live('b.1'))).toBe(1);
        });
        // A look has a few round trips.
        for (let trip = 0; trip < 4; trip++) await second.client.ping();
      }
      expect(ofFirst.map((partition) => second.owners.ownerOf(partition)?.process)).toEqual(ofFirst.map(() => 'a.1'));
      expect(ownedBy(second)).toEqual(ofSecond);
      proxy.release();
      await until(() => expect(first.owners.alive.size).toBe(2));
      for (const process of [first, second]) await admitAll(process, 'c2');
      await first.die();
      await ownsAll(second);
      await expectCommands([second], ['c1', 'c2']);
      expect([...first.events, ...second.events]).toEqual(['gone a.1']);
    });

    /** Lets Redis have of a partition what it had at this fence. */
    async function forgetAfter(partition: number, fence: string): Promise<void> {
      const keys = place.keys.of(partition);
      const last = `${readFence(fence)?.number}-0`;
      const lost = await redis.xrange(keys.log, `(${last}`, '+');
      if (lost.length > 0) await redis.xdel(keys.log, ...lost.map(([id]) => id));
      await redis.call('XSETID', keys.log, last);
      await redis.set(keys.fence, fence);
    }
    const fenceOf = async (partition: number): Promise<string> =>
      (await redis.get(place.keys.of(partition).fence)) ?? '';

    it.each([
      ['the handover', 'c2', 'a.1'],
      ['the handover, and acts before it', 'c1', 'a.1'],
      ['the handover, acts before it, and the claim of its giver', 'c1', 'dead.1'],
    ])('%s is taken back, if the next owner had not begun', async (_, known, ownedBefore) => {
      const [first, second] = await startTwo(REDIS);
      const [partition] = first.owners.owned;
      if (!partition) throw new Error('nothing is owned');
      const before = await fenceOf(partition.number);
      await admitAll(first, 'c2');
      const kept = known === 'c1' ? before : await fenceOf(partition.number);
      expect(await partition.give('b.1')).toBe(true);
      const given = readFence(await fenceOf(partition.number));
      expect(given?.process).toBe('b.1');
      await until(() => expect(second.owners.ownerOf(partition.number)?.process).toBe('b.1'));
      const { epoch = 0, number = 0 } = readFence(kept) ?? {};
      const claimed = ownedBefore === 'a.1' ? 0 : 1;
      await forgetAfter(partition.number, fenceText({ process: ownedBefore, epoch: epoch - claimed, number }));
      await until(() => expect(ownedBy(first)).toContain(partition.number));
      await first.turns.recorded();
      await expectCommands([first], ['c1', 'c2']);
      // Nobody who had seen the handover takes it for a loss.
      expect(readFence(await fenceOf(partition.number))?.epoch).toBeGreaterThan(given?.epoch ?? 0);
      await admitAll(first, 'c3');
      await first.die();
      await ownsAll(second);
      const found = await storesOf(second, partition.number).commands.get(['c1', 'c2', 'c3'].map((id) => keyFor(id)));
      expect(found.map((command) => command?.outcome)).toEqual([null, null, null]);
      expect(second.events).toEqual(['gone a.1']);
    });

    it('a partition that was to be given away stays, with what Redis has lost', async () => {
      const [first, second] = await startTwo(REDIS);
      const [partition] = first.owners.owned;
      if (!partition) throw new Error('nothing is owned');
      const kept = await fenceOf(partition.number);
      await admitAll(first, 'c2');
      await forgetAfter(partition.number, kept);
      expect(await partition.give('b.1')).toBe(false);
      expect(ownedBy(first)).toContain(partition.number);
      const { number } = partition.log?.fence ?? {};
      await eventually(async () => expect(readFence(await fenceOf(partition.number))?.number).toBe(number));
      await first.die();
      await ownsAll(second);
      const found = await storesOf(second, partition.number).commands.get(['c1', 'c2'].map((id) => keyFor(id)));
      expect(found.map((command) => command?.outcome)).toEqual([null, null]);
    });

    it('with its owner, what had not ended ends as unknown, and all processes are told', async () => {
      const [first, second] = await startTwo(REDIS);
      const [cut = -1, whole = -1] = ownedBy(first);
      const kept = await fenceOf(cut);
      await admitAll(first, 'c2');
      place.arrives = true;
      const third = await place.start('c.1', REDIS, false);
      place.arrives = false;
      await until(() => expect(second.owners.alive.size).toBe(3));
      await first.die();
      place.arrives = true;
      await forgetAfter(cut, kept);
      await ownsAll(second);
      await until(() => expect(third.events).toContain(`forgotten ${cut}`));
      expect(second.events).toEqual(['gone a.1', `forgotten ${cut}`]);
      const { commands } = storesOf(second, cut);
      expect(await commands.get([keyFor('c1'), keyFor('c2')])).toMatchObject([
        { outcome: 'outcome_unknown', error: { code: 'store_lost' } },
        null,
      ]);
      const rest = storesOf(second, whole).commands;
      expect(await rest.get([keyFor('c1'), keyFor('c2')])).toMatchObject([{ outcome: null }, { outcome: null }]);
    });
  });

  it('tell the next owner of a handover again, if it has not heard of it', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    const second = await place.start('b.1', REDIS, false);
    const [partition] = first.owners.owned;
    expect(await partition?.give('b.1')).toBe(true);
    await clock.advance(LEASE_MS / 4);
    await eventually(() => expect(ownedBy(second)).toEqual([0]));
    await eventually(() => expect(partition?.givenTo).toBeNull());
  });

  it('keep nothing of what they gave away once the fence shows that the next owner decides', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    await place.start('b.1', REDIS, false);
    place.onNote = (text) => {
      // Its note about that is lost.
      if (JSON.parse(text).kind === 'owns') place.arrives = false;
    };
    const [partition] = first.owners.owned;
    expect(await partition?.give('b.1')).toBe(true);
    await until(() => expect(place.arrives).toBe(false));
    await until(() => expect(partition?.givenTo).toBeNull());
  });

  it('give no partition away whose log Redis has not whole when they end', async () => {
    await using proxy = await startTcpProxy(REDIS);
    const first = await place.start('a.1', proxy.url);
    await ownsAll(first);
    const [partition] = first.owners.owned;
    if (!partition) throw new Error('nothing is owned');
    proxy.hold();
    await storesOf(first, partition.number).commands.admit(admission('c1', { connectWithinMs: 60_000 }));
    const given = partition.give('b.1');
    first.turns.close();
    proxy.release();
    expect(await given).toBe(false);
    expect(readFence(await first.client.get(place.keys.of(partition.number).fence))?.process).toBe('a.1');
  });

  it('use nothing of a log that they followed if Redis has lost a part of it and another process went on', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    await admitAll(first, 'c1');
    const second = await place.start('b.1', REDIS, false);
    await until(() => expect(first.owners.alive.size).toBe(2));
    await first.turns.recorded();
    await admitAll(first, 'lost');
    let isReady = false;
    place.onNote = (text) => void (isReady ||= text.includes('ready'));
    second.owners.receive('a.1', JSON.stringify({ kind: 'follow', partition: 0 }));
    await eventually(() => expect(isReady).toBe(true));
    await first.die();
    const redis = connectCommands(REDIS);
    await redis.connect();
    // Its looks show nothing of what follows, as if it were slow.
    const fences = new Map<string, string | null>();
    for (const partition of ALL) {
      const { fence } = place.keys.of(partition);
      fences.set(fence, await redis.get(fence));
    }
    vi.spyOn(second.client, 'mget').mockImplementation(async (names) =>
      [names].flat().map((name) => fences.get(String(name)) ?? null),
    );
    const { fence, log, map } = place.keys.of(0);
    const found = readFence(await redis.get(fence));
    if (!found) throw new Error('no fence');
    await redis.xdel(log, `${found.number}-0`);
    await redis.xsetid(log, `${found.number - 1}-0`);
    await redis.set(fence, fenceText({ ...found, number: found.number - 1 }));
    const third = await place.start('c.1', REDIS);
    await ownsAll(third);
    await storesOf(third, 0).commands.admit(admission('c2', { connectWithinMs: 60_000 }));
    await third.turns.recorded();
    const ids = ['c1', 'lost', 'c2'].map((id) => keyFor(id));
    const expected = (await storesOf(third, 0).commands.get(ids)).map((command) => command?.commandId);
    expect(expected).toEqual(['c1', undefined, 'c2']);
    expect((await redis.xlen(log)) >= found.number).toBe(true);
    const text = await redis.get(fence);
    const last = readFence(text);
    if (!last) throw new Error('no fence');
    const next = { ...last, process: 'b.1', epoch: last.epoch + 1 };
    expect(await setFence(redis, { keys: { fence, map }, map: place.keys.map, found: text, next })).toBe(true);
    redis.disconnect();
    second.owners.receive('c.1', JSON.stringify({ kind: 'yours', partition: 0 }));
    await eventually(() => expect(ownedBy(second)).toEqual([0]));
    const seen = (await storesOf(second, 0).commands.get(ids)).map((command) => command?.commandId);
    expect(seen).toEqual(expected);
  });

  /** Gives a partition to a process as if another one had claimed it and handed it over, without a word. */
  async function giveUnseen(partition: number, to: string): Promise<void> {
    const { fence, map } = place.keys.of(partition);
    const redis = connectCommands(REDIS.replace(/^http:/, 'redis:'));
    await redis.connect();
    const found = await redis.get(fence);
    const last = readFence(found);
    if (!last) throw new Error('no fence');
    const next = { ...last, process: to, epoch: last.epoch + 1 };
    expect(await setFence(redis, { keys: { fence, map }, map: place.keys.map, found, next })).toBe(true);
    redis.disconnect();
  }

  it('let nothing leave that was read before a renewal which shows that another owns the partition', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    await giveUnseen(0, 'b.1');
    // The lease runs out before it is renewed, so another process could claim.
    clock.stall(2 * LEASE_MS);
    let hasLeft = false;
    let isDestroyed = false;
    first.owners.whileOwner(() => (hasLeft = true), { destroy: () => (isDestroyed = true) });
    expect(hasLeft).toBe(false);
    await until(() => expect(first.events).toEqual(['lost 0']));
    await until(() => expect(isDestroyed).toBe(true));
    expect(hasLeft).toBe(false);
    first.owners.whileOwner(() => (hasLeft = true));
    await until(() => expect(hasLeft).toBe(true));
  });

  it('answer nothing while renewals show another owner, until they know what they have lost', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    const settle = vi.spyOn(first.turns, 'settle').mockImplementation(() => undefined);
    await giveUnseen(0, 'b.1');
    await passLease(first);
    let hasLeft = false;
    first.owners.whileOwner(() => (hasLeft = true));
    expect([first.owners.mayAnswer, hasLeft]).toEqual([false, false]);
    settle.mockRestore();
    await until(() => expect(first.events).toEqual(['lost 0']));
    await until(() => expect(first.owners.mayAnswer).toBe(true));
  });

  it('renew their leases beside one of another form, whose process counts as alive and owns nothing', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    const { processes, live } = place.keys.ofGroup(0);
    await first.client.sadd(processes, 'x.1');
    await first.client.set(live('x.1'), 'not a lease');
    await until(() => expect(first.owners.isAlive('x.1')).toBe(true));
    expect(ownedBy(first)).toEqual(ALL);
    let hasLeft = false;
    first.owners.whileOwner(() => (hasLeft = true));
    await until(() => expect(hasLeft).toBe(true));
  });

  it('do not say that they are ready for a partition in which they still decide', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    const notes: string[] = [];
    place.onNote = (text) => notes.push(text);
    await giveUnseen(0, 'b.1');
    const ask = (): void => first.owners.receive('b.1', JSON.stringify({ kind: 'follow', partition: 0 }));
    ask();
    await eventually(() => expect(first.events).toEqual(['lost 0']));
    const ready = JSON.stringify({ kind: 'ready', partition: 0 });
    expect(notes).not.toContain(ready);
    ask();
    await eventually(() => expect(notes).toContain(ready));
  });

  it('serve the other partitions if the log of one cannot be put back', async () => {
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    await admitAll(first, 'c1');
    await admitAll(first, 'c2');
    await first.die();
    const redis = connectCommands(REDIS);
    await redis.connect();
    await redis.xdel(place.keys.of(2).log, '1-0');
    redis.disconnect();
    const second = await place.start('b.1', REDIS);
    await until(() => expect(ownedBy(second)).toEqual(ALL.filter((partition) => partition !== 2)));
    expect(errors).toContain('a partition cannot be taken over');
    expect(second.owners.local(2)).toBeNull();
  });
});
