/** Tests that each route's real answers match its OpenAPI description. */
import { describe, expect, test } from 'vitest';
import { browserWindow, report, snapshot, worker } from '../contract/kit/contexts-model.ts';
import { meanwhile } from '../kit/clock.ts';
import { newDeviceKey } from '../kit/device-key.ts';
import { connect, type TestClient, user } from '../kit/core.ts';
import { HAS_DEVICES, HAS_PAUSES, HAS_REVOCATIONS } from '../kit/store.ts';
import type { OpenedCore } from '../kit/topology-core.ts';
import { type RestServer, startRestRelay } from './kit/rest-server.ts';

// Sends requests to every REST route of sites.

/**
 * Requests every route of sites, so that each route answers with each of its success statuses. `client` is alice's
 * `tab`, and advertises `open`.
 */
async function askSites(relay: RestServer & OpenedCore, client: TestClient): Promise<void> {
  const ask = async (method: string, path: string, body?: unknown, requester = 'alice') => {
    const reply = await relay.ask({ method, path, requester, ...(body !== undefined && { body }) });
    expect([method, path, reply.status < 300 || reply.status === 504]).toEqual([method, path, true]);
    return reply.body;
  };
  const profile = { action_invocation: true, sharing: true };
  await ask('PUT', '/sites/bare', { client_id: 'tab' });
  await ask('PUT', '/sites/board', { client_id: 'tab', title: 'A', actions: ['open'], capability_profile: profile });
  for (const [path, requester] of [
    ['/sites', 'alice'],
    ['/sites?limit=1', 'admin'],
    ['/sites/board', 'alice'],
  ] as const)
    await ask('GET', path, undefined, requester);
  const { session_id, grant_id } = await ask('POST', '/sites/board/sessions', { events: ['changed'] });
  const path = `/site-sessions/${session_id}`;
  const viewer = `grant:${session_id}:${grant_id}`;
  const given = await ask('POST', `${path}/grants`, { ttl_seconds: 60 }, viewer);
  await ask('DELETE', `${path}/grants/${given.grant_id}`);
  for (const requester of ['alice', 'admin', viewer]) await ask('GET', path, undefined, requester);
  await ask('POST', `${path}/ticket`, {}, viewer);
  const before = client.sent.length;
  const done = ask('POST', `${path}/actions/open`, { params: { a: 1 } }, viewer);
  await expect.poll(() => client.sent.length).toBe(before + 1);
  await client.result(client.last, { b: 2 });
  await done;
  const brief = { command_id: 'site-lost', wait_for: 'admitted', respond_within_ms: 1000 };
  await ask('POST', `${path}/actions/open`, brief, viewer);
  await relay.clock.advance(1000);
  await ask('POST', `${path}/actions/open`, brief, viewer);
  await ask('DELETE', path);
  await ask('DELETE', '/sites/board');
}

const invokePath = '/connections/alice/tab/actions/open';

/** The answers of routes that the store of the run does not have: it refuses them. */
const LACKING = [
  ...(HAS_PAUSES ? [] : ['DELETE /pauses/{pause_id} 200', 'POST /pauses 201']),
  ...(HAS_REVOCATIONS ? [] : ['POST /revocations 201']),
  ...(HAS_DEVICES
    ? []
    : [
        'DELETE /devices/{user_id}/{client_id} 200',
        'POST /devices/token 200',
        'POST /enrolments 201',
        'POST /enrolments/decide 200',
        'POST /enrolments/lookup 200',
        'PUT /devices/{user_id}/{client_id} 200',
      ]),
].toSorted();

