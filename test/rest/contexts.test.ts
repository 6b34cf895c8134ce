/** Tests contexts, windows and workers over REST. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import { STALE_MS } from '../../src/core/limits.ts';
import { browserWindow, context, report, snapshot, worker } from '../contract/kit/contexts-model.ts';
import { connect, user } from '../kit/core.ts';
import { startRestRelay } from './kit/rest-server.ts';

type Relay = Awaited<ReturnType<typeof startRestRelay>>;

/** Connects alice's browser with two windows, a console without any, and bob's browser. */
async function furnish({ core }: Relay) {
  const tab = await connect(core, user('alice'), { clientId: 'tab' });
  const metadata = toJson({ ownership: 'USER_OWNED', n: 1 });
  await tab.session.report(
    report(
      snapshot(
        context('mail', { windowId: 'w1', title: 'Mail', metadata }),
        worker('w-free', { windowId: 'w2' }),
        worker('w-busy', { windowId: 'w2', taskId: 't:1', status: 'active' }),
        worker('w-gone', { windowId: 'w2', taskId: 't:1', status: 'closed' }),
      ),
      snapshot(browserWindow('w1'), browserWindow('w2', { ownership: 'worker', capacity: 4 })),
    ),
  );
  const desk = await connect(core, user('alice'), { clientId: 'desk', clientType: 'console' });
  await desk.session.report(report(snapshot(worker('flow', { taskId: 't:2' }))));
  const other = await connect(core, user('bob'));
  await other.session.report(report(null, snapshot(browserWindow('w1', { status: 'closed' }))));
  return { tab, desk, other };
}

/** A relay that is opened once, for tests that only read. */
let shared: Relay;
beforeAll(async () => {
  shared = await startRestRelay();
  await furnish(shared);
});
afterAll(() => shared[Symbol.asyncDispose]());

function idsOf(body: { items: { context_id?: string; window_id?: string }[] }): string {
  return body.items.map((item) => item.context_id ?? item.window_id).join(' ');
}

describe('GET /contexts', () => {
  test('returns every member by its REST name, with the documented words', async () => {
    const relay = shared;
    const { status, body } = await relay.ask('/contexts?user_id=alice&client_id=tab&limit=1');
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['items', 'next_cursor', 'completeness']);
    expect(body.items).toEqual([
      {
        context_id: 'mail',
        user_id: 'alice',
        client_id: 'tab',
        instance_id: 'i1',
        client_type: 'browser',
        status: 'active',
        ownership: 'user-owned',
        window_id: 'w1',
        task_id: null,
        task_assigned_at: null,
        title: 'Mail',
        metadata: { ownership: 'USER_OWNED', n: 1 },
        reported_at: '2026-01-01T00:00:00.000Z',
      },
    ]);
    expect(body.completeness).toMatchObject({ complete: true, sources: [{ source: 'contexts', observed: 1 }] });
    const rest = await relay.ask(`/contexts?user_id=alice&client_id=tab&cursor=${body.next_cursor}`);
    expect(idsOf(rest.body)).toBe('w-busy w-free w-gone');
    expect(rest.body.next_cursor).toBeNull();
  });

  test.each([
    ['', 'flow mail w-busy w-free w-gone'],
    ['user_id=bob', ''],
    ['client_id=desk', 'flow'],
    ['client_type=browser', 'mail w-busy w-free w-gone'],
    ['status=active', 'mail w-busy'],
    ['status=closed', 'w-gone'],
    ['status=stale', ''],
    ['ownership=user-owned', 'mail'],
    ['ownership=worker&status=idle', 'flow w-free'],
    ['window_id=w2&user_id=alice', 'w-busy w-free w-gone'],
  ])('lists the rows that match %j, and the count agrees', async (query, expected) => {
    const relay = shared;
    expect(idsOf((await relay.ask(`/contexts?${query}`)).body)).toBe(expected);
    const { status, body } = await relay.ask(`/contexts/count?${query}`);
    expect([status, body.count]).toEqual([200, expected === '' ? 0 : expected.split(' ').length]);
    expect(body.completeness.complete).toBe(true);
  });

  test('shows what a lost link leaves as stale', async () => {
    await using relay = await startRestRelay();
    await furnish(relay);
    await relay.clock.advance(STALE_MS);
    expect(idsOf((await relay.ask('/contexts?status=stale&user_id=alice')).body)).toBe('flow mail w-busy w-free');
    expect((await relay.ask('/browser-windows/count?status=stale')).body.count).toBe(2);
  });
});

