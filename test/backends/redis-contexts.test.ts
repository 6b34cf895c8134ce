/** Tests contexts over Redis, seen from two processes. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KINDS } from '../../src/backends/redis/keys.ts';
import { connectionStatus } from '../../src/core/connections/connection.ts';
import { FORGET_MS, STALE_MS } from '../../src/core/limits.ts';
import { admission, keyFor } from '../contract/kit/bench.ts';
import { hello } from '../contract/kit/connections-model.ts';
import {
  ANY_CONTEXT,
  ANY_WINDOW,
  browserWindow,
  context,
  contextIds,
  report,
  snapshot,
  windowIds,
  worker,
} from '../contract/kit/contexts-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { keysOf, setLeaseEnd, runRaw, countRoundTrips } from './kit/redis-raw.ts';

const TAB = { userId: 'alice', clientId: 'tab' };
const PAGE = { first: 1000, after: null };

describe('contexts over Redis', () => {
  let one: RedisBench;
  let two: RedisBench;
  beforeEach(async () => {
    one = await redisBench();
    two = await redisBench({ beside: one });
  });
  afterEach(async () => {
    await two.close();
    await one.close();
  });
  const all = report(
    snapshot(context('c'), worker('w', { windowId: 'v', taskId: 'a|b' })),
    snapshot(browserWindow('v')),
  );

  /** Connects a client that knows places. It reports one context that leaves, and then the others. */
  const join = async (userId: string) => {
    const { connection } = await one.backend.connections.connect(hello(userId, 'tab', { places: true }));
    await one.backend.contexts.report(connection, connection.epoch, report(snapshot(context('old'))));
    await one.backend.contexts.report(connection, connection.epoch, all);
    return connection;
  };

  it('are visible from another process, with the state of a link that only the first one has', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    expect(await one.backend.contexts.report(TAB, connection.epoch, all)).toBe('taken');
    expect(await contextIds(two)).toEqual(['alice/tab/c', 'alice/tab/w']);
    expect((await two.backend.contexts.windowsNamed('alice', 'v'))[0]).toMatchObject({
      window: { linkLost: false },
      live: { workers: 1, idle: 0, busy: 1 },
    });
    await one.advance(STALE_MS);
    expect(await contextIds(two, { statuses: ['stale'] })).toEqual(['alice/tab/c', 'alice/tab/w']);
    await two.backend.connections.connect(hello('alice', 'tab', { instanceId: 'i2', nodeId: 'n2' }));
    expect([await contextIds(one), await windowIds(one)]).toEqual([[], []]);
    expect(await one.backend.contexts.report(TAB, connection.epoch, all)).toBe('fenced');
  });

  it('give the same answer when a report is sent again because its answer was lost', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    const say = (given: typeof all) => one.backend.contexts.report(TAB, connection.epoch, given);
    await say(all);
    const delta = {
      contexts: { snapshot: false, set: [worker('x', { windowId: 'v' })], removed: ['w'] },
      windows: null,
    };
    for (let i = 0; i < 3; i++) expect(await say(delta)).toBe('taken');
    expect(await contextIds(two)).toEqual(['alice/tab/c', 'alice/tab/x']);
    expect((await two.backend.contexts.windowsNamed('alice', 'v'))[0]?.live).toEqual({ workers: 1, idle: 1, busy: 0 });
  });

  it('become stale, and then disappear, with the lease of their node', async () => {
    const { connection } = await one.backend.connections.connect(hello('alice', 'tab'));
    await one.backend.contexts.report(TAB, connection.epoch, all);
    await setLeaseEnd(one, 'n1', one.now() + 1_000);
    await one.advance(1_000);
    expect(await contextIds(two, { statuses: ['stale'] })).toEqual(['alice/tab/c', 'alice/tab/w']);
    await one.advance(FORGET_MS);
    expect([await contextIds(two), await windowIds(two)]).toEqual([[], []]);
  });

  it('need as many round trips for many lists as for one', async () => {
    const users = Array.from({ length: 60 }, (_, i) => `u${i}`);
    for (const userId of users) {
      const { connection } = await one.backend.connections.connect(hello(userId, 'tab'));
      await one.backend.contexts.report(connection, connection.epoch, all);
    }
    const { contexts } = two.backend;
    const { partitions } = two.store;
    const filters = users.map((userId) => ({ ...ANY_CONTEXT, userId }));
    const windows = users.map((userId) => ({ ...ANY_WINDOW, userId }));
    expect((await contexts.lists(filters, 10)).map(({ rows }) => rows.length)).toEqual(users.map(() => 2));
    expect(await countRoundTrips(two.store, () => contexts.lists(filters, 10))).toBeLessThanOrEqual(2 * partitions);
    expect(await countRoundTrips(two.store, () => contexts.windowLists(windows, 10))).toBeLessThanOrEqual(
      2 * partitions,
    );
  });

  it('last as long as their link shows signs of life, whatever the expiry of their keys', async () => {
    const connection = await join('alice');
    const partition = one.store.partitionOfUser('alice');
    const held = (['conn', 'ctx', 'ctxleft', 'win', 'ctxwin'] as const).map((kind) =>
      one.store.key(partition, kind, one.store.hash('alice', 'tab')),
    );
    for (const key of held) await runRaw(one, ['PEXPIRE', key, 600_000]);
    for (let ms = 0; ms < 3600_000; ms += 40_000) {
      await one.advance(40_000);
      expect(await one.backend.connections.touch(TAB, connection.epoch)).not.toBeNull();
    }
    expect([await contextIds(two), await windowIds(two)]).toEqual([['alice/tab/c', 'alice/tab/w'], ['alice/tab/v']]);
    for (const key of held) expect(await runRaw(one, ['PTTL', key])).toBeGreaterThan(3600_000);
  });

  it('leave nothing behind once their clients are forgotten, and no key without an expiry', async () => {
    for (const userId of ['alice', 'bob', 'carol']) {
      expect(connectionStatus(await join(userId), one.now())).toBe('connected');
    }
    // Keys of the history of links are left out, because they stay as long as all history.
    const ownKeys = async () => (await keysOf(one)).filter(({ kind }) => !kind.startsWith('stream'));
    const live = await ownKeys();
    expect(new Set(live.map(({ kind }) => kind))).toEqual(
      new Set(['meta', 'conn', 'conns', 'connusers', 'conngone', 'ctx', 'ctxleft', 'win', 'ctxwin', 'ctxs', 'wins']),
    );
    for (const { kind, ttl } of live) {
      const { ends } = Object.entries(KINDS).find(([name]) => name === kind)?.[1] ?? { ends: 'unknown' };
      if (ttl === -1) expect(['emptied', 'kept', 'node']).toContain(ends);
      else expect([kind, ends, ttl > 3600_000]).toEqual([kind, 'ttl', true]);
    }
    await one.advance(60_000 + FORGET_MS);
    await two.backend.connections.users(PAGE);
    expect((await ownKeys()).map(({ kind }) => kind).filter((kind) => kind !== 'meta')).toEqual([]);
  });

  it.each(['admission', 'dispatch'])(
    'that leave between the read and the write refuse a call at its %s',
    async (at) => {
      const { backend, store } = one;
      const { nodeId, instanceId, epoch } = await join('alice');
      const binding = { nodeId, instanceId, epoch, places: true };
      await backend.commands.rebind(TAB, binding, 'up');
      const transact = store.transact.bind(store);
      const leaveBefore = () =>
        vi.spyOn(store, 'transact').mockImplementationOnce(async (...given) => {
          await two.backend.contexts.report(TAB, epoch, report(snapshot(context('other'))));
          return transact(...given);
        });
      if (at === 'admission') leaveBefore();
      const admitted = await backend.commands.admit(admission('c1', { contextId: 'c', knowsPlaces: true }));
      if (at === 'admission') return expect(admitted).toEqual({ kind: 'refused', code: 'context_gone' });
      leaveBefore();
      const refused = { kind: 'refuse', code: 'context_gone' };
      expect(await backend.commands.dispatch(keyFor('c1'), binding, 'x1')).toEqual(refused);
    },
  );
});
