/** The routes of methods: each has one, lists are merged in order wherever rows are, and silent owners are named. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Backend } from '../../src/core/backend.ts';
import { ANY_COMMAND, type DeliveryInspector } from '../../src/core/commands/delivery-inspector.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import { ANY_CONNECTION } from '../../src/core/connections/connection-filter.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import type { Position, Scan } from '../../src/core/page.ts';
import type { Pause } from '../../src/core/pauses/pause.ts';
import { createPlacement, PARTITIONS_MAX, type Placement } from '../../src/backends/owned/placement.ts';
import { ROUTES, type AllPorts, type RoutesOf } from '../../src/backends/owned/routes.ts';
import { admission } from '../contract/kit/bench.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { Network } from '../contract/kit/owned-network.ts';
import { Relays } from '../contract/kit/owned-relays.ts';
import { FakeClock } from '../kit/clock.ts';

type Inspector = AllPorts['inspector'];
/** Takes routes of an inspector with one more method. */
function takes<Method>(routes: RoutesOf<{ inspector: Inspector & { readonly added: Method } }>): void {
  expect(routes).toBeDefined();
}

describe('the table of routes', () => {
  it('does not compile without a route for each method', () => {
    const { inspector } = ROUTES;
    takes<() => number>({ inspector: { ...inspector, added: { kind: 'here' } } });
    // @ts-expect-error: the new method has no route
    takes<() => number>({ inspector });
    // @ts-expect-error: an optional method needs one, too
    takes<(() => number) | undefined>({ inspector });
  });

  it('does not compile for a method that other processes cannot call', () => {
    const { inspector } = ROUTES;
    const one = { kind: 'one', partition: () => 0 } as const;
    takes<(key: string) => Promise<Map<string, number>>>({ inspector: { ...inspector, added: one } });
    // @ts-expect-error: a function cannot be encoded
    takes<(run: () => void) => void>({ inspector: { ...inspector, added: one } });
    // @ts-expect-error: nor can an answer that is a date
    takes<(key: string) => Promise<Date>>({ inspector: { ...inspector, added: one } });
    const ofNumber = { kind: 'one', partition: (_: Placement, number: number) => number } as const;
    // @ts-expect-error: the route reads other arguments than the method has
    takes<(key: string) => number>({ inspector: { ...inspector, added: ofNumber } });
    const asText = { kind: 'owned', merge: () => 'text' } as const;
    // @ts-expect-error: a merge that answers otherwise than the method
    takes<() => number>({ inspector: { ...inspector, added: asText } });
  });
});

describe('the placement', () => {
  it('puts a user, and what is the user’s by its id, into one partition', () => {
    const count = fc.integer({ min: 1, max: PARTITIONS_MAX });
    fc.assert(
      fc.property(count, fc.string(), fc.string(), (partitions, userId, id) => {
        const place = createPlacement(partitions, (user) => user);
        const partition = place.ofUser(userId);
        expect(partition).toBeLessThan(partitions);
        expect(place.ofId(place.prefixOf(userId) + id)).toBe(partition);
        expect(place.ofId(id)).toBeLessThan(partitions);
      }),
    );
    const teams = createPlacement(64, () => 'team');
    expect(teams.ofUser('alice')).toBe(teams.ofUser('bob'));
  });
});

const PARTITIONS = 4;
const USERS = Array.from({ length: 12 }, (_, i) => `user-${i}`);

/** Opens a relay that owns nothing, and three that own the partitions. Each user has clients and commands. */
async function open() {
  const clock = new FakeClock();
  const network = new Network(3);
  const relays = new Relays({
    ...{ clock, requestClock: clock, partitions: PARTITIONS },
    join: (process) => network.join(process),
    mail: (nodeId, deliver) => network.inOrder(nodeId, deliver),
  });
  clock.alsoAwaits(() => network.quiet());
  const backend = relays.open('here');
  for (const process of ['a', 'b', 'c']) relays.open(process);
  relays.giveAll(['a', 'b', 'c']);
  for (const [i, userId] of USERS.entries()) {
    const own = { userId, clientId: 'tab', scopeId: userId, connectWithinMs: 300_000 };
    await backend.connections.connect(hello(userId, 'tab'));
    await backend.commands.admit(admission(`c${i}`, own));
    // Some are admitted in one millisecond.
    if (i % 3 === 0) await clock.advance(1);
  }
  return { clock, network, relays, backend };
}

