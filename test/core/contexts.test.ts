/** Tests contexts, windows and workers in core: how long they exist, and who may see them. */
import { describe, expect, it } from 'vitest';
import type { ContextQuery, WorkerView } from '../../src/core/contexts/contexts.ts';
import type { ReportedContext } from '../../src/core/contexts/context.ts';
import { CLIENT_CONTEXTS, DEAD_MS, FORGET_MS, STALE_MS, WORKER_LIST } from '../../src/core/limits.ts';
import { browserWindow, context, delta, report, snapshot, worker } from '../contract/kit/contexts-model.ts';
import { admin, connect, testCore, user, type TestCore } from '../kit/core.ts';

const alice = user('alice', 'invoke');

async function shown({ core }: TestCore, query: ContextQuery = {}): Promise<string[]> {
  const { nodes } = await core.contexts.list(admin, query, {});
  return nodes.map(({ userId, contextId, linkLost }) => `${userId}/${contextId}${linkLost ? '?' : ''}`);
}

async function workers({ core }: TestCore, view: WorkerView, first = WORKER_LIST) {
  const [list] = await core.contexts.workers(admin, [{ userId: 'alice', ...view }], first);
  if (!list) throw new Error('no list');
  return list;
}

async function workerIds(at: TestCore, view: WorkerView): Promise<string> {
  return (await workers(at, view)).items.map(({ contextId }) => contextId).join('');
}

describe('the rows that a client reports over its link', () => {
  it('persist from report to report, and disappear when the client stops reporting them', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, user('alice'));
    expect(await session.report(report(snapshot(context('a'), context('b'))))).toBe('taken');
    await session.report(report(delta([context('c')], 'a')));
    expect(await shown(at)).toEqual(['alice/b', 'alice/c']);
    await session.report(report(snapshot(context('c'))));
    expect(await shown(at)).toEqual(['alice/c']);
  });

  it('are stale while its link is silent or down, return with the instance, and disappear with the connection', async () => {
    await using at = await testCore();
    const first = await connect(at.core, user('alice'));
    await first.session.report(report(snapshot(context('a'))));
    await at.clock.advance(STALE_MS);
    expect(await shown(at)).toEqual(['alice/a?']);
    await first.session.alive();
    expect(await shown(at)).toEqual(['alice/a']);
    await first.session.closed('client_closed');
    expect(await shown(at)).toEqual(['alice/a?']);
    const second = await connect(at.core, user('alice'));
    expect(await shown(at)).toEqual(['alice/a']);
    await second.session.closed('heartbeat_lost');
    await at.clock.advance(FORGET_MS);
    expect(await shown(at)).toEqual([]);
    expect((await at.core.contexts.count(admin, {})).count).toBe(0);
  });

  it('of a silent link that is never closed disappear too', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, user('alice'));
    await session.report(report(snapshot(context('a')), snapshot(browserWindow('w'))));
    await at.clock.advance(DEAD_MS + FORGET_MS);
    expect(await shown(at)).toEqual([]);
    expect(await at.core.contexts.window(admin, 'alice', 'w')).toBeNull();
  });

  it('disappear when another instance takes over, and the old instance is fenced', async () => {
    await using at = await testCore();
    const old = await connect(at.core, user('alice'));
    await old.session.report(report(snapshot(context('a'))));
    const next = await connect(at.core, user('alice'), { instanceId: 'i2' });
    expect(await shown(at)).toEqual([]);
    expect(await old.session.report(report(snapshot(context('a'))))).toBe('fenced');
    expect(await next.session.report(report(snapshot(context('b'))))).toBe('taken');
    expect(await shown(at)).toEqual(['alice/b']);
    expect([at.counts.get('context_reports:taken'), at.counts.get('context_reports:fenced')]).toEqual([2, 1]);
  });
});

