/**
 * Defines the contract tests of the port ContextStore, which keeps the execution contexts and windows that clients
 * report. Every backend must pass them.
 */
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  contextStatus,
  windowStatus,
  type ReportedContext,
  type ContextFilter,
} from '../../src/core/contexts/context.ts';
import { toJson, trustJson } from '../../src/core/json.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, DEAD_MS, FORGET_MS, STALE_MS } from '../../src/core/limits.ts';
import { SCAN_BUDGET } from '../../src/core/page.ts';
import { hello } from './kit/connections-model.ts';
import {
  allPages,
  ANY_CONTEXT,
  ANY_WINDOW,
  browserWindow,
  context,
  contextActs,
  contextIds,
  ContextModel,
  delta,
  report,
  snapshot,
  windowIds,
  worker,
} from './kit/contexts-model.ts';
import { ALICE, type Bench, type MakeBench } from './kit/bench.ts';

/** Defines the tests that every ContextStore must pass, together with the ConnectionStore of the same backend. */
export function contextContract(name: string, make: MakeBench, { runs = 150 }: { readonly runs?: number } = {}): void {
  describe(`contexts and windows in ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => void (bench = await make()));
    afterEach(() => bench.close());
    reporting(() => bench);
    withTheLink(() => bench);
    bounds(() => bench);
    listing(() => bench);
    counting(() => bench);
    byKeys(() => bench);

    it('behaves like plain lists after any sequence of reports, links and times', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(contextActs, { maxLength: 40 }), async (acts) => {
          const own = await make();
          const model = new ContextModel(own);
          for (const act of acts) await model.run(act);
          await own.close();
        }),
        { numRuns: runs },
      );
    });
  });
}

async function join(bench: Bench, clientId = 'tab', over: Parameters<typeof hello>[2] = {}) {
  const { connection } = await bench.backend.connections.connect(hello('alice', clientId, over));
  const key = { userId: 'alice', clientId };
  return {
    key,
    connection,
    report: (given: ReturnType<typeof report>) => bench.backend.contexts.report(key, connection.epoch, given),
  };
}

function reporting(bench: () => Bench): void {
  it('keeps the reported rows, with their reporter and time', async () => {
    const tab = await join(bench(), 'tab', { clientType: 'console', instanceId: 'run-1' });
    await bench().advance(5);
    const metadata = toJson({ url: 'x', deep: [1.5] });
    const full = context('c1', { windowId: 'w1', taskId: 't1', title: 'Home', metadata, status: 'idle' });
    expect(await tab.report(report(snapshot(full), snapshot(browserWindow('w1'))))).toBe('taken');
    const stamp = {
      ...ALICE,
      clientType: 'console',
      instanceId: 'run-1',
      reportedAt: bench().now(),
      linkLost: false,
    };
    const { rows } = await bench().backend.contexts.list(ANY_CONTEXT, { first: 10, after: null });
    expect(rows.map(({ row }) => row)).toEqual([{ ...full, ...stamp, taskAssignedAt: bench().now() }]);
    const [window] = await bench().backend.contexts.windowsNamed('alice', 'w1');
    expect(window?.window).toEqual({ ...browserWindow('w1'), ...stamp });
  });

  it('keeps metadata exactly as they were received', async () => {
    const tab = await join(bench());
    const texts = ['{\n  "lines": "a\\nb|c",\r\n "quoted": "\\"\\\\"}', ' [1e5, -0, 12345678901234567890]', 'null'];
    const rows = texts.map((text, i) => context(`c${i}`, { metadata: trustJson(text), title: 'one|two' }));
    expect(await tab.report(report(snapshot(...rows)))).toBe('taken');
    const found = await bench().backend.contexts.list(ANY_CONTEXT, { first: 10, after: null });
    expect(found.rows.map(({ row }) => [row.metadata, row.title])).toEqual(texts.map((text) => [text, 'one|two']));
  });

  it('replaces all rows by a snapshot, and only the named ones by a delta', async () => {
    const tab = await join(bench());
    await tab.report(report(snapshot(context('a'), context('b')), snapshot(browserWindow('w'))));
    await tab.report(report(delta([context('c')], 'a', 'never there')));
    expect(await contextIds(bench())).toEqual(['alice/tab/b', 'alice/tab/c']);
    expect(await windowIds(bench())).toEqual(['alice/tab/w']);
    await tab.report(report(snapshot(context('d'))));
    expect(await contextIds(bench())).toEqual(['alice/tab/d']);
    await tab.report(report(null, snapshot()));
    expect([await contextIds(bench()), await windowIds(bench())]).toEqual([['alice/tab/d'], []]);
  });

  it('reports when the current task was assigned: later reports keep the time, another task changes it', async () => {
    const tab = await join(bench());
    const assigned = async (taskId: string | null) => {
      await bench().advance(10);
      await tab.report(report(delta([worker('w', { taskId })])));
      const { rows } = await bench().backend.contexts.list(ANY_CONTEXT, { first: 1, after: null });
      return rows[0]?.row.taskAssignedAt;
    };
    const start = bench().now();
    expect(await assigned(null)).toBeNull();
    expect(await assigned('t1')).toBe(start + 20);
    expect(await assigned('t1')).toBe(start + 20);
    expect(await assigned('t2')).toBe(start + 40);
    expect(await assigned(null)).toBeNull();
    expect(await assigned('t2')).toBe(start + 60);
    await tab.report(report(snapshot(worker('w', { taskId: 't2' }))));
    const { rows } = await bench().backend.contexts.list(ANY_CONTEXT, { first: 1, after: null });
    expect(rows[0]?.row.taskAssignedAt).toBe(start + 60);
  });

  it('keeps clients apart, also if one name is a prefix of another', async () => {
    const one = await join(bench(), 'tab');
    const two = await join(bench(), 'tab2');
    await one.report(report(snapshot(context('a')), snapshot(browserWindow('w', { type: 'one' }))));
    await two.report(report(snapshot(context('a')), snapshot(browserWindow('w', { type: 'two' }))));
    const types = (await bench().backend.contexts.windowsNamed('alice', 'w')).map(({ window }) => window.type);
    expect(types).toEqual(['one', 'two']);
    await two.report(report(snapshot()));
    expect(await contextIds(bench())).toEqual(['alice/tab/a']);
    expect((await bench().backend.contexts.windowsNamed('alice', 'w'))[0]?.window.type).toBe('one');
    expect(await bench().backend.contexts.windowsNamed('bob', 'w')).toEqual([]);
    expect(await bench().backend.contexts.windowsNamed('alice', 'none')).toEqual([]);
  });
}

function withTheLink(bench: () => Bench): void {
  const statuses = async (): Promise<string[]> => {
    const { contexts } = bench().backend;
    const { rows } = await contexts.list(ANY_CONTEXT, { first: 10, after: null });
    const windows = await contexts.windows(ANY_WINDOW, { first: 10, after: null });
    return [...rows.map(({ row }) => contextStatus(row)), ...windows.rows.map(({ row }) => windowStatus(row.window))];
  };
  const all = report(
    snapshot(context('a'), context('b', { status: 'idle' }), context('c', { status: 'closed' })),
    snapshot(browserWindow('v', { status: 'closed' }), browserWindow('w')),
  );

  it('is stale while the link is silent, and returns to its status with the next sign of life', async () => {
    const tab = await join(bench());
    await tab.report(all);
    await bench().advance(STALE_MS - 1);
    expect(await statuses()).toEqual(['active', 'idle', 'closed', 'closed', 'open']);
    await bench().advance(1);
    expect(await statuses()).toEqual(['stale', 'stale', 'closed', 'closed', 'stale']);
    await bench().backend.connections.touch(tab.key, tab.connection.epoch);
    expect(await statuses()).toEqual(['active', 'idle', 'closed', 'closed', 'open']);
  });

  it('is stale while the link is down, and returns with the same instance', async () => {
    const tab = await join(bench());
    await tab.report(all);
    await bench().backend.connections.disconnect(tab.key, tab.connection.epoch, 'client_closed');
    expect(await statuses()).toEqual(['stale', 'stale', 'closed', 'closed', 'stale']);
    await bench().advance(FORGET_MS - 1);
    await join(bench());
    expect(await statuses()).toEqual(['active', 'idle', 'closed', 'closed', 'open']);
  });

  it.each([
    ['that was closed', true, FORGET_MS],
    ['that fell silent', false, DEAD_MS + FORGET_MS],
  ])('disappears with the row of a link %s, to the millisecond, and does not return with it', async (_, close, ms) => {
    const tab = await join(bench());
    await tab.report(all);
    if (close) await bench().backend.connections.disconnect(tab.key, tab.connection.epoch, 'client_closed');
    await bench().advance(ms - 1);
    expect((await statuses()).length).toBe(5);
    await bench().advance(1);
    const { contexts } = bench().backend;
    expect(await statuses()).toEqual([]);
    expect(await contexts.count(ANY_CONTEXT)).toEqual({ count: 0, complete: true });
    expect(await contexts.windowCount(ANY_WINDOW)).toEqual({ count: 0, complete: true });
    expect(await contexts.windowsNamed('alice', 'w')).toEqual([]);
    await join(bench());
    expect(await statuses()).toEqual([]);
  });

  it('disappears when another instance takes over, also for the first one when it takes over again', async () => {
    const first = await join(bench());
    await first.report(all);
    await join(bench(), 'tab', { instanceId: 'i2' });
    expect(await statuses()).toEqual([]);
    await join(bench());
    expect(await statuses()).toEqual([]);
  });

  it('accepts reports only over the link that is bound and up', async () => {
    const { contexts, connections } = bench().backend;
    expect(await contexts.report(ALICE, 1, all)).toBe('fenced');
    const first = await join(bench());
    const second = await join(bench());
    expect(await first.report(all)).toBe('fenced');
    expect(await second.report(report(snapshot(context('x'))))).toBe('taken');
    const other = await join(bench(), 'tab', { instanceId: 'i2' });
    expect(await second.report(all)).toBe('fenced');
    await connections.disconnect(other.key, other.connection.epoch, 'client_closed');
    expect(await other.report(all)).toBe('fenced');
    const silent = await join(bench(), 'tab', { instanceId: 'i2' });
    await bench().advance(DEAD_MS);
    expect(await silent.report(all)).toBe('fenced');
    expect(await contextIds(bench())).toEqual([]);
  });
}

function bounds(bench: () => Bench): void {
  const many = (count: number, prefix = 'c') => Array.from({ length: count }, (_, i) => context(`${prefix}${i}`));
  const windows = (count: number, prefix = 'w') =>
    Array.from({ length: count }, (_, i) => browserWindow(`${prefix}${i}`));

  it('holds a thousand contexts and a hundred windows of a client, and refuses a larger report completely', async () => {
    const tab = await join(bench());
    const other = await join(bench(), 'other');
    await other.report(report(snapshot(context('o')), snapshot(browserWindow('o'))));
    const fullHouse = report(snapshot(...many(CLIENT_CONTEXTS)), snapshot(...windows(CLIENT_WINDOWS)));
    expect(await tab.report(fullHouse)).toBe('taken');
    expect(await tab.report(report(delta([context('one more')], 'unknown')))).toBe('full');
    expect(await tab.report(report(null, delta([browserWindow('one more')])))).toBe('full');
    expect(await tab.report(report(delta([], 'c1'), delta([browserWindow('one more')])))).toBe('full');
    expect(await tab.report(report(snapshot(...many(CLIENT_CONTEXTS + 1, 'd'))))).toBe('full');
    expect(await tab.report(report(delta(many(3, 'd')), snapshot()))).toBe('full');
    const { contexts } = bench().backend;
    const own = { ...ANY_CONTEXT, clientId: 'tab' };
    expect(await contexts.count(own)).toEqual({ count: CLIENT_CONTEXTS, complete: true });
    expect((await contexts.windowCount({ ...ANY_WINDOW, clientId: 'tab' })).count).toBe(CLIENT_WINDOWS);
    expect(await tab.report(report(delta([context('c1', { title: 'again' })])))).toBe('taken');
    expect(await tab.report(report(delta([context('one more')], 'c1')))).toBe('taken');
    expect(await tab.report(report(snapshot(...many(CLIENT_CONTEXTS, 'd'))))).toBe('taken');
    expect((await contexts.count(own)).count).toBe(CLIENT_CONTEXTS);
  });
}

const MANY_FILTERS: readonly ContextFilter[] = [null, ['active'], ['closed'], ['stale'], ['idle', 'stale', 'closed']]
  .flatMap((statuses) => [null, 'worker', 'user-owned'].map((ownership) => ({ statuses, ownership })))
  .flatMap((of) => [null, 'w"1', 'é', 'w'].map((windowId) => ({ ...of, windowId })))
  .flatMap((of) =>
    [
      { assigned: null, taskId: null },
      { assigned: true, taskId: null },
      { assigned: false, taskId: null },
      { assigned: null, taskId: 't|1' },
    ].map((task) => ({ ...ANY_CONTEXT, ...of, ...task }) as ContextFilter),
  );

function matchesPlainly(filter: ContextFilter, row: ReportedContext, linkLost: boolean): boolean {
  const status = contextStatus({ status: row.status, linkLost });
  return (
    (filter.statuses === null || filter.statuses.includes(status)) &&
    (filter.ownership === null || row.ownership === filter.ownership) &&
    (filter.windowId === null || row.windowId === filter.windowId) &&
    (filter.assigned === null || (row.taskId !== null) === filter.assigned) &&
    (filter.taskId === null || row.taskId === filter.taskId)
  );
}

function listing(bench: () => Bench): void {
  it('is in order of user, client and id, in one page and in many', async () => {
    const expected: string[] = [];
    for (const userId of ['A', 'a', 'a!', 'b']) {
      for (const clientId of ['x', 'x.']) {
        const { connection } = await bench().backend.connections.connect(hello(userId, clientId));
        const own = ['Z', 'a', 'a-', '~'];
        await bench().backend.contexts.report(
          connection,
          connection.epoch,
          report(snapshot(...own.map((id) => context(id))), snapshot(...own.map((id) => browserWindow(id)))),
        );
        expected.push(...['Z', 'a', 'a-', '~'].map((id) => `${userId}/${clientId}/${id}`));
      }
    }
    expect(await contextIds(bench())).toEqual(expected);
    expect(await windowIds(bench())).toEqual(expected);
    const { contexts } = bench().backend;
    for (const first of [1, 3, 5]) {
      const rows = await allPages((after) => contexts.list(ANY_CONTEXT, { first, after }));
      expect(rows.map((row) => `${row.userId}/${row.clientId}/${row.contextId}`)).toEqual(expected);
      const windows = await allPages((after) => contexts.windows({ ...ANY_WINDOW, userId: 'a' }, { first, after }));
      const ids = windows.map(({ window }) => `${window.userId}/${window.clientId}/${window.windowId}`);
      expect(ids).toEqual(expected.filter((id) => id.startsWith('a/')));
    }
  });

  it('matches rows by their members, whatever their titles and metadata look like', async () => {
    const tab = await join(bench());
    const looks = { status: 'closed', ownership: 'worker', windowId: 'w"1', taskId: 't|1' } as const;
    const metadata = [null, looks, { ...looks, taskId: null, status: 'idle' }].map((value) => toJson(value));
    const rows = metadata.flatMap((metadata, i) =>
      (['active', 'closed'] as const).flatMap((status) => [
        context(`${i}${status}a`, { status, metadata, title: JSON.stringify(looks) }),
        worker(`${i}${status}b`, { status, metadata, windowId: 'w"1', title: '|||' }),
        worker(`${i}${status}c`, { status, metadata, windowId: 'é', taskId: 't|1' }),
      ]),
    );
    await tab.report(report(snapshot(...rows)));
    const check = async (linkLost: boolean): Promise<void> => {
      for (const filter of MANY_FILTERS) {
        const expected = rows.filter((row) => matchesPlainly(filter, row, linkLost)).map((row) => row.contextId);
        const found = await contextIds(bench(), filter);
        expect(found, JSON.stringify(filter)).toEqual(expected.sort().map((id) => `alice/tab/${id}`));
      }
    };
    await check(false);
    await bench().backend.connections.disconnect(tab.key, tab.connection.epoch, 'client_closed');
    await check(true);
  });

  it('lists only rows that match each filter, and several at once', async () => {
    const tab = await join(bench(), 'tab');
    const cli = await join(bench(), 'cli', { clientType: 'console' });
    await tab.report(
      report(
        snapshot(
          context('a', { windowId: 'w1' }),
          worker('b', { windowId: 'w1', taskId: 't1' }),
          worker('c', { windowId: 'w2' }),
          worker('d', { status: 'closed', taskId: 't1' }),
        ),
        snapshot(browserWindow('w1'), browserWindow('w2', { ownership: 'worker' })),
      ),
    );
    await cli.report(report(snapshot(worker('e', { taskId: 't2', status: 'active' }))));
    const found = async (over: Parameters<typeof contextIds>[1]) =>
      (await contextIds(bench(), over)).map((id) => id.split('/')[2]).join('');
    expect(await found({ clientId: 'tab' })).toBe('abcd');
    expect(await found({ userId: 'alice', clientId: 'cli' })).toBe('e');
    expect(await found({ userId: 'bob' })).toBe('');
    expect(await found({ clientType: 'console' })).toBe('e');
    expect(await found({ statuses: ['active'] })).toBe('ea');
    expect(await found({ statuses: ['idle', 'closed'] })).toBe('bcd');
    expect(await found({ ownership: 'worker' })).toBe('ebcd');
    expect(await found({ ownership: 'user-owned' })).toBe('a');
    expect(await found({ windowId: 'w1' })).toBe('ab');
    expect(await found({ assigned: true })).toBe('ebd');
    expect(await found({ assigned: false })).toBe('ac');
    expect(await found({ taskId: 't1', statuses: ['active', 'idle', 'stale'] })).toBe('b');
    expect(await windowIds(bench(), { ownership: 'worker' })).toEqual(['alice/tab/w2']);
    expect(await windowIds(bench(), { status: 'stale' })).toEqual([]);
    expect(await windowIds(bench(), { clientType: 'console' })).toEqual([]);
  });

  it('answers several filters at once as it answers each alone', async () => {
    for (const clientId of ['p', 'q']) {
      const client = await join(bench(), clientId);
      const some = ['1', '2', '3'];
      await client.report(
        report(snapshot(...some.map((id) => context(id))), snapshot(...some.map((id) => browserWindow(id)))),
      );
    }
    const { contexts } = bench().backend;
    const filters = ['q', 'none', 'p'].map((clientId) => ({ ...ANY_CONTEXT, clientId }));
    const each = await Promise.all(filters.map((filter) => contexts.list(filter, { first: 2, after: null })));
    expect(await contexts.lists(filters, 2)).toEqual(each);
    expect(each.map(({ rows, next }) => [rows.length, next !== null])).toEqual([
      [2, true],
      [0, false],
      [2, true],
    ]);
    const ofWindows = ['q', 'none', 'p'].map((clientId) => ({ ...ANY_WINDOW, clientId }));
    expect(await contexts.windowLists(ofWindows, 2)).toEqual(
      await Promise.all(ofWindows.map((filter) => contexts.windows(filter, { first: 2, after: null }))),
    );
  });

  it('shows a row that exists throughout the paging exactly once, whatever is added and removed', async () => {
    const lasting = Array.from({ length: 40 }, (_, i) => `k${String(i).padStart(2, '0')}`);
    const clients = [await join(bench(), 'a'), await join(bench(), 'm'), await join(bench(), 'z')];
    for (const { report: say } of clients) await say(report(snapshot(...lasting.map((id) => context(id)))));
    let turn = 0;
    const churn = async (): Promise<void> => {
      for (const { report: say } of clients) {
        const passing = Array.from({ length: 9 }, (_, i) => context(`k${(turn * 7 + i * 5) % 40}x${turn}`));
        const before = Array.from({ length: 9 }, (_, i) => `k${((turn - 1) * 7 + i * 5) % 40}x${turn - 1}`);
        await say(report(delta([...passing, context(lasting[turn % 40] ?? '')], ...before)));
      }
      turn++;
      await join(bench(), `n${turn}`);
    };
    const rows = await allPages((after) => bench().backend.contexts.list(ANY_CONTEXT, { first: 7, after }), churn);
    const kept = rows.filter(({ contextId }) => lasting.includes(contextId));
    expect(kept.map(({ clientId, contextId }) => `${clientId}/${contextId}`)).toEqual(
      ['a', 'm', 'z'].flatMap((clientId) => lasting.map((id) => `${clientId}/${id}`)),
    );
    expect(turn).toBeGreaterThan(10);
  });

  it('continues after a client that is gone', async () => {
    const first = await join(bench(), 'a');
    await first.report(report(snapshot(context('1'), context('2'))));
    const second = await join(bench(), 'b');
    await second.report(report(snapshot(context('1'))));
    const { contexts } = bench().backend;
    const page = await contexts.list(ANY_CONTEXT, { first: 1, after: null });
    await join(bench(), 'a', { instanceId: 'i2' });
    const rest = await contexts.list(ANY_CONTEXT, { first: 10, after: page.next });
    expect(rest.rows.map(({ row }) => row.clientId)).toEqual(['b']);
  });

  it('ends a filtered page early in a large registry, and finds the rows after it', async () => {
    const rows = Array.from({ length: 1000 }, (_, i) => context(`c${i}`));
    for (let i = 0; i < SCAN_BUDGET / 1000 + 1; i++) {
      const client = await join(bench(), `a${String(i).padStart(2, '0')}`);
      await client.report(report(snapshot(...rows)));
    }
    const last = await join(bench(), 'z');
    await last.report(report(snapshot(worker('w'))));
    const filter = { ...ANY_CONTEXT, ownership: 'worker' } as const;
    const { contexts } = bench().backend;
    const first = await contexts.list(filter, { first: 10, after: null });
    expect(first.rows).toEqual([]);
    expect(first.next).not.toBeNull();
    const found = await allPages((after) => contexts.list(filter, { first: 10, after }));
    expect(found.map(({ contextId }) => contextId)).toEqual(['w']);
    expect(await contexts.count(filter)).toEqual({ count: 1, complete: true });
  });
}

function counting(bench: () => Bench): void {
  const live = async (windowId = 'w') => (await bench().backend.contexts.windowsNamed('alice', windowId))[0]?.live;

  it('counts a window from the contexts of its client as soon as those are reported, even if there are none', async () => {
    const tab = await join(bench());
    await tab.report(report(null, snapshot(browserWindow('w'), browserWindow('v'))));
    expect(await live()).toBeNull();
    await tab.report(report(delta([])));
    expect(await live()).toEqual({ workers: 0, idle: 0, busy: 0 });
    await tab.report(
      report(
        delta([
          worker('1', { windowId: 'w' }),
          worker('2', { windowId: 'w', taskId: 't' }),
          worker('3', { windowId: 'w', taskId: 't', status: 'active' }),
          worker('4', { windowId: 'w', status: 'closed' }),
          worker('5', { windowId: 'v' }),
          worker('6'),
          context('7', { windowId: 'w', taskId: 't' }),
        ]),
      ),
    );
    expect(await live()).toEqual({ workers: 3, idle: 1, busy: 2 });
    expect(await live('v')).toEqual({ workers: 1, idle: 1, busy: 0 });
    await tab.report(report(delta([worker('1', { windowId: 'v' })], '2')));
    expect(await live()).toEqual({ workers: 1, idle: 0, busy: 1 });
    expect(await live('v')).toEqual({ workers: 2, idle: 2, busy: 0 });
    await tab.report(report(snapshot()));
    expect(await live()).toEqual({ workers: 0, idle: 0, busy: 0 });
  });

  it('never counts the contexts of another client for a window', async () => {
    const tab = await join(bench(), 'tab');
    const other = await join(bench(), 'other');
    await tab.report(report(null, snapshot(browserWindow('w'))));
    await other.report(report(snapshot(worker('1', { windowId: 'w' }))));
    expect(await live()).toBeNull();
  });

  it('forgets with the instance that contexts were reported', async () => {
    const tab = await join(bench());
    await tab.report(report(snapshot(), null));
    const next = await join(bench(), 'tab', { instanceId: 'i2' });
    await next.report(report(null, snapshot(browserWindow('w'))));
    expect(await live()).toBeNull();
  });
}

function byKeys(bench: () => Bench): void {
  const rows = async (keys: readonly (readonly [string, string, string])[]) => {
    const { contexts } = bench().backend;
    const ids = keys.map(([userId, clientId, id]) => ({ userId, clientId, contextId: id, windowId: id }));
    return { contexts: await contexts.getContexts(ids), windows: await contexts.getWindows(ids) };
  };
  const same = report(
    snapshot(context('same', { windowId: 'same' }), worker('other', { windowId: 'same' })),
    snapshot(browserWindow('same')),
  );

  it('finds rows by their keys, in the order of the keys, as the lists show them', async () => {
    for (const userId of ['alice', 'bob']) {
      for (const clientId of ['tab', 'tab2']) {
        const { connection } = await bench().backend.connections.connect(hello(userId, clientId));
        await bench().backend.contexts.report(connection, connection.epoch, same);
      }
    }
    const keys = [
      ...[
        ['bob', 'tab', 'same'],
        ['alice', 'tab', 'none'],
        ['alice', 'tab2', 'same'],
        ['carol', 'tab', 'same'],
      ],
      ...[
        ['alice', 'tab', 'same'],
        ['alice', 'none', 'same'],
        ['bob', 'tab', 'same'],
        ['alice', 'tab', 'Same'],
      ],
    ] as [string, string, string][];
    const found = await rows(keys);
    const listed = await allPages((after) => bench().backend.contexts.list(ANY_CONTEXT, { first: 9, after }));
    const windows = await allPages((after) => bench().backend.contexts.windows(ANY_WINDOW, { first: 9, after }));
    const expected = <Row>(all: readonly Row[], matches: (row: Row, key: (typeof keys)[number]) => boolean) =>
      keys.map((key) => all.find((row) => matches(row, key)) ?? null);
    const isAt = (row: { userId: string; clientId: string }, [userId, clientId]: (typeof keys)[number]) =>
      row.userId === userId && row.clientId === clientId;
    expect(found.contexts).toEqual(expected(listed, (row, key) => isAt(row, key) && row.contextId === key[2]));
    expect(found.windows).toEqual(
      expected(windows, ({ window }, key) => isAt(window, key) && window.windowId === key[2]),
    );
    expect(found.contexts.map((row) => row !== null)).toEqual([true, false, true, false, true, false, true, false]);
    expect(found.windows[0]?.live).toEqual({ workers: 1, idle: 1, busy: 0 });
    expect(await rows([])).toEqual({ contexts: [], windows: [] });
  });

  it('finds them while the link is down, as stale, and not once the client is forgotten or another instance', async () => {
    const key = [['alice', 'tab', 'same']] as const;
    const tab = await join(bench());
    await tab.report(same);
    await bench().backend.connections.disconnect(tab.key, tab.connection.epoch, 'client_closed');
    expect(await rows(key)).toMatchObject({
      contexts: [{ linkLost: true }],
      windows: [{ window: { linkLost: true } }],
    });
    await bench().advance(FORGET_MS);
    expect(await rows(key)).toEqual({ contexts: [null], windows: [null] });
    await (await join(bench())).report(same);
    expect(await rows(key)).toMatchObject({ contexts: [{ linkLost: false }] });
    await join(bench(), 'tab', { instanceId: 'i2' });
    expect(await rows(key)).toEqual({ contexts: [null], windows: [null] });
  });
}