const ACTION = { name: 'a', description: null, version: null, checksArguments: null, schema: null, metadata: null };

type Listing = (backend: Backend, after: Position | null) => Promise<Scan<unknown>>;
const newest = async ({ inspector }: { inspector: DeliveryInspector }, after: Position | null) =>
  inspector.list(ANY_COMMAND, { first: 5, after, order: 'newest' });
const LISTINGS: Readonly<Record<string, Listing>> = {
  connections: async ({ connections }, after) => connections.list(ANY_CONNECTION, { first: 5, after }),
  users: async ({ connections }, after) => connections.users({ first: 5, after }),
  commands: async ({ inspector }, after) => inspector.list(ANY_COMMAND, { first: 5, after }),
  'newest commands': newest,
  waits: async ({ waiters }, after) => waiters.list(ANY_WAIT, { first: 5, after }),
  scopes: async ({ inspector }, after) => inspector.scopes({ first: 5, after }),
};

describe('a listing over all partitions', () => {
  it.each(Object.entries(LISTINGS))('of %s goes on after a change of owners where it ended', async (_, list) => {
    const { clock, relays, backend } = await open();
    const whole = async (change: () => void): Promise<unknown[]> => {
      const rows: unknown[] = [];
      let after: Position | null = null;
      do {
        const scan: Scan<unknown> = await list(backend, after);
        rows.push(...scan.rows.map(({ row }) => row));
        after = scan.next;
        change();
        await clock.advance(0);
      } while (after !== null);
      return rows;
    };
    const expected = await whole(() => {});
    expect(expected).toHaveLength(USERS.length);
    let turn = 0;
    const changing = await whole(() => {
      turn++;
      for (let partition = 0; partition < PARTITIONS; partition++)
        relays.give(partition, ['a', 'b', 'c', 'here'][(partition + turn) % 4] ?? null);
    });
    expect(changing).toEqual(expected);
  });

  it('comes in answers of bounded size, whatever the rows', async () => {
    const { clock, network, backend } = await open();
    const summary = 'x'.repeat(100_000);
    for (let i = 0; i < 30; i++) {
      const name = `tab-${String(i).padStart(2, '0')}`;
      await backend.connections.connect(hello('user-1', name, { actions: [{ ...ACTION, summary }] }));
    }
    const before = network.sent.length;
    const found = backend.connections.list({ ...ANY_CONNECTION, userId: 'user-1' }, { first: 20, after: null });
    await clock.advance(0);
    const { rows, next } = await found;
    expect(rows.map(({ row }) => row.clientId).slice(0, 3)).toEqual(['tab', 'tab-00', 'tab-01']);
    expect([rows.length, next]).toEqual([20, rows[19]?.position]);
    const answers = network.sent.slice(before).map(({ text }) => text.length);
    expect(Math.max(...answers)).toBeLessThan(0.4e6);
    const all = backend.connections.list(ANY_CONNECTION, { first: 1000, after: null });
    await clock.advance(0);
    expect((await all).rows).toHaveLength(USERS.length + 30);
  });

  it('names an owner that does not answer, has what the others have, and waits for no longer than a second', async () => {
    const { clock, network, relays, backend } = await open();
    const silentUsers = USERS.filter((userId) => relays.placement.ofUser(userId) % 3 === 1);
    expect(silentUsers.length).toBeGreaterThan(0);
    network.cut('b');
    const gap = { nodeId: 'node-b', complete: false, reason: 'node_silent' };
    const asked = Promise.all(Object.values(LISTINGS).map((list) => list(backend, null)));
    const counted = Promise.all([
      backend.waiters.countByNode(ANY_WAIT),
      backend.inspector.summary(),
      backend.connections.quietest(100),
      backend.inspector.busiest(100),
      backend.reconnects.top(10),
      backend.contexts.count({ ...NO_FILTER, statuses: null, windowId: null, assigned: null, taskId: null }),
      backend.contexts.windowCount({ ...NO_FILTER, status: null }),
      backend.history.sample(null, { messages: 100, bytes: 1e6, of: 'stored' }),
    ]);
    const stats = Promise.resolve(backend.dedup.stats(60));
    const strict = Promise.allSettled([backend.inspector.getScopes(['user-0'])]);
    await clock.advance(1_250);
    for (const { gaps } of await asked) expect(gaps).toEqual([expect.objectContaining(gap)]);
    for (const answer of await counted) expect(answer?.gaps).toEqual([expect.objectContaining(gap)]);
    const [waits, summary, quietest] = await counted;
    expect([...waits.counts.values()].reduce((sum, count) => sum + count, 0)).toBe(USERS.length - silentUsers.length);
    expect(summary.trackedCommands).toBe(USERS.length - silentUsers.length);
    expect(quietest.rows.map(({ userId }: Connection) => userId)).not.toContain(silentUsers[0]);
    expect(await stats).toMatchObject({ exact: false, liveKeys: null });
    expect(await strict).toMatchObject([{ status: 'rejected', reason: { code: 'store_unavailable' } }]);
    // The listing of one user asks no other owner.
    network.cut('b', false);
    network.cut('c');
    const [userId = ''] = silentUsers;
    const one = backend.connections.list({ ...ANY_CONNECTION, userId }, { first: 5, after: null });
    await clock.advance(0);
    expect(await one).toMatchObject({ rows: [{ row: { userId } }], gaps: [] });
  });

  it('names a partition that nobody owns as unavailable', async () => {
    const { clock, relays, backend } = await open();
    for (let partition = 0; partition < PARTITIONS; partition++)
      relays.give(partition, partition === 2 ? null : 'here');
    const asked = Promise.resolve(newest(backend, null));
    await clock.advance(1_250);
    const reason = { nodeId: null, reason: 'store_unavailable', complete: false };
    expect((await asked).gaps).toEqual([expect.objectContaining(reason)]);
  });
});