describe('descriptions', () => {
  test('a real answer of every route, in each success status, matches its OpenAPI description', async () => {
    await using relay = await startRestRelay({ rawMessages: true });
    const client = await connect(relay.core, user('alice'), { metadata: '{"a":1}' as never });
    const contexts = snapshot(worker('a', { metadata: '[1]' as never }), worker('b', { taskId: 't1', windowId: 'w1' }));
    await client.session.report(report(contexts, snapshot(browserWindow('w1', { capacity: 2 }))));
    const waiting = relay.ask({ method: 'POST', path: invokePath, requester: 'alice', body: { command_id: 'done' } });
    await expect.poll(() => client.sent.length).toBe(1);
    await relay.ask('/rpc/pending?check_instance=i2');
    await relay.ask('/rpc/pending/count-by-node');
    await client.error(client.last, 'handler_failed');
    await waiting;
    for (const command_id of ['live', 'lost']) {
      const body = { command_id, wait_for: 'admitted', respond_within_ms: command_id === 'lost' ? 1000 : 30_000 };
      await relay.ask({ method: 'POST', path: invokePath, requester: 'alice', body });
    }
    await relay.clock.advance(1000);
    const again = {
      method: 'POST',
      path: invokePath,
      requester: 'alice',
      body: { command_id: 'lost', wait_for: 'admitted', respond_within_ms: 1000 },
    };
    await relay.ask(again);
    for (const id of ['done', 'live', 'lost', 'lost?within_ms=0']) await relay.ask(`/commands/alice/tab/${id}`);
    await relay.ask({ method: 'POST', path: '/commands/alice/tab/live/cancel', requester: 'alice', body: {} });
    const event = { kind: 'event', stream_suffix: 'sites/a/events', client_id: 'tab', instance_id: 'i1' };
    for (const body of [event, [event, { ...event, stream_suffix: 'clients/tab' }]])
      await relay.ask({ method: 'POST', path: '/ingest', requester: 'alice', body });
    for (const path of [
      '/users',
      '/users/alice',
      '/connections',
      '/connections/alice/tab/actions',
      '/actions',
      '/rpc/pending/count',
      '/history/streams?user_id=alice',
      '/history/messages?stream=alice/clients/tab&include_payload=true',
      '/history/command/alice/done?include_payload=true',
      '/history/raw-messages',
      '/history/raw-messages?values_only=true&stream=alice/clients/tab',
      '/dedup/stats',
      '/dedup/backend',
      '/delivery/summary',
      '/revocations',
      '/devices',
      '/delivery/nodes',
      '/delivery/tenants',
      '/delivery/status?user_id=alice&client_id=tab&command_id=done',
      '/delivery/commands?user_id=alice',
      '/delivery/failures?user_id=alice',
      '/commands?id_or_trace=done',
      '/contexts',
      '/contexts/count',
      '/browser-windows',
      '/browser-windows/count',
      '/browser-windows/w1?user_id=alice',
      '/workers?user_id=alice',
      '/workers/available?user_id=alice',
      '/workers/tasks/t1?user_id=alice',
    ]) {
      expect([path, (await relay.ask(path)).status]).toEqual([path, 200]);
    }
    await relay.ask({ method: 'POST', path: '/connections/alice/tab/actions/open/preflight', body: {} });
    const pause = { client_id: 'tab', user_id: 'alice', reason: 'wait', queued: 'cancel', running: 'leave' };
    const paused = await relay.ask({ method: 'POST', path: '/pauses', body: pause });
    await relay.ask('/pauses');
    await relay.ask({ method: 'DELETE', path: `/pauses/${paused.body.pause_id ?? 'none'}` });
    const key = await newDeviceKey(() => relay.clock.now());
    const device = { name: 'Hall', client_type: 'browser', proof: await key.prove('enrol') };
    const begun = await relay.ask({ method: 'POST', path: '/enrolments', requester: '', body: device });
    const code = begun.body.user_code;
    const decision = { code, decision: 'confirm', user_id: 'alice' };
    for (const [method, path, body] of [
      ['POST', '/enrolments/lookup', { code }],
      ['POST', '/enrolments/decide', decision],
      ['POST', '/devices/token', { proof: await key.prove('token') }],
      ['GET', '/devices', undefined],
      ['PUT', '/devices/alice/hall', { name: 'Entrance' }],
      ['DELETE', '/devices/alice/hall', undefined],
      ['POST', '/revocations', { token_id: 't1', reason: 'lost' }],
    ] as const)
      await relay.ask({ method, path, ...(body && { body }) });
    await askSites(relay, client);
    // These requests come last, because the rows that they remove do not return.
    for (const [path, body] of [
      ['/connections/alice/tab/disconnect', { reason: 'over' }],
      ['/delivery/nodes/n1/drain', { within_ms: 0 }],
    ] as const)
      await meanwhile(relay.clock, relay.ask({ method: 'POST', path, body }));
    const missing = relay.handler.operations
      .flatMap(({ method, path, body }) => {
        const invokes = /\/actions\/\{\w+\}$/.test(path) || path === '/commands/{user_id}/{client_id}/{command_id}';
        const done = body.variants.some(({ kind }) => kind === 'created') ? 201 : 200;
        return (invokes ? [200, 202, 504] : [done]).map((status) => `${method} ${path} ${status}`);
      })
      .filter((answer) => !relay.answered.has(answer));
    expect(missing.toSorted()).toEqual(LACKING);
  });
});

describe('access', () => {
  test('every route refuses a request without a token with 401 and a wrong scope with 403, whatever else is wrong', async () => {
    await using relay = await startRestRelay();
    for (const { method, path, access } of relay.handler.operations) {
      const url = `${path.replaceAll(/\{\w+\}/g, '%00')}?nonsense`;
      const statuses: Record<string, number> = {};
      for (const requester of ['', 'alice:connect', 'alice:invoke', 'alice:host', 'admin', 'grant:s:g']) {
        const reply = await relay.ask({ method, path: url, requester, ...(method === 'POST' && { body: [] }) });
        statuses[requester] = reply.status;
      }
      const may = (...roles: string[]): number => ([...roles, 'OPEN'].includes(access) ? 400 : 403);
      expect([path, statuses]).toEqual([
        path,
        {
          '': access === 'OPEN' ? 400 : 401,
          'alice:connect': may('GRANT', 'ANY'),
          'alice:invoke': may('INVOKE', 'GRANT', 'ANY'),
          'alice:host': may('HOST', 'GRANT', 'ANY'),
          admin: may('ADMIN', 'INVOKE', 'GRANT', 'ANY'),
          'grant:s:g': may('GRANT', 'ANY'),
        },
      ]);
    }
  });
});
