/** Tests the log of a partition in Redis: what a fence lets through, who may claim, and what can be put back. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { FactLog } from '../../src/backends/journal/log.ts';
import { RecordRoom } from '../../src/backends/journal/room.ts';
import { NO_USER, headOf } from '../../src/backends/journal/records.ts';
import { Snapshots } from '../../src/backends/journal/snapshot.ts';
import { RecordedState } from '../../src/backends/journal/state.ts';
import { fenceText, judge, nodeOf, processIdOf, readFence, type Fence } from '../../src/backends/owned/fence.ts';
import { Keys } from '../../src/backends/owned/keys.ts';
import { commitSnapshot, runTurn, setFence, type Append, type TurnCall } from '../../src/backends/owned/scripts.ts';
import { NO_SNAPSHOT, STREAM_FORMAT, StreamReader, writePieces } from '../../src/backends/owned/stream.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import { ALICE, BOUND, admission, keyFor } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';
import { connectCommands } from '../kit/redis.ts';

const ME: Fence = { process: 'a.1', epoch: 1, number: 0 };
const OTHER: Fence = { process: 'b.1', epoch: 2, number: 0 };
const HEADER = { format: STREAM_FORMAT, version: 'test', boot: null, sync: 'always' } as const;

describe('a fence', () => {
  it('is read as it was written, and refuses what is none', () => {
    expect(readFence(fenceText({ ...ME, number: 7 }))).toEqual({ ...ME, number: 7 });
    expect(readFence(null)).toBeNull();
    expect(() => readFence('a 1')).toThrow('no fence');
  });

  it.each<[string, Fence | null, string]>([
    ['the last batch', { process: 'a.1', epoch: 3, number: 9 }, 'whole'],
    ['a lower number', { process: 'a.1', epoch: 3, number: 8 }, 'behind 8'],
    ['a lower epoch, which takes a claim back', { process: 'a.1', epoch: 2, number: 9 }, 'behind 9'],
    ['the owner before the claim', { process: 'b.1', epoch: 2, number: 5 }, 'behind 5'],
    ['the owner before, who has appended since', { process: 'b.1', epoch: 2, number: 10 }, 'lost'],
    ['nothing', null, 'behind 0'],
    ['another owner', { process: 'b.1', epoch: 4, number: 9 }, 'lost'],
    ['another owner of this epoch', { process: 'b.1', epoch: 3, number: 9 }, 'lost'],
  ])('that names %s', (_name, found, expected) => {
    const judged = judge(found, { process: 'a.1', epoch: 3, number: 9 });
    expect(judged.kind === 'behind' ? `behind ${judged.number}` : judged.kind).toBe(expected);
  });

  it('has the id of a process, with the name of its node', () => {
    expect(nodeOf(processIdOf('relay.eu', 'x1'))).toBe('relay.eu');
  });
});

describe('the log of a partition', () => {
  let client: Client;
  let keys: Keys;
  beforeAll(async () => {
    client = connectCommands(inject('redisUrl'));
    await client.connect();
  });
  afterAll(() => client.disconnect());
  beforeEach(() => {
    keys = new Keys(randomUUID(), { partitions: 2, groups: 1, digest: 'd' });
  });

  const at = (partition = 0) => keys.of(partition);
  const fenceOf = async (partition = 0) => readFence(await client.get(at(partition).fence));
  const claim = (next: Fence, found: Fence | null = null, partition = 0) =>
    setFence(client, { keys: at(partition), map: keys.map, found: found && fenceText(found), next });
  const appendOf = (before: Fence, text: string, partition = 0): Append => {
    const number = before.number + 1;
    return { keys: at(partition), before: fenceText(before), after: fenceText({ ...before, number }), number, text };
  };
  const call = (appends: readonly Append[], over: Partial<TurnCall> = {}): TurnCall => ({
    ...{ mapKey: at().map, map: keys.map, appends, checks: [], mail: [] },
    ...over,
  });
  const append = (appends: readonly Append[], over: Partial<TurnCall> = {}) =>
    runTurn(client, call(appends, over), 'text');

  it('appends to all logs of a turn, or to none if one fence differs', async () => {
    for (const partition of [0, 1]) expect(await claim(ME, null, partition)).toBe(true);
    expect(await append([appendOf(ME, 'x'), appendOf(ME, 'y', 1)])).toBe(true);
    expect([await fenceOf(), await fenceOf(1)]).toEqual([
      { ...ME, number: 1 },
      { ...ME, number: 1 },
    ]);
    expect(await append([appendOf({ ...ME, number: 1 }, 'z'), appendOf(ME, 'z', 1)])).toBe(false);
    expect([await client.xlen(at().log), await client.xlen(at(1).log), (await fenceOf())?.number]).toEqual([1, 1, 1]);
    expect(await runTurn(client, call([appendOf({ ...ME, number: 1 }, 'z')]), 'sha')).toBe(true);
  });

  it('appends nothing under another division of users, or if mail depends on a partition that is lost', async () => {
    await claim(ME);
    await claim(OTHER, null, 1);
    expect(await append([appendOf(ME, 'x')], { map: '3 1 d' })).toBe(false);
    const checked = (fence: Fence) => [{ key: at(1).fence, fence: fenceText(fence) }];
    expect(await append([appendOf(ME, 'x')], { checks: checked(ME) })).toBe(false);
    expect(await fenceOf()).toEqual(ME);
    expect(await append([appendOf(ME, 'x')], { checks: checked(OTHER) })).toBe(true);
  });

  it('publishes what depends on a turn only if the turn is appended', async () => {
    await using listener = await listen(`mail:${at().log}`);
    await claim(ME);
    const mail = (text: string) => ({ mail: [`mail:${at().log}`, text] });
    await append([appendOf({ ...ME, number: 5 }, 'x')], mail('refused'));
    await append([appendOf(ME, 'x')], mail('appended'));
    expect(await listener.next()).toBe('appended');
  });

  it('goes to one of two that claim at once, and to none while the owner lives', async () => {
    await claim(ME);
    const race = [OTHER, { ...OTHER, process: 'c.1' }].map((next) => claim(next, ME));
    expect((await Promise.all(race)).filter(Boolean)).toHaveLength(1);
    const owner = await fenceOf();
    if (!owner) throw new Error('no owner');
    const { live } = at();
    const take = () =>
      setFence(client, {
        ...{ keys: at(), map: keys.map, found: fenceText(owner), next: { ...ME, epoch: 3 } },
        ...{ alive: [live(ME.process)], dead: [live(owner.process)] },
      });
    await client.set(live(owner.process), '1');
    await client.set(live(ME.process), '1');
    expect(await take()).toBe(false);
    await client.del(live(owner.process), live(ME.process));
    // Whoever claims must be alive.
    expect(await take()).toBe(false);
    await client.set(live(ME.process), '1');
    expect(await take()).toBe(true);
    expect(await append([appendOf(owner, 'of an owner that was stopped')])).toBe(false);
  });

  it('is put back by another process: a snapshot, and what follows it', async () => {
    const { state, flush } = await owner();
    await state.ports.commands.admit(admission('c1'));
    await flush();
    await snapshot(state, '1', 1);
    await state.ports.commands.admit(admission('c2'));
    await flush();
    const [found, reader] = await read();
    expect(await found.ports.commands.get([keyFor('c1'), keyFor('c2')])).toEqual(
      await state.ports.commands.get([keyFor('c1'), keyFor('c2')]),
    );
    expect([reader.number, reader.snapshot, await client.xlen(at().log)]).toEqual([2, '1', 1]);
  });

  it('is put back once, although it is asked for again meanwhile', async () => {
    const { state, flush } = await owner();
    const ids = ['c1', 'c2', 'c3'];
    for (const id of ids) {
      await state.ports.commands.admit(admission(id));
      await flush();
    }
    const other = open();
    let now = 0;
    // Each record is a slice of its own, so that the calls take turns.
    const clock = { monotonic: () => (now += 1_000) };
    const reader = new StreamReader({ client, keys: at(), replay: other.replay, clock, loop: systemLoop });
    await Promise.all([reader.catchUp(), reader.catchUp(), reader.catchUp()]);
    other.begin();
    expect(reader.number).toBe(3);
    const once = open();
    const plain = { client, keys: at(), replay: once.replay, clock: systemClock, loop: systemLoop };
    await new StreamReader(plain).catchUp();
    expect(other.replay.acts).toBe(once.replay.acts);
    const keysOf = ids.map((id) => keyFor(id));
    expect(await other.ports.commands.get(keysOf)).toEqual(await state.ports.commands.get(keysOf));
  });

  it('ignores a snapshot that is half written, and one of a process that is no longer the owner', async () => {
    const { state, flush } = await owner();
    await state.ports.commands.admit(admission('c1'));
    await flush();
    await client.rpush(at().snapshot('1'), headOf(HEADER, 1));
    expect((await read())[1].snapshot).toBe(NO_SNAPSHOT);
    // Its number alone would let the snapshot count.
    await claim({ ...OTHER, number: 1 }, { ...ME, number: 1 });
    await expect(snapshot(state, '1', 1)).rejects.toThrow('has another owner');
    expect((await read())[1]).toMatchObject({ number: 1, snapshot: NO_SNAPSHOT });
  });

  it('keeps its snapshot if Redis has lost batches that a new one would replace', async () => {
    const { flush } = await owner();
    await flush();
    await claim({ ...ME, epoch: 2 }, { ...ME, number: 1 });
    await client.rpush(at().snapshot('s'), headOf(HEADER, 1));
    await client.expire(at().snapshot('s'), 600);
    const commit = { keys: at(), owner: { ...ME, epoch: 2 }, name: 's', number: 1, replaces: NO_SNAPSHOT };
    await expect(commitSnapshot(client, commit)).rejects.toThrow('batches are lost');
    expect(await client.get(at().snapshotAt)).toBeNull();
  });

  it('is refused if a batch is missing, if a snapshot that counts has no end, and in another form', async () => {
    const { state, flush } = await owner();
    for (const id of ['c1', 'c2', 'c3']) {
      await state.ports.commands.admit(admission(id));
      await flush();
    }
    await client.xdel(at().log, '2-0');
    await expect(read()).rejects.toThrow('the batch 2 is missing before 3');
    await client.rpush(at().snapshot('s'), headOf(HEADER, 1));
    await client.expire(at().snapshot('s'), 600);
    await commitSnapshot(client, { ...{ keys: at(), owner: ME, name: 's', number: 3, replaces: NO_SNAPSHOT } });
    await expect(read()).rejects.toThrow('not whole');
    await client.del(at().snapshotAt);
    await append([appendOf({ ...ME, number: 3 }, headOf({ ...HEADER, format: 99 }, 1))]);
    await client.set(at().snapshotAt, `3 ${NO_SNAPSHOT}`);
    await expect(read()).rejects.toThrow('its form is 99');
  });

  function open(): RecordedState {
    const { sha256 } = createCrypto('test');
    const clock = new FakeClock();
    return new RecordedState({ clock, log: silentLog, sha256, room: new RecordRoom(), markSecret: 'x' });
  }

  /** A process that owns the partition, with a client that is connected. */
  async function owner() {
    await claim(ME);
    const state = open();
    state.begin();
    state.records.begin(0, NO_USER);
    state.records.add('begin', HEADER);
    await state.ports.commands.rebind(ALICE, BOUND, 'up');
    let number = 0;
    const flush = async (): Promise<void> => {
      expect(await append([appendOf({ ...ME, number: number++ }, state.records.take())])).toBe(true);
    };
    return { state, flush };
  }

  /** Writes a snapshot of a state as the relay does. */
  async function snapshot({ records, tables }: RecordedState, name: string, number: number): Promise<void> {
    const commit = { keys: at(), owner: ME, name, number, replaces: NO_SNAPSHOT };
    const failures: unknown[] = [];
    const log: FactLog = {
      full: false,
      crowded: false,
      beginSnapshot() {
        records.beginFile();
        records.begin(0, NO_USER);
        records.add('begin', HEADER);
        const pieces = writePieces({ client, key: at().snapshot(name), header: HEADER, at: 0 });
        return { ...pieces, commit: () => commitSnapshot(client, commit) };
      },
    };
    const snapshots = new Snapshots({
      ...{ log, room: new RecordRoom(), tables, clock: systemClock, loop: systemLoop, tickets: new Map() },
      logger: { ...silentLog, warn: ({ err }) => void failures.push(err) },
    });
    await snapshots.write();
    snapshots.stop();
    if (failures.length > 0) throw failures[0];
  }

  async function read(): Promise<readonly [RecordedState, StreamReader]> {
    const state = open();
    const reader = new StreamReader({ client, keys: at(), replay: state.replay, clock: systemClock, loop: systemLoop });
    await reader.catchUp();
    state.begin();
    return [state, reader];
  }

  async function listen(channel: string) {
    const subscriber = connectCommands(inject('redisUrl'));
    await subscriber.connect();
    await subscriber.subscribe(channel);
    const first = Promise.withResolvers<string>();
    subscriber.on('message', (_channel: string, text: string) => first.resolve(text));
    return { next: () => first.promise, [Symbol.asyncDispose]: async () => subscriber.disconnect() };
  }
});