const NO_FILTER = { userId: null, clientId: null, clientType: null, ownership: null };

describe('a relay without a lease', () => {
  it('reads in its own partitions once it has one again, or asks the next owner', async () => {
    const { relays, backend } = await open();
    relays.giveAll(['here']);
    relays.mayAnswer = false;
    const events: string[] = [];
    const readings = ['one', 'each', 'page'].map(async (what) => {
      const key = { userId: USERS[0] ?? '', clientId: 'tab', commandId: 'c0' };
      const page = { first: 10, after: null };
      if (what === 'one') await backend.commands.mark(key);
      else if (what === 'each') await backend.commands.get([key]);
      else await backend.inspector.list(ANY_COMMAND, page);
      events.push(what);
    });
    await new Promise(setImmediate);
    expect(events).toEqual([]);
    relays.answer();
    await Promise.all(readings);
    expect(events.toSorted()).toEqual(['each', 'one', 'page']);
  });

  it('tells what it changed without a lease once that is recorded, and refuses it if the partition is lost', async () => {
    const { relays, backend } = await open();
    relays.giveAll(['here']);
    relays.mayAnswer = false;
    relays.recordsChanges = true;
    const events: string[] = [];
    const changes = ['c20', 'c21'].map(async (commandId) => {
      const own = { userId: USERS[0] ?? '', clientId: 'tab', scopeId: 'user-0', connectWithinMs: 300_000 };
      const { kind } = await backend.commands.admit(admission(commandId, own));
      events.push(kind);
    });
    await new Promise(setImmediate);
    expect(events).toEqual([]);
    const [recorded, lost] = relays.unrecorded;
    recorded?.run();
    lost?.holder?.destroy();
    const settled = await Promise.allSettled(changes);
    expect(events).toEqual(['admitted']);
    expect(settled).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { code: 'store_unavailable' } },
    ]);
  });

  it('answers nothing that waited while it lost a partition: what was read before may not be recorded', async () => {
    const { clock, network, relays, backend } = await open();
    const user = USERS.find((userId) => relays.placement.ofUser(userId) % 3 === 1) ?? '';
    const read = async (): Promise<unknown> =>
      backend.commands.mark({ userId: user, clientId: 'tab', commandId: 'c0' });
    network.cut('b');
    const waiting = Promise.allSettled([read()]);
    await clock.advance(100);
    relays.losses++;
    network.cut('b', false);
    await clock.advance(5_000);
    expect(await waiting).toMatchObject([{ status: 'rejected', reason: { code: 'store_unavailable' } }]);
    const again = read();
    await clock.advance(100);
    expect(await again).toBeNull();
  });

  it('answers a change that is not recorded once it has one again, or asks the next owner', async () => {
    const { relays, backend, clock } = await open();
    const own = { userId: USERS[0] ?? '', clientId: 'tab' };
    const cancel = async (commandId: string): Promise<string> => {
      const { kind } = await backend.commands.settle(
        { ...own, commandId },
        { kind: 'cancel', reason: null, by: 'test' },
      );
      return kind;
    };
    relays.giveAll(['here']);
    relays.mayAnswer = false;
    const found: string[] = [];
    const kept = cancel('later').then((kind) => found.push(kind));
    await new Promise(setImmediate);
    expect(found).toEqual([]);
    relays.answer();
    await kept;
    expect(found).toEqual(['unknown']);
    relays.mayAnswer = false;
    const moved = cancel('later');
    relays.giveAll(['a']);
    const admitted = backend.commands.admit(
      admission('later', { ...own, scopeId: own.userId, connectWithinMs: 300_000 }),
    );
    await clock.advance(0);
    expect(await admitted).toMatchObject({ kind: 'admitted' });
    relays.answer();
    await clock.advance(0);
    expect(await moved).toMatch(/settled|requested/);
  });
});