describe('GET /browser-windows', () => {
  test('returns every member, with counts from the contexts if there are any, otherwise from the snapshot', async () => {
    const relay = shared;
    const { body } = await relay.ask('/browser-windows');
    expect(body.items).toHaveLength(3);
    expect(body.items[1]).toEqual({
      window_id: 'w2',
      user_id: 'alice',
      client_id: 'tab',
      instance_id: 'i1',
      client_type: 'browser',
      ownership: 'worker',
      focused: false,
      type: 'normal',
      state: 'maximized',
      incognito: false,
      tab_count: 3,
      capacity: 4,
      draining: false,
      status: 'open',
      worker_count: 2,
      idle_count: 1,
      busy_count: 1,
      counts_from: 'contexts',
      reported_at: '2026-01-01T00:00:00.000Z',
    });
    const counts = body.items.map((item: Record<string, unknown>) => [
      item['user_id'],
      item['worker_count'],
      item['idle_count'],
      item['busy_count'],
      item['counts_from'],
    ]);
    expect(counts).toEqual([
      ['alice', 0, 0, 0, 'contexts'],
      ['alice', 2, 1, 1, 'contexts'],
      ['bob', 7, 4, 3, 'snapshot'],
    ]);
  });

  test.each([
    ['user_id=alice', 'w1 w2'],
    ['client_id=tab&client_type=browser', 'w1 w2 w1'],
    ['client_type=console', ''],
    ['status=closed', 'w1'],
    ['ownership=worker', 'w2'],
    ['user_id=nobody', ''],
  ])('lists the rows that match %j, and the count agrees', async (query, expected) => {
    const relay = shared;
    expect(idsOf((await relay.ask(`/browser-windows?${query}`)).body)).toBe(expected);
    const { body } = await relay.ask(`/browser-windows/count?${query}`);
    expect(body.count).toBe(expected === '' ? 0 : expected.split(' ').length);
  });

  test('finds one by its id and its user: of no other user, and 404 if absent', async () => {
    const relay = shared;
    const found = await relay.ask('/browser-windows/w1?user_id=bob');
    expect([found.status, found.body.window_id, found.body.user_id, found.body.status]).toEqual([
      200,
      'w1',
      'bob',
      'closed',
    ]);
    for (const path of ['/browser-windows/w2?user_id=bob', '/browser-windows/none?user_id=alice'])
      expect([path, (await relay.ask(path)).status]).toEqual([path, 404]);
    const without = await relay.ask('/browser-windows/w1');
    expect([without.status, without.body.errors]).toEqual([400, [{ parameter: 'user_id', detail: 'required' }]]);
  });

  test('is read to its end by cursors', async () => {
    const relay = shared;
    const seen: string[] = [];
    let next = '';
    do {
      const { body } = await relay.ask(`/browser-windows?limit=1${next && `&cursor=${next}`}`);
      seen.push(idsOf(body));
      next = body.next_cursor;
    } while (next !== null);
    expect(seen).toEqual(['w1', 'w2', 'w1']);
  });
});

