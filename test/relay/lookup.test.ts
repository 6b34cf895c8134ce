/**
 * Tests how a command is found by an id or a trace, how failures are grouped, and that lists and waits name the caller.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TRACE_MAX_CHARS } from '../../src/core/limits.ts';
import { ADMIN } from '../http/kit/http-relay.ts';
import { codeOf, startTestRelay, until, type TestRelay, type Welcomed } from './kit/test-relay.ts';

let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay();
});
afterEach(() => at[Symbol.asyncDispose]());

/** Admits a command for a client that does not exist, so that it waits for it. */
async function admit(commandId: string, { user = 'alice', client = 'away', more = {}, as = '' } = {}): Promise<void> {
  const body = { command_id: commandId, wait_for: 'admitted', connect_within_ms: 300_000, ...more };
  const answer = await at.post(`/connections/${user}/${client}/actions/open`, body, as || user);
  expect([commandId, answer.status]).toEqual([commandId, 202]);
  await at.clock.advance(1);
}

/** Returns an id that begins with this time, as the relay and its libraries make ids. */
function idAt(ms: number, end: string): string {
  const time = Math.floor(ms).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-0000${end}`;
}

describe('a command is found', () => {
  const FIND = `query ($text: ID!, $first: Int! = 100, $after: String) {
    findCommands(idOrTrace: $text, first: $first, after: $after) {
      nodes { userId clientId commandId } pageInfo { hasNextPage endCursor } completeness { complete } } }`;
  const page = async (text: string, variables = {}, requester = 'admin') =>
    (await at.data(FIND, { requester, variables: { text, ...variables } })).findCommands;

  /** Reads all pages, and returns what they have as `user/client/command`. */
  async function found(text: string, requester = 'admin'): Promise<readonly string[]> {
    const names: string[] = [];
    for (let after: string | null = null; ;) {
      const { nodes, pageInfo } = await page(text, { first: 1, after }, requester);
      for (const { userId, clientId, commandId } of nodes) names.push(`${userId}/${clientId}/${commandId}`);
      if (!pageInfo.hasNextPage) return names;
      after = pageInfo.endCursor;
    }
  }

  it('by its whole id, by an end of it and by its trace, among commands of all users for an administrator', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c';
    await admit('order-20480001', { more: { trace_id: trace } });
    await admit('order-20480002', { user: 'bob' });
    await admit('20480001', { user: 'bob', more: { trace_id: trace } });
    expect(await found('order-20480002')).toEqual(['bob/away/order-20480002']);
    expect(await found('20480001')).toEqual(['bob/away/20480001', 'alice/away/order-20480001']);
    expect(await found(trace)).toEqual(['bob/away/20480001', 'alice/away/order-20480001']);
    // Less than eight characters are compared with the whole id, and a part of a trace id with nothing.
    for (const text of ['0480001', 'order', trace.slice(1)]) expect([text, await found(text)]).toEqual([text, []]);
  });

  it('for a user among the own commands only, and what is foreign looks as what is absent', async () => {
    await admit('order-20480001');
    await admit('order-20480002', { user: 'bob' });
    expect(await found('20480001', 'alice')).toEqual(['alice/away/order-20480001']);
    for (const [requester, text] of [
      ['alice', '20480002'],
      ['alice', '99999999'],
      ['bob', '20480001'],
    ] as const)
      expect(await page(text, {}, requester)).toEqual({
        nodes: [],
        pageInfo: { hasNextPage: false, endCursor: null },
        completeness: { complete: true },
      });
    const rest = await at.rest('/commands?id_or_trace=20480001', { requester: 'alice' });
    expect(rest.json?.['items']).toMatchObject([
      { command_id: 'order-20480001', caller: { kind: 'user', name: 'alice' } },
    ]);
    expect((await at.rest('/commands?id_or_trace=20480001', { requester: 'bob' })).json?.['items']).toEqual([]);
    expect((await at.graphql(FIND, { requester: 'nobody', variables: { text: 'x' } })).code).toBe('unauthenticated');
    for (const path of [
      '/commands',
      '/commands?id_or_trace=',
      `/commands?id_or_trace=${'x'.repeat(TRACE_MAX_CHARS + 1)}`,
    ])
      expect([path, codeOf(await at.rest(path))]).toEqual([path, 'invalid_argument']);
  });

  it('around the time of its id first, and then wherever the id was used later', async () => {
    const id = idAt(at.clock.now(), '00000001');
    await admit(id, { client: 'first' });
    await at.clock.advance(120_000);
    await admit('between');
    await admit(id, { client: 'later' });
    const first = await page(id);
    expect(first.nodes.map(({ clientId }: { readonly clientId: string }) => clientId)).toEqual(['first']);
    expect(first.pageInfo.hasNextPage).toBe(true);
    const rest = await page(id, { after: first.pageInfo.endCursor });
    expect(rest.nodes.map(({ clientId }: { readonly clientId: string }) => clientId)).toEqual(['later']);
    expect(rest.pageInfo.hasNextPage).toBe(false);
    expect(await found(id)).toEqual([`alice/first/${id}`, `alice/later/${id}`]);
    // An id whose time is wrong is found as well, by the first request.
    const wrong = idAt(at.clock.now() - 86_400_000, '00000002');
    await admit(wrong);
    expect((await page(wrong)).nodes).toMatchObject([{ commandId: wrong }]);
    // A cursor belongs to its search and its requester.
    const { endCursor: after } = first.pageInfo;
    expect((await at.graphql(FIND, { variables: { text: wrong, after } })).code).toBe('invalid_cursor');
    expect((await at.graphql(FIND, { requester: 'alice', variables: { text: id, after } })).code).toBe(
      'invalid_cursor',
    );
  });

  it('by the filter of the list of commands, together with its other members', async () => {
    await admit('order-20480001');
    await admit('20480001', { user: 'bob' });
    const listed = async (query: string) =>
      (await at.rest(`/delivery/commands?${query}`)).json?.['items'] as readonly { readonly user_id: string }[];
    expect((await listed('id_or_trace=20480001')).map(({ user_id }) => user_id)).toEqual(['alice', 'bob']);
    expect((await listed('id_or_trace=20480001&user_id=bob')).map(({ user_id }) => user_id)).toEqual(['bob']);
    expect(await listed('id_or_trace=20480001&outcomes=failed')).toEqual([]);
  });
});

describe('failures', () => {
  const FAILURES = `query ($by: [FailureKey!]! = [ACTION, CODE], $filter: DeliveryFilter, $first: Int! = 20) {
    delivery { failures(by: $by, filter: $filter, first: $first) {
      groups { action code userId clientId nodeId count share last { commandId } }
      groupCount count outcomes { outcome count } completeness { complete } } } }`;
  const read = async (variables = {}) => (await at.data(FAILURES, { variables })).delivery.failures;
  let tab: Welcomed;

  /** Calls `tab` and ends the call with this code; null: with a result. */
  async function called(
    commandId: string,
    action: string,
    code: 'handler_failed' | 'lease_busy' | null,
  ): Promise<void> {
    await at.post(`/connections/alice/tab/actions/${action}`, { command_id: commandId, wait_for: 'admitted' });
    await tab.next('command');
    if (code === null) tab.send({ type: 'result', command_id: commandId }, null);
    else tab.send({ type: 'error', command_id: commandId, code, message: 'No.' });
    const ENDED = `{ command(userId: "alice", clientId: "tab", commandId: "${commandId}") { outcome } }`;
    await until(async () => (await at.data(ENDED))['command'].outcome !== null);
    await at.clock.advance(1);
  }

  beforeEach(async () => {
    const actions = [{ name: 'open' }, { name: 'close' }];
    tab = await at.client({ client_id: 'tab', payload: { actions } });
    await called('c1', 'open', 'handler_failed');
    await called('c2', 'open', null);
    await called('c3', 'close', 'handler_failed');
    await called('c4', 'open', 'handler_failed');
    await called('c5', 'open', 'lease_busy');
    await admit('c6', { user: 'bob', more: { connect_within_ms: 1_000 } });
    await at.clock.advance(3_000);
    await until(async () => (await read()).count === 5);
  });

  it('are grouped by action and code, the largest group first, each with its share and its last call', async () => {
    const none = { userId: null, clientId: null, nodeId: null };
    const failures = await read();
    expect(failures.groups[0]).toEqual({
      ...{ ...none, action: 'open', code: 'handler_failed' },
      ...{ count: 2, share: 0.4, last: { commandId: 'c4' } },
    });
    expect(failures.groups.slice(1)).toMatchObject([
      { action: 'open', code: 'connect_timeout', count: 1, last: { commandId: 'c6' } },
      { action: 'open', code: 'lease_busy', count: 1 },
      { action: 'close', code: 'handler_failed', count: 1 },
    ]);
    expect(failures).toMatchObject({ groupCount: 4, count: 5, completeness: { complete: true } });
    expect(new Set(failures.outcomes.map(({ outcome, count }: any) => `${outcome} ${count}`))).toEqual(
      new Set(['FAILED 4', 'EXPIRED 1']),
    );
    expect(await read({ first: 1 })).toMatchObject({ groups: [{ count: 2 }], groupCount: 4, count: 5 });
  });

  it('are grouped by any other key, and counted within a filter', async () => {
    const { groups } = await read({ by: ['CLIENT'] });
    expect(groups).toMatchObject([
      { userId: 'alice', clientId: 'tab', action: null, count: 4, share: 0.8 },
      { userId: 'bob', clientId: 'away', action: null, count: 1, share: 0.2 },
    ]);
    const nodes = await read({ by: ['NODE'] });
    expect(nodes.groups).toMatchObject([
      { nodeId: expect.any(String), count: 4 },
      { nodeId: null, count: 1 },
    ]);
    expect(await read({ by: ['CODE'], filter: { action: 'close' } })).toMatchObject({
      groups: [{ code: 'handler_failed', count: 1, share: 1 }],
    });
    expect(await read({ filter: { outcome: 'COMPLETED' } })).toMatchObject({
      groups: [{ action: 'open', code: null }],
    });
    expect(await read({ filter: { outcomes: ['EXPIRED'] } })).toMatchObject({ count: 1 });
    expect(await read({ filter: { caller: 'nobody' } })).toMatchObject({ groups: [], groupCount: 0, count: 0 });
  });

  it('are the same over REST, for administrators, and wrong arguments are named', async () => {
    const { json } = await at.rest('/delivery/failures?by=action&outcomes=failed&limit=1');
    expect(json).toMatchObject({
      items: [{ action: 'open', code: null, count: 3, share: 0.75, last: { command_id: 'c5' } }],
      group_count: 2,
      count: 4,
      outcomes: [{ outcome: 'failed', count: 4 }],
    });
    expect((await at.rest('/delivery/failures', { requester: 'alice' })).status).toBe(403);
    for (const variables of [{ by: [] }, { first: 0 }, { first: 101 }, { filter: { outcomes: [] } }])
      expect((await at.graphql(FAILURES, { variables })).code).toBe('invalid_argument');
  });
});

describe('the caller', () => {
  const WAITS = `query ($filter: PendingRpcFilter) {
    pendingRpcs(filter: $filter) { nodes { commandId caller { kind name } } }
    pendingRpcCount(filter: $filter) { count } }`;

  it('of each wait is the one that waits, in lists and as a filter over every interface', async () => {
    const tab = await at.client({ client_id: 'tab' });
    const waits = [at.post('/connections/alice/tab/actions/open', { command_id: 'c1' })];
    await tab.next('command');
    const token = ADMIN;
    const path = '/commands/alice/tab/c1?wait_for=completed&within_ms=60000';
    waits.push(at.ask(path, { token }));
    const read = async (filter = {}) => at.data(WAITS, { variables: { filter } });
    await until(async () => (await read())['pendingRpcCount'].count === 2);
    const { pendingRpcs } = await read();
    const [own, other] = pendingRpcs.nodes;
    expect(own).toEqual({ commandId: 'c1', caller: { kind: 'USER', name: 'alice' } });
    expect(other).toMatchObject({ commandId: 'c1', caller: { kind: 'ADMIN' } });
    const { name } = other.caller;
    expect((await read({ callerKind: 'ADMIN' }))['pendingRpcs'].nodes).toEqual([other]);
    expect((await read({ caller: name }))['pendingRpcCount'].count).toBe(1);
    expect((await read({ caller: 'alice', callerKind: 'ADMIN' }))['pendingRpcs'].nodes).toEqual([]);
    const rest = await at.rest('/rpc/pending?caller=alice&caller_kind=user');
    expect(rest.json?.['items']).toMatchObject([{ command_id: 'c1', caller: { kind: 'user', name: 'alice' } }]);
    expect((await at.rest(`/rpc/pending/count?caller=${name}`)).json).toMatchObject({ count: 1 });
    tab.send({ type: 'result', command_id: 'c1' }, null);
    await Promise.all(waits);
  });

  it('of each command is listed, and selects commands', async () => {
    await admit('c1');
    await admit('c2', { as: 'admin' });
    const listed = async (query: string) =>
      ((await at.rest(`/delivery/commands?${query}`)).json?.['items'] as readonly Record<string, any>[]).map(
        ({ command_id, caller }) => [command_id, caller.kind],
      );
    expect(await listed('order=newest')).toEqual([
      ['c2', 'admin'],
      ['c1', 'user'],
    ]);
    for (const order of ['newest', 'key']) {
      expect(await listed(`order=${order}&caller=alice`)).toEqual([['c1', 'user']]);
      expect(await listed(`order=${order}&caller_kind=admin`)).toEqual([['c2', 'admin']]);
      expect(await listed(`order=${order}&caller=alice&caller_kind=admin`)).toEqual([]);
    }
    expect(codeOf(await at.rest('/delivery/commands?caller='))).toBe('invalid_argument');
  });
});
