/** Tests that what a turn decided is in its log before anything leaves, through refusals, cuts and losses of Redis. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { Snapshots } from '../../src/backends/journal/snapshot.ts';
import { RecordedState } from '../../src/backends/journal/state.ts';
import { fenceText, readFence, type Fence } from '../../src/backends/owned/fence.ts';
import { Keys } from '../../src/backends/owned/keys.ts';
import type { PartitionLog } from '../../src/backends/owned/partition-log.ts';
import { setFence } from '../../src/backends/owned/scripts.ts';
import { StreamReader } from '../../src/backends/owned/stream.ts';
import { FORGET_EVERY_MS, KEPT_MS } from '../../src/backends/owned/tail.ts';
import { Turns, type OutgoingMail } from '../../src/backends/owned/turns.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { silentLog, type Clock } from '../../src/core/ports.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import { ALICE, BOUND, admission, keyFor } from '../contract/kit/bench.ts';
import { eventually } from '../kit/patience.ts';
import { connectCommands } from '../kit/redis.ts';
import { startCuttingProxy, startTcpProxy } from '../kit/tcp-proxy.ts';

const ME = 'a.1';
const OTHER: Fence = { process: 'b.1', epoch: 2, number: 0 };

describe('the turns of a process', () => {
  let redis: Client;
  let keys: Keys;
  let late: number;
  let opened: Turns[];
  let clients: Client[];
  beforeAll(async () => {
    redis = connectCommands(inject('redisUrl'));
    await redis.connect();
  });
  afterAll(() => redis.disconnect());
  beforeEach(() => {
    keys = new Keys(randomUUID(), { partitions: 4, groups: 2, digest: 'd' });
    late = 0;
    opened = [];
    clients = [];
  });
  afterEach(() => opened.forEach((turns) => turns.close()));

  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + late };
  const fenceOf = async (partition = 0) => readFence(await redis.get(keys.of(partition).fence));

  function emptyState(room = new RecordRoom()): RecordedState {
    const { sha256 } = createCrypto('test');
    return new RecordedState({ clock: systemClock, log: silentLog, sha256, room, markSecret: 'x' });
  }

  type Owned = {
    readonly state: RecordedState;
    readonly log: PartitionLog;
    readonly room: RecordRoom;
    lost: number;
    /** Admits commands, each in a turn of its own. */
    admit(...ids: readonly string[]): Promise<void>;
  };

  async function openTurns(
    url = inject('redisUrl'),
    takeMail: () => readonly OutgoingMail[] = () => [],
    logsCost?: number,
  ) {
    const client = connectCommands(url.replace(/^http:/, 'redis:'));
    onTestFinished(() => client.disconnect());
    await client.connect();
    clients.push(client);
    const turns = new Turns({ client, keys, clock, loop: systemLoop, log: silentLog, takeMail, logsCost });
    opened.push(turns);
    return turns;
  }

  /** Claims a partition and begins to decide in it. */
  async function own(turns: Turns, partition = 0): Promise<Owned> {
    const fence = { process: ME, epoch: 1, number: 0 };
    expect(await setFence(redis, { keys: keys.of(partition), map: keys.map, found: null, next: fence })).toBe(true);
    const room = new RecordRoom();
    const state = emptyState(room);
    state.begin();
    const log = turns.open({
      ...{ partition, keys: keys.of(partition), fence, version: 'test' },
      ...{ records: state.records, room },
      onLost: () => void owned.lost++,
      writeSnapshot: () => snapshots.write(),
    });
    const snapshots = new Snapshots({
      ...{ log, room, tables: state.tables, clock: systemClock, loop: systemLoop, logger: silentLog },
      tickets: new Map(),
    });
    onTestFinished(() => snapshots.stop());
    const owned: Owned = {
      ...{ state, log, room, lost: 0 },
      async admit(...ids) {
        for (const id of ids) {
          await state.ports.commands.admit(admission(id));
          await new Promise(setImmediate);
        }
      },
    };
    state.onFirst = () => turns.wake(log);
    await state.ports.commands.rebind(ALICE, BOUND, 'up');
    return owned;
  }

  /** Puts the log back as another process does, and returns the commands that it has. */
  async function putBack(partition: number, ids: readonly string[]) {
    const state = emptyState();
    const { replay } = state;
    const reader = new StreamReader({ client: redis, keys: keys.of(partition), replay, clock, loop: systemLoop });
    await reader.catchUp();
    state.begin();
    return state.ports.commands.get(ids.map((id) => keyFor(id)));
  }

  /** Sees that the log has just what the owner has decided. */
  async function expectSame({ state, log }: Owned, ids: readonly string[]): Promise<void> {
    const found = await putBack(log.partition, ids);
    expect(found).toEqual(await state.ports.commands.get(ids.map((id) => keyFor(id))));
    expect(found.every((command) => command !== undefined)).toBe(true);
    expect(await fenceOf(log.partition)).toEqual(log.fence);
  }

  it('let nothing leave that is not recorded when the process ends, and keep nobody waiting for it', async () => {
    await using proxy = await startTcpProxy(inject('redisUrl'));
    const turns = await openTurns(proxy.url);
    const owned = await own(turns);
    await turns.recorded();
    proxy.hold();
    await owned.admit('c1');
    const left: string[] = [];
    turns.onRecord(() => left.push('the answer'), { destroy: () => left.push('its socket is closed') });
    const confirmed = turns.confirmed(owned.log);
    turns.close();
    await confirmed;
    expect(left).toEqual(['its socket is closed']);
    expect(owned.log.tail.unconfirmedChars).toBeGreaterThan(0);
  });

  it('let nothing leave before the log has it, and keep the order', async () => {
    const turns = await openTurns();
    const owned = await own(turns);
    await turns.recorded();
    const left: string[] = [];
    void owned.state.ports.commands.admit(admission('c1'));
    turns.onRecord(() => left.push('c1'));
    expect(left).toEqual([]);
    await new Promise(setImmediate);
    turns.onRecord(() => left.push('nothing new'));
    expect(left).toEqual([]);
    const seen = turns.recorded().then(() => putBack(0, ['c1']));
    expect((await seen)[0]).toMatchObject({ commandId: 'c1' });
    expect(left).toEqual(['c1', 'nothing new']);
    turns.onRecord(() => left.push('at once'));
    expect(left).toHaveLength(3);
  });

  it('append to all partitions, without waiting for answers', async () => {
    const turns = await openTurns();
    const all = await Promise.all([0, 1, 2, 3].map((partition) => own(turns, partition)));
    const ids = Array.from({ length: 30 }, (_, i) => `c${i}`);
    await Promise.all(all.map((owned) => owned.admit(...ids)));
    expect(all[0]!.log.tail.unconfirmedChars).toBeGreaterThan(0);
    await turns.recorded();
    for (const owned of all) await expectSame(owned, ids);
    expect(all.map(({ log }) => log.fence.epoch)).toEqual([1, 1, 1, 1]);
  });

  it('append nothing twice if an answer was lost', async () => {
    await using proxy = await startCuttingProxy(inject('redisUrl'));
    const turns = await openTurns(proxy.url);
    const owned = await own(turns);
    await turns.recorded();
    proxy.cutAfter('down', 0);
    await owned.admit('c1', 'c2');
    await turns.recorded();
    expect(proxy.cuts).toBe(1);
    await expectSame(owned, ['c1', 'c2']);
  });

  it('append again what did not arrive, and fence a call that may still arrive', async () => {
    await using proxy = await startCuttingProxy(inject('redisUrl'));
    const turns = await openTurns(proxy.url);
    const owned = await own(turns);
    await turns.recorded();
    proxy.cutAfter('up', 10);
    await owned.admit('c1', 'c2');
    await turns.recorded();
    expect(owned.log.fence.epoch).toBe(2);
    await expectSame(owned, ['c1', 'c2']);
  });

  it('have all that was decided while Redis was out of reach', async () => {
    await using proxy = await startTcpProxy(inject('redisUrl'));
    const turns = await openTurns(proxy.url);
    const owned = await own(turns);
    await turns.recorded();
    proxy.cut();
    const ids = Array.from({ length: 50 }, (_, i) => `c${i}`);
    await owned.admit(...ids);
    let left = false;
    turns.onRecord(() => (left = true));
    expect(await fenceOf()).toMatchObject({ epoch: 1, number: 1 });
    expect(left).toBe(false);
    proxy.mend();
    await turns.recorded();
    expect(left).toBe(true);
    await expectSame(owned, ids);
  });

  it('append again what a failover has lost, although it was confirmed', async () => {
    const turns = await openTurns();
    const owned = await own(turns);
    await owned.admit('c1', 'c2', 'c3');
    await turns.recorded();
    await loseAfter(owned.log.fence.number - 2, owned);
    expect((await putBack(0, ['c1', 'c2', 'c3'])).filter(Boolean)).toHaveLength(1);
    await owned.admit('c4');
    await turns.recorded();
    await expectSame(owned, ['c1', 'c2', 'c3', 'c4']);
    expect(owned.log.fence.epoch).toBe(2);
  });

  it('keep a partition whose next epoch they have set, although the answer was lost', async () => {
    const turns = await openTurns();
    const owned = await own(turns);
    await owned.admit('c1', 'c2');
    await turns.recorded();
    await loseAfter(owned.log.fence.number - 1, owned);
    let lost = 0;
    for (const client of clients) {
      const spy = vi.spyOn(client, 'eval');
      const call = client.eval.bind(client);
      spy.mockImplementationOnce(async (...args) => {
        await call(...args);
        lost++;
        throw new Error('the connection was cut');
      });
    }
    turns.settle();
    await eventually(() => expect(lost).toBe(1));
    await owned.admit('c3');
    await turns.recorded();
    expect([owned.lost, owned.log.fence.epoch]).toEqual([0, 3]);
    await expectSame(owned, ['c1', 'c2', 'c3']);
  });

  it('follow a failover that took their own claim back', async () => {
    const turns = await openTurns();
    const owned = await own(turns);
    await owned.admit('c1');
    await turns.recorded();
    await redis.set(keys.of(0).fence, fenceText({ ...owned.log.fence, process: 'b.1', epoch: 0 }));
    turns.settle();
    await owned.admit('c2');
    await turns.recorded();
    await expectSame(owned, ['c1', 'c2']);
  });

  it('begin a log anew with the whole state if Redis has lost more than is kept', async () => {
    const turns = await openTurns();
    const owned = await own(turns);
    await owned.admit('c1', 'c2');
    await turns.recorded();
    late += KEPT_MS + FORGET_EVERY_MS + 1;
    await owned.admit('c3');
    await turns.recorded();
    expect(owned.log.tail.after(0)).toBeNull();
    const { fence, log, map, snapshotAt } = keys.of(0);
    await redis.del(fence, log, map, snapshotAt);
    turns.settle();
    // Decided while the snapshot is written.
    await owned.admit('c4', 'c5');
    await turns.recorded();
    expect(await redis.get(snapshotAt)).not.toBeNull();
    await owned.admit('c6');
    await turns.recorded();
    await expectSame(owned, ['c1', 'c2', 'c3', 'c4', 'c5', 'c6']);
  });

  it('remove the snapshot before theirs, also if they never learned that it counts', async () => {
    const owned = await own(await openTurns());
    await owned.admit('c1');
    const { snapshotAt, snapshot } = keys.of(0);
    await redis.rpush(snapshot('unanswered'), 'x');
    await redis.set(snapshotAt, '1 unanswered');
    const pieces = owned.log.beginSnapshot();
    await pieces.append('');
    await pieces.commit();
    const [, name = ''] = ((await redis.get(snapshotAt)) ?? '').split(' ');
    expect(name).not.toBe('unanswered');
    expect([await redis.exists(snapshot(name)), await redis.exists(snapshot('unanswered'))]).toEqual([1, 0]);
  });

  it('write a snapshot of the longest log when all logs together are long', async () => {
    const turns = await openTurns(undefined, undefined, 20_000);
    const [short, long] = [await own(turns, 0), await own(turns, 1)];
    await short.admit('c1');
    for (let i = 0; i < 1000 && long.log.uncovered + short.log.uncovered < 20_000; i++) await long.admit(`d${i}`);
    await eventually(async () => expect(await redis.get(long.log.keys.snapshotAt)).not.toBeNull());
    expect(await redis.get(short.log.keys.snapshotAt)).toBeNull();
    expect(long.log.uncovered + short.log.uncovered).toBeLessThan(20_000);
    await long.admit('last');
    await turns.recorded();
    const ids = ['d0', 'd1', 'last'];
    expect(await putBack(1, ids)).toEqual(await long.state.ports.commands.get(ids.map((id) => keyFor(id))));
  });

  it('give a partition up that another process owns, with what waits for it, and go on in the others', async () => {
    const turns = await openTurns();
    const [first, second] = [await own(turns, 0), await own(turns, 2)];
    await turns.recorded();
    const found = fenceText(first.log.fence);
    const next = { ...OTHER, number: first.log.fence.number };
    expect(await setFence(redis, { keys: keys.of(0), map: keys.map, found, next })).toBe(true);
    const left: string[] = [];
    void first.state.ports.commands.admit(admission('c1'));
    turns.onRecord(() => left.push('of a partition that is lost'), { destroy: () => left.push('destroyed') });
    await eventually(() => expect(first.lost).toBe(1));
    expect(left).toEqual(['destroyed']);
    await second.admit('c2');
    await turns.recorded();
    await expectSame(second, ['c2']);
    expect(await fenceOf()).toEqual(next);
    await first.admit('c3');
    await turns.recorded();
    expect([await fenceOf(), first.lost]).toEqual([next, 1]);
  });

  it('give up all partitions under another division of users', async () => {
    const turns = await openTurns();
    const owned = await own(turns);
    await turns.recorded();
    await redis.set(keys.of(0).map, '9 1 x');
    await owned.admit('c1');
    await eventually(() => expect(owned.lost).toBe(1));
    expect(await redis.xlen(keys.of(0).log)).toBe(1);
  });

  it('refuse growth when Redis is away for long', async () => {
    await using proxy = await startTcpProxy(inject('redisUrl'));
    const turns = await openTurns(proxy.url);
    const owned = await own(turns);
    await turns.recorded();
    proxy.cut();
    const text = JSON.stringify('x'.repeat(900_000));
    for (let i = 0; !owned.room.full; i++) {
      owned.state.records.begin(0, { userId: 'alice' });
      owned.state.records.add('ticket', `${i}${text}`, 1);
      turns.flush();
      expect(i).toBeLessThan(20);
    }
    await expect(async () => owned.state.ports.commands.admit(admission('c1'))).rejects.toThrow('full');
    proxy.mend();
    await turns.recorded();
    expect(owned.room.full).toBe(false);
  });

  describe('with mail', () => {
    it('publish it when what it depends on is recorded, and again if it is not known whether it left', async () => {
      await using proxy = await startCuttingProxy(inject('redisUrl'));
      const listener = await listen();
      const outbox: OutgoingMail[] = [];
      const turns = await openTurns(proxy.url, () => outbox.splice(0));
      const owned = await own(turns);
      const post = (text: string, after: OutgoingMail['after']): void => {
        outbox.push({ process: listener.process, text, after });
        turns.plan();
      };
      await turns.recorded();
      post('free', 'all');
      await listener.until('free');
      for (const way of ['up', 'down'] as const) {
        proxy.cutAfter(way, 0);
        void owned.state.ports.commands.admit(admission(way));
        post(way, new Set([0]));
        await listener.until(way);
        expect((await putBack(0, [way]))[0]).toMatchObject({ commandId: way });
      }
      post('checked', new Set([0]));
      await listener.until('checked');
      post('lost', new Set([3]));
      await redis.set(keys.of(0).fence, fenceText({ ...OTHER, epoch: 9, number: 99 }));
      post('not ours', new Set([0]));
      await eventually(() => expect(owned.lost).toBe(1));
      post('last', 'all');
      await listener.until('last');
      expect(listener.texts).not.toContain('lost');
      expect(listener.texts).not.toContain('not ours');
    });

    it('that depends on two slot groups leaves after both', async () => {
      const listener = await listen();
      const outbox: OutgoingMail[] = [];
      const turns = await openTurns(undefined, () => outbox.splice(0));
      const both = [await own(turns, 0), await own(turns, 1)];
      await turns.recorded();
      for (const { state } of both) void state.ports.commands.admit(admission('c1'));
      outbox.push({ process: listener.process, text: 'both', after: 'all' });
      await listener.until('both');
      for (const partition of [0, 1]) expect((await putBack(partition, ['c1']))[0]).toMatchObject({ commandId: 'c1' });
    });
  });

  it('have in the logs what was decided, wherever the connection is cut', async () => {
    await using proxy = await startCuttingProxy(inject('redisUrl'));
    const turns = await openTurns(proxy.url);
    const all = [await own(turns, 0), await own(turns, 1), await own(turns, 2)];
    const ids: string[] = [];
    for (let round = 0; round < 12; round++) {
      proxy.cutAfter(round % 2 === 0 ? 'up' : 'down', round * 60);
      const more = Array.from({ length: 5 }, (_, i) => `c${round}-${i}`);
      ids.push(...more);
      await Promise.all(all.map((owned) => owned.admit(...more)));
      await turns.recorded();
    }
    expect(proxy.cuts).toBeGreaterThan(3);
    for (const owned of all) await expectSame(owned, ids);
  });

  /** Makes Redis lose the batches after this number, as a failover to a replica that was behind does. */
  async function loseAfter(number: number, { log }: Owned): Promise<void> {
    for (let lost = number + 1; lost <= log.fence.number; lost++) await redis.xdel(log.keys.log, `${lost}-0`);
    await redis.xsetid(log.keys.log, `${number}-0`);
    await redis.set(log.keys.fence, fenceText({ ...log.fence, number }));
  }

  async function listen() {
    const subscriber = connectCommands(inject('redisUrl'));
    onTestFinished(() => subscriber.disconnect());
    const process = `c.${randomUUID()}`;
    const texts: string[] = [];
    await subscriber.connect();
    await subscriber.subscribe(...[0, 1].map((group) => keys.mailOf(process, group)));
    subscriber.on('message', (_channel: string, text: string) => texts.push(text));
    return { process, texts, until: (text: string) => eventually(() => expect(texts).toContain(text)) };
  }
});