describe('access to contexts and windows', () => {
  it("is to one's own for a user, to all for an administrator, and refused otherwise", async () => {
    await using at = await testCore();
    for (const userId of ['alice', 'bob']) {
      const { session } = await connect(at.core, user(userId));
      await session.report(report(snapshot(context(`of-${userId}`)), snapshot(browserWindow('w', { type: userId }))));
    }
    const rooms = at.core.contexts;
    const ids = async (requester: typeof alice | typeof admin | null, query: ContextQuery) =>
      (await rooms.list(requester, query, {})).nodes.map(({ contextId }) => contextId);
    expect(await ids(alice, {})).toEqual(['of-alice']);
    expect(await ids(alice, { userId: 'alice' })).toEqual(['of-alice']);
    expect(await ids(admin, {})).toEqual(['of-alice', 'of-bob']);
    expect(await ids(admin, { userId: 'bob' })).toEqual(['of-bob']);
    expect((await rooms.count(alice, {})).count).toBe(1);
    expect((await rooms.windows(alice, {}, {})).nodes.map(({ window }) => window.type)).toEqual(['alice']);
    expect((await rooms.windowCount(admin, {})).count).toBe(2);
    expect((await rooms.window(alice, 'alice', 'w'))?.window.type).toBe('alice');
    expect(await rooms.window(alice, 'bob', 'w')).toBeNull();
    await expect(rooms.list(alice, { userId: 'bob' }, {})).rejects.toMatchObject({ code: 'not_found' });
    await expect(rooms.count(alice, { userId: 'bob' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(rooms.windows(alice, { userId: 'bob' }, {})).rejects.toMatchObject({ code: 'not_found' });
    await expect(rooms.workers(alice, [{ userId: 'bob', view: 'idle' }], 1)).rejects.toMatchObject({
      code: 'not_found',
    });
    for (const requester of [user('alice', 'connect'), null]) {
      const code = requester ? 'forbidden' : 'unauthenticated';
      await expect(rooms.list(requester, {}, {})).rejects.toMatchObject({ code });
      await expect(rooms.windowCount(requester, {})).rejects.toMatchObject({ code });
      await expect(rooms.window(requester, 'alice', 'w')).rejects.toMatchObject({ code });
      await expect(rooms.workers(requester, [{ userId: 'alice', view: 'idle' }], 1)).rejects.toMatchObject({ code });
    }
  });

  it('names a wrong id by its parameter, and binds a cursor to its listing, filter and requester', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, user('alice'));
    await session.report(
      report(snapshot(context('a'), context('b')), snapshot(browserWindow('a'), browserWindow('b'))),
    );
    const rooms = at.core.contexts;
    const wrong = (parameter: string) => ({ code: 'invalid_argument', details: { errors: [{ parameter }] } });
    await expect(rooms.list(admin, { clientId: 'a b' }, {})).rejects.toMatchObject(wrong('client_id'));
    await expect(rooms.list(admin, { windowId: '' }, {})).rejects.toMatchObject(wrong('window_id'));
    await expect(rooms.window(admin, 'alice', 'a/b')).rejects.toMatchObject(wrong('window_id'));
    const task = { userId: 'alice', view: 'task', taskId: '?' } as const;
    await expect(rooms.workers(admin, [task], 1)).rejects.toMatchObject(wrong('task_id'));
    const after = { after: (await rooms.list(alice, {}, { first: 1 })).cursors.end() };
    expect((await rooms.list(alice, {}, after)).nodes.map(({ contextId }) => contextId)).toEqual(['b']);
    const [batched] = await rooms.lists(alice, [{ userId: 'alice' }], 1);
    expect(batched?.cursors.end()).toBe(after.after);
    await expect(rooms.list(admin, { userId: 'alice' }, after)).rejects.toMatchObject({ code: 'invalid_cursor' });
    await expect(rooms.list(alice, { status: 'active' }, after)).rejects.toMatchObject({ code: 'invalid_cursor' });
    await expect(rooms.windows(alice, {}, after)).rejects.toMatchObject({ code: 'invalid_cursor' });
  });
});

describe('semantic rule 5: a task on a worker is only a current assignment in the registry', () => {
  it("it is the client's latest report: gone with the next report without it, and owned by nobody else", async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, user('alice'));
    await session.report(report(snapshot(worker('w', { taskId: 'job-1', status: 'active' }))));
    const [assigned] = (await workers(at, { view: 'assigned' })).items;
    expect(assigned).toMatchObject({ taskId: 'job-1', taskAssignedAt: at.clock.now() });
    expect(Object.keys(assigned ?? {}).filter((member) => /complete|done|result|outcome|owner$/i.test(member))).toEqual(
      [],
    );
    await session.report(report(delta([worker('w')])));
    expect(await workerIds(at, { view: 'assigned' })).toBe('');
    expect(await workerIds(at, { view: 'task', taskId: 'job-1' })).toBe('');
    expect(await workerIds(at, { view: 'idle' })).toBe('w');
  });

  it('it moves no command and no wait: an assignment is not delivery, and a delivered command assigns nothing', async () => {
    await using at = await testCore();
    const { session, sent } = await connect(at.core, user('alice'));
    await session.report(report(snapshot(worker('w', { taskId: 'c1' }))));
    expect(await at.core.delivery.command(admin, { userId: 'alice', clientId: 'tab', commandId: 'c1' })).toBeNull();
    const request = { userId: 'alice', clientId: 'tab', action: 'open', params: null, commandId: 'c2' } as const;
    await at.core.rpc.invoke(alice, { ...request, waitFor: 'admitted' });
    await at.clock.advance(0);
    expect(sent).toHaveLength(1);
    expect(await workerIds(at, { view: 'task', taskId: 'c2' })).toBe('');
  });
});