describe('GET /workers', () => {
  test("splits workers into idle and assigned, with the time of the assignment's first report", async () => {
    await using relay = await startRestRelay();
    const { desk } = await furnish(relay);
    await relay.clock.advance(1000);
    await desk.session.report(report(snapshot(worker('flow', { taskId: 't:2', title: 'renamed' }))));
    const { status, body } = await relay.ask('/workers?user_id=alice');
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['idle', 'assigned', 'completeness']);
    expect(idsOf({ items: body.idle })).toBe('w-free');
    expect(body.assigned).toMatchObject([
      {
        context_id: 'flow',
        task_id: 't:2',
        task_assigned_at: '2026-01-01T00:00:00.000Z',
        reported_at: '2026-01-01T00:00:01.000Z',
      },
      { context_id: 'w-busy', task_id: 't:1' },
    ]);
    expect(body.completeness).toMatchObject({ complete: true, sources: [{ observed: 1 }, { observed: 2 }] });
    const consoles = await relay.ask('/workers?user_id=alice&client_type=console');
    expect([idsOf({ items: consoles.body.idle }), idsOf({ items: consoles.body.assigned })]).toEqual(['', 'flow']);
  });

  test('lists available ones, and those of one task, with completeness', async () => {
    const relay = shared;
    const available = await relay.ask('/workers/available?user_id=alice');
    expect(Object.keys(available.body)).toEqual(['items', 'completeness']);
    expect(idsOf(available.body)).toBe('w-free');
    expect(idsOf((await relay.ask('/workers/available?user_id=alice&client_type=console')).body)).toBe('');
    const ofTask = await relay.ask('/workers/tasks/t:1?user_id=alice');
    expect(Object.keys(ofTask.body)).toEqual(['items', 'completeness']);
    expect(idsOf(ofTask.body)).toBe('w-busy');
    const nothing = await relay.ask('/workers/tasks/none?user_id=alice');
    expect([nothing.status, nothing.body.items]).toEqual([200, []]);
    expect((await relay.ask('/workers/tasks/t:1?user_id=bob')).body.items).toEqual([]);
  });

  test.each(['/workers', '/workers/available', '/workers/tasks/t1'])('%s requires a canonical user', async (path) => {
    const relay = shared;
    const missing = await relay.ask(path);
    expect([missing.status, missing.body.code, missing.body.errors]).toEqual([
      400,
      'invalid_argument',
      [{ parameter: 'user_id', detail: 'required' }],
    ]);
    const wrong = await relay.ask(`${path}?user_id=a%2Fb`);
    expect([wrong.status, wrong.body.code]).toEqual([400, 'invalid_user']);
    // A user id that an operator typed is brought to its normal form.
    expect((await relay.ask(`${path}?user_id=%20Alice@Example.ORG`)).status).toBe(200);
  });
});

describe('all of these routes', () => {
  const paths = [
    '/contexts',
    '/contexts/count',
    '/browser-windows',
    '/browser-windows/count',
    '/browser-windows/w1?user_id=alice',
    '/workers?user_id=alice',
    '/workers/available?user_id=alice',
    '/workers/tasks/t1?user_id=alice',
  ];

  test.each(paths)('%s is for administrators only', async (path) => {
    const relay = shared;
    const statuses: unknown[] = [];
    for (const requester of ['', 'alice:connect', 'alice'])
      statuses.push((await relay.ask({ path, requester })).status);
    expect(statuses).toEqual([401, 403, 403]);
    expect((await relay.ask(path)).status).toBe(200);
  });

  test.each(paths)('%s refuses an unknown parameter by name, and wrong words', async (path) => {
    const relay = shared;
    const mark = path.includes('?') ? '&' : '?';
    const unknown = await relay.ask(`${path}${mark}userid=bob`);
    expect([unknown.status, unknown.body.code]).toEqual([400, 'invalid_argument']);
    expect(unknown.body.errors).toMatchObject([{ parameter: 'userid' }]);
  });

  test.each([
    ['/contexts?status=open', 'status'],
    ['/contexts?ownership=USER_OWNED', 'ownership'],
    ['/contexts?client_type=tab', 'client_type'],
    ['/contexts?client_id=a%20b', 'client_id'],
    ['/contexts?window_id=', 'window_id'],
    ['/contexts?limit=1001', 'limit'],
    ['/contexts/count?limit=1', 'limit'],
    ['/browser-windows?status=active', 'status'],
    ['/browser-windows/count?window_id=w1', 'window_id'],
    ['/browser-windows/a%2Fb?user_id=alice', 'window_id'],
    ['/workers/tasks/%00?user_id=alice', 'task_id'],
  ])('%s is refused, naming the parameter', async (path, parameter) => {
    const relay = shared;
    const { status, body } = await relay.ask(path);
    expect([status, body.code]).toEqual([400, 'invalid_argument']);
    expect(body.errors.map((fault: { parameter: string }) => fault.parameter)).toEqual([parameter]);
  });
});

test('a window that several clients report is selected by client, and never guessed', async () => {
  await using relay = await startRestRelay();
  await furnish(relay);
  const path = '/browser-windows/w1?user_id=alice';
  expect(await relay.ask(path)).toMatchObject({ status: 200, body: { client_id: 'tab' } });
  const other = await connect(relay.core, user('alice'), { clientId: 'other' });
  await other.session.report(report(null, snapshot(browserWindow('w1'))));
  const refused = await relay.ask(path);
  expect(refused).toMatchObject({ status: 409, body: { code: 'ambiguous', detail: /client_id/ } });
  for (const client of ['tab', 'other'])
    expect(await relay.ask(`${path}&client_id=${client}`)).toMatchObject({ status: 200, body: { client_id: client } });
  expect((await relay.ask(`${path}&client_id=none`)).status).toBe(404);
});
