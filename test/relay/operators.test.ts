/** Tests what operators read: the server, its limits, filtered lists, newest commands and reconnects. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';
import { VERSION } from '../../src/version.ts';

let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay({ label: 'staging' });
});
afterEach(() => at[Symbol.asyncDispose]());

function itemsOf({ text }: { readonly text: string }): readonly Record<string, unknown>[] {
  return JSON.parse(text).items;
}

describe('the server that answers', () => {
  const SERVER = `{ server { version label mode nodeId startedAt features
    limits { pageRows { min max default } documentCost bodyBytes connectWithinMs { max } idempotencyWindowMs eventStreams } } }`;

  it('tells its version, label, mode and start to every signed-in requester', async () => {
    const { viewer } = await at.data('{ viewer { nodeId mode } }');
    for (const requester of ['admin', 'alice:invoke']) {
      const { server } = await at.data(SERVER, { requester });
      expect(server).toMatchObject({ version: VERSION, label: 'staging', ...viewer, features: expect.any(Array) });
      expect(Date.parse(server.startedAt)).toBeLessThanOrEqual(at.clock.now() + 1_000);
    }
    expect((await at.graphql(SERVER, { requester: 'nobody' })).code).toBe('unauthenticated');
    expect((await at.graphql(SERVER, { requester: 'alice:connect' })).code).toBe('forbidden');
  });

  it('states the limits that it enforces for the requester', async () => {
    const admin = (await at.data(SERVER)).server.limits;
    const user = (await at.data(SERVER, { requester: 'alice' })).server.limits;
    expect(admin.documentCost).toBeGreaterThan(user.documentCost);
    expect(admin.eventStreams).toBeGreaterThan(user.eventStreams);
    const over = admin.pageRows.max + 1;
    expect((await at.graphql(`{ connections(first: ${over}) { nodes { clientId } } }`)).code).toBe('invalid_argument');
    expect((await at.graphql(`{ connections(first: ${over - 1}) { nodes { clientId } } }`)).code).toBe(undefined);
    const body = JSON.stringify({ query: '{ __typename }', variables: { x: 'x'.repeat(admin.bodyBytes) } });
    const headers = { 'content-type': 'application/json' };
    expect((await at.rest('/graphql', { method: 'POST', body, headers })).status).toBe(413);
  });
});

describe('lists of connections', () => {
  it('are filtered alike over GraphQL and REST, within what the requester may see', async () => {
    const action = { name: 'tab.open' };
    await at.client({ client_id: 'tab', payload: { actions: [action], metadata: { room: 12 } } });
    await at.client({
      client_id: 'phone',
      client_type: 'mobile',
      payload: { metadata: { room: 13, labels: { floor: 'two' } } },
    });
    await at.client({ user: 'bob', client_id: 'bobs', payload: { metadata: { room: 12 } } });
    const graphql = async (filter: string, requester: string): Promise<string[]> =>
      (await at.data(`{ connections(${filter}) { nodes { clientId } } }`, { requester })).connections.nodes.map(
        ({ clientId }: { clientId: string }) => clientId,
      );
    const rest = async (query: string): Promise<unknown[]> =>
      itemsOf(await at.rest(`/connections?${query}`)).map(({ client_id }) => client_id);
    for (const [filter, query, clients] of [
      ['clientType: MOBILE', 'client_type=mobile', ['phone']],
      ['action: "tab.open"', 'action=tab.open', ['tab']],
      ['labels: ["room=12"]', 'labels=room%3D12', ['tab', 'bobs']],
      ['labels: ["room=13", "floor=two"]', 'labels=room%3D13,floor%3Dtwo', ['phone']],
      ['text: "TW"', 'text=TW', ['phone']],
      ['text: "bob"', 'text=bob', ['bobs']],
    ] as const) {
      expect([filter, await graphql(filter, 'admin')]).toEqual([filter, clients]);
      expect([query, await rest(query)]).toEqual([query, clients]);
      expect(await graphql(filter, 'alice')).toEqual(clients.filter((client) => client !== 'bobs'));
    }
    for (const query of ['labels=room', 'text=', 'action=1', `text=${'x'.repeat(129)}`])
      expect([query, (await at.rest(`/connections?${query}`)).json?.['code']]).toEqual([query, 'invalid_argument']);
  });
});

describe('the newest commands', () => {
  const NEWEST = `query ($first: Int! = 100, $after: String, $filter: DeliveryFilter) {
    delivery { commands(order: NEWEST, first: $first, after: $after, filter: $filter) {
      nodes { commandId action clientType durationMs code message outcome } pageInfo { hasNextPage endCursor } } } }`;

  it('show what was called, on which client, how long it took and why it failed', async () => {
    const tab = await at.client({ client_id: 'tab', client_type: 'browser' });
    const path = '/connections/alice/tab/actions/open';
    await at.post(path, { command_id: 'runs', wait_for: 'admitted' });
    await at.clock.advance(10);
    await at.post(path, { command_id: 'fails', wait_for: 'admitted' });
    await tab.next('command');
    await tab.next('command');
    await at.clock.advance(250);
    tab.send({ type: 'error', command_id: 'fails', code: 'handler_failed', message: 'There is no such tab.' });
    const read = async (variables = {}) => (await at.data(NEWEST, { variables })).delivery.commands;
    await until(async () => (await read()).nodes[0]?.outcome === 'FAILED');
    const [failed, live] = (await read()).nodes;
    const both = { action: 'open', clientType: 'BROWSER' };
    expect(live).toEqual({ ...both, commandId: 'runs', durationMs: null, code: null, message: null, outcome: null });
    expect(failed).toMatchObject({ ...both, commandId: 'fails', code: 'handler_failed', outcome: 'FAILED' });
    expect(failed.message).toBe('There is no such tab.');
    expect(failed.durationMs).toBeGreaterThanOrEqual(250);
    const page = await read({ first: 1 });
    expect(page.pageInfo.hasNextPage).toBe(true);
    const { endCursor: after } = page.pageInfo;
    expect((await read({ first: 1, after })).nodes).toEqual([live]);
    expect((await at.graphql(NEWEST, { variables: { after, filter: { action: 'open' } } })).code).toBe(
      'invalid_cursor',
    );
    const query = 'order=newest&client_type=browser&code=handler_failed&action=open';
    expect(itemsOf(await at.rest(`/delivery/commands?${query}`))).toMatchObject([
      { command_id: 'fails', action: 'open', client_type: 'browser', code: 'handler_failed' },
    ]);
    const byKey = itemsOf(await at.rest('/delivery/commands?order=key'));
    expect(byKey.map(({ command_id }) => command_id)).toEqual(['fails', 'runs']);
    expect((await at.graphql(NEWEST, { requester: 'alice' })).code).toBe('forbidden');
  });
});

describe('clients that lead by a measure', () => {
  const TOP = `query ($by: ClientMeasure!, $first: Int! = 10) { topClients(by: $by, first: $first) {
    items { clientId queued inFlight pendingRpcCount reconnectsLastHour connection { status pendingRpcCount } }
    complete completeness { complete } } }`;
  const top = async (by: string) => (await at.data(TOP, { variables: { by } })).topClients;

  it('are those with a backlog, connected or not, with the number of callers that wait', async () => {
    const tab = await at.client({ client_id: 'tab' });
    await at.client({ client_id: 'idle' });
    await at.post('/connections/alice/tab/actions/open', { wait_for: 'admitted' });
    await tab.next('command');
    void at.post('/connections/alice/away/actions/open', { connect_within_ms: 60_000 });
    void at.post('/connections/alice/away/actions/open', { connect_within_ms: 60_000 });
    await until(async () => (await top('BACKLOG')).items[0]?.pendingRpcCount === 2);
    const none = { reconnectsLastHour: 0, pendingRpcCount: 0 };
    expect(await top('BACKLOG')).toEqual({
      items: [
        { ...none, clientId: 'away', queued: 2, inFlight: 0, pendingRpcCount: 2, connection: null },
        {
          ...{ ...none, clientId: 'tab', queued: 0, inFlight: 1 },
          connection: { status: 'CONNECTED', pendingRpcCount: 0 },
        },
      ],
      complete: true,
      completeness: { complete: true },
    });
  });

  it('are those that were silent for longest, or that reconnected most', async () => {
    await at.client({ client_id: 'first' });
    await at.clock.advance(5_000);
    await at.client({ client_id: 'second', instance_id: 'i0' });
    await at.client({ client_id: 'second', instance_id: 'i1' });
    await until(async () => (await top('RECONNECTS')).items.length === 1);
    expect((await top('RECONNECTS')).items).toMatchObject([{ clientId: 'second', reconnectsLastHour: 1 }]);
    expect((await top('SILENCE')).items).toMatchObject([{ clientId: 'first' }, { clientId: 'second' }]);
  });

  it('are for administrators, and at most 100', async () => {
    const variables = { by: 'SILENCE', first: 101 };
    expect((await at.graphql(TOP, { variables })).code).toBe('invalid_argument');
    expect((await at.graphql(TOP, { variables: { by: 'SILENCE' }, requester: 'alice' })).code).toBe('forbidden');
  });
});

describe('clients that reconnect', () => {
  const FLAPPING = '{ flapping(first: 2) { items { userId clientId reconnects connection { status } } complete } }';

  it('show how often they reconnected, and administrators see the worst', async () => {
    await at.client({ client_id: 'steady' });
    for (let i = 0; i < 3; i++) await at.client({ client_id: 'flaps', instance_id: `i${i}` });
    await at.client({ user: 'bob', client_id: 'worse', instance_id: 'i0' });
    for (let i = 1; i <= 4; i++) await at.client({ user: 'bob', client_id: 'worse', instance_id: `i${i}` });
    const read = async () => (await at.data(FLAPPING)).flapping;
    await until(async () => (await read()).items[0]?.reconnects === 4 && (await read()).items[1]?.reconnects === 2);
    expect(await read()).toEqual({
      items: [
        { userId: 'bob', clientId: 'worse', reconnects: 4, connection: { status: 'CONNECTED' } },
        { userId: 'alice', clientId: 'flaps', reconnects: 2, connection: { status: 'CONNECTED' } },
      ],
      complete: true,
    });
    const own = '{ connections { nodes { clientId reconnectsLastHour } } }';
    expect((await at.data(own, { requester: 'alice' })).connections.nodes).toEqual([
      { clientId: 'flaps', reconnectsLastHour: 2 },
      { clientId: 'steady', reconnectsLastHour: 0 },
    ]);
    expect((await at.graphql(FLAPPING, { requester: 'alice' })).code).toBe('forbidden');
    expect((await at.graphql('{ flapping(first: 101) { complete } }')).code).toBe('invalid_argument');
  });
});