describe('a change because of which other processes are asked', () => {
  it('is told once it is recorded: until all have answered, another process may have taken the partition', async () => {
    const { clock, relays, backend } = await open();
    relays.giveAll(['here']);
    relays.recordsLate = true;
    const pause: Pause = {
      ...{ pauseId: 'p', userId: USERS[0] ?? '', clientId: null, callerKind: null, caller: null, action: null },
      ...{ label: null, reason: 'test', by: { kind: 'admin', name: 'ada' }, since: clock.now(), until: null },
      ...{ queued: 'keep', running: 'leave' },
    };
    const part = relays.placement.ofUser(USERS[0] ?? '');
    const row = { userId: USERS[0] ?? '', clientId: null, tokenId: null, issuedBefore: clock.now() };
    const revocation = { revocationId: 'r', reason: 'test', who: 'admin:ada', at: clock.now(), expiresAt: Infinity };
    const changes: readonly (() => unknown)[] = [
      () => backend.pauses.keep(part, pause),
      () => backend.pauses.lift(part, 'p'),
      () => backend.revocations.add({ ...row, ...revocation }),
    ];
    for (const change of changes) {
      const [kept, lost] = [Promise.resolve(change()), Promise.resolve(change())];
      let isTold = false;
      void kept.then(() => (isTold = true));
      await new Promise(setImmediate);
      expect(isTold).toBe(false);
      const [first, second] = relays.unrecorded.splice(0);
      first?.run();
      second?.holder?.destroy();
      await expect(kept).resolves.toBeDefined();
      await expect(lost).rejects.toMatchObject({ code: 'store_unavailable' });
    }
  });
});