describe('semantic rule 6: observation moves no work', () => {
  it('reading workers acquires, renews and releases none', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, user('alice'));
    await session.report(report(snapshot(worker('free'), worker('busy', { taskId: 't' }))));
    const look = async () => [
      await workers(at, { view: 'available' }),
      await workers(at, { view: 'assigned' }),
      await workers(at, { view: 'task', taskId: 't' }),
    ];
    const before = await look();
    for (let i = 0; i < 3; i++) expect(await look()).toEqual(before);
    await at.clock.advance(STALE_MS);
    await look();
    expect(await shown(at)).toEqual(['alice/busy?', 'alice/free?']);
  });
});

describe('workers', () => {
  const rows: ReportedContext[] = [
    worker('a'),
    worker('b', { status: 'active' }),
    worker('c', { taskId: 't1' }),
    worker('d', { taskId: 't2', status: 'active' }),
    worker('e', { taskId: 't1', status: 'closed' }),
    worker('f', { status: 'closed' }),
    context('g', { taskId: 't1' }),
    context('h', { status: 'idle' }),
  ];

  it('are contexts owned by workers that are not closed, each either idle or assigned', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, user('alice'));
    await session.report(report(snapshot(...rows)));
    expect(await workerIds(at, { view: 'idle' })).toBe('ab');
    expect(await workerIds(at, { view: 'assigned' })).toBe('cd');
    expect(await workerIds(at, { view: 'task', taskId: 't1' })).toBe('c');
    expect(await workerIds(at, { view: 'available' })).toBe('a');
  });

  it('on a lost link are shown, but none is available', async () => {
    await using at = await testCore();
    const { session } = await connect(at.core, user('alice'));
    await session.report(report(snapshot(...rows)));
    await session.closed('client_closed');
    expect(await workerIds(at, { view: 'idle' })).toBe('ab');
    expect(await workerIds(at, { view: 'available' })).toBe('');
  });

  it('of several clients are listed in order, filtered by client type on request', async () => {
    await using at = await testCore();
    const tab = await connect(at.core, user('alice'), { clientId: 'tab' });
    const desk = await connect(at.core, user('alice'), { clientId: 'desk', clientType: 'console' });
    const bob = await connect(at.core, user('bob'), { clientId: 'tab' });
    for (const { session } of [tab, bob]) await session.report(report(snapshot(worker('t'))));
    await desk.session.report(report(snapshot(worker('d'))));
    expect(await workerIds(at, { view: 'idle' })).toBe('dt');
    const [consoles, browsers] = await at.core.contexts.workers(
      admin,
      [
        { userId: 'alice', view: 'idle', clientType: 'console' },
        { userId: 'alice', view: 'idle', clientType: 'browser' },
      ],
      10,
    );
    expect([consoles, browsers].map((list) => list?.items.map(({ contextId }) => contextId))).toEqual([['d'], ['t']]);
  });

  it('are cut at the bound, which completeness reports; exactly at the bound the list is complete', async () => {
    await using at = await testCore();
    const first = await connect(at.core, user('alice'), { clientId: 'a' });
    await first.session.report(report(snapshot(...Array.from({ length: CLIENT_CONTEXTS }, (_, i) => worker(`w${i}`)))));
    const source = { source: 'contexts', nodeId: null, observed: WORKER_LIST, asOf: at.clock.now() };
    const whole = await workers(at, { view: 'idle' });
    expect(whole.items).toHaveLength(WORKER_LIST);
    expect(whole.completeness).toEqual({
      complete: true,
      sources: [{ ...source, complete: true, limit: null, reason: null }],
    });
    const second = await connect(at.core, user('alice'), { clientId: 'b' });
    await second.session.report(report(snapshot(worker('one-more'))));
    const cut = await workers(at, { view: 'idle' });
    expect(cut.items).toHaveLength(WORKER_LIST);
    expect(cut.completeness).toEqual({
      complete: false,
      sources: [{ ...source, complete: false, limit: WORKER_LIST, reason: 'limit_reached' }],
    });
    await expect(workers(at, { view: 'idle' }, WORKER_LIST + 1)).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  it('are found after many contexts that are not workers', async () => {
    await using at = await testCore();
    const own = Array.from({ length: CLIENT_CONTEXTS }, (_, i) => context(`c${i}`));
    for (let i = 0; i < 12; i++) {
      const { session } = await connect(at.core, user('alice'), { clientId: `c${String(i).padStart(2, '0')}` });
      await session.report(report(snapshot(...own)));
    }
    const last = await connect(at.core, user('alice'), { clientId: 'z' });
    await last.session.report(report(snapshot(worker('w'))));
    const list = await workers(at, { view: 'available' });
    expect(list).toMatchObject({ items: [{ contextId: 'w' }], completeness: { complete: true } });
  });
});
