/** Tests the documented interface of users and connections, sentence by sentence. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { advertisement, connect, user } from '../kit/core.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';

let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay({ nodeId: 'n1' });
});
afterEach(() => at[Symbol.asyncDispose]());

const json = async (path: string): Promise<any> => JSON.parse((await at.rest(path)).text);
const live = (userId: string, clientId: string, names: readonly string[] = ['open']) =>
  connect(at.callboard.core, user(userId), { clientId, actions: names.map(advertisement) });
/** Invokes a command whose client is not connected. It waits for the client, and so creates a stream. */
const park = (userId: string, clientId: string) =>
  at.callboard.core.rpc.invoke(user(userId), {
    userId,
    clientId,
    action: 'open',
    params: null,
    waitFor: 'admitted',
    connectWithinMs: 300_000,
  });

describe('GET /users', () => {
  it('Rows of canonical user scope with connection and stream counts and a completeness block, merged from bounded observations of registry and history inspectors', async () => {
    await live('alice', 'tab');
    await live('alice', 'phone');
    await park('bob', 'away');
    await live('carol', 'tab');
    await park('carol', 'tab');
    const { items, next_cursor, completeness } = await json('/users');
    const rows = items.map((row: any) => [
      row.user_id,
      row.connection_count,
      row.stream_count,
      row.completeness.complete,
    ]);
    expect(rows).toEqual([
      ['alice', 2, 0, true],
      ['bob', 0, 1, true],
      ['carol', 1, 1, true],
    ]);
    expect(next_cursor).toBeNull();
    expect(completeness.sources).toMatchObject([
      { source: 'connections', observed: 3, complete: true },
      { source: 'streams', observed: 2, complete: true },
    ]);
  });
});

describe('A user summary', () => {
  it('adds up to 100 connection snapshots, up to 100 stream summaries, a count of pending RPCs, and identifies which connection or stream sources were truncated', async () => {
    for (let i = 0; i < 101; i++) await live('alice', `tab-${i}`);
    for (let i = 0; i < 100; i++) await park('alice', `tab-${i}`);
    const waiting = at.post('/connections/alice/tab-7/actions/open', { command_id: 'c1' });
    await until(async () => (await json('/users/alice')).pending_rpc_count === 1);
    const summary = await json('/users/alice');
    expect([summary.connection_count, summary.connections.items.length]).toEqual([101, 100]);
    expect([summary.stream_count, summary.streams.items.length]).toEqual([100, 100]);
    expect(summary.completeness.complete).toBe(false);
    expect(summary.completeness.sources).toMatchObject([
      { source: 'connections', complete: false, observed: 100, limit: 100, reason: 'limit_reached' },
      { source: 'streams', complete: true, observed: 100, reason: null },
    ]);
    await park('alice', 'tab-100');
    expect((await json('/users/alice')).completeness.sources).toMatchObject([
      { source: 'connections', complete: false },
      { source: 'streams', complete: false, observed: 100, limit: 100, reason: 'limit_reached' },
    ]);
    await at.clock.advance(30_000);
    await waiting;
  });

  it('is complete if everything fits', async () => {
    await live('alice', 'tab');
    const { connections, streams, completeness, pending_rpc_count } = await json('/users/alice');
    expect([connections.items.length, streams.items.length, pending_rpc_count]).toEqual([1, 0, 0]);
    expect(completeness).toMatchObject({ complete: true, sources: [{ reason: null }, { reason: null }] });
  });
});

describe('A connection snapshot', () => {
  it('holds stable client identity, current runtime instance identity, owning node, timestamps, client type, metadata, advertised action names, derived heartbeat indicator and derived recent-replacement indicator', async () => {
    const metadata = { host: 'desk', big: 12345678901234567890n.toString(), UPPER_CASE: [null, 1.5] };
    const hello = { client_id: 'tab', client_type: 'web' as const };
    await at.client({
      ...hello,
      instance_id: 'i1',
      payload: { metadata, actions: [{ name: 'open' }, { name: 'close' }] },
    });
    await at.clock.advance(1000);
    await at.client({
      ...hello,
      instance_id: 'i2',
      payload: { metadata, actions: [{ name: 'open' }, { name: 'close' }] },
    });
    const now = new Date(at.clock.now()).toISOString();
    const { items } = await json('/connections');
    const snapshot = {
      user_id: 'alice',
      client_id: 'tab',
      instance_id: 'i2',
      node_id: 'n1',
      status: 'connected',
      connected_at: now,
      last_seen_at: now,
      disconnected_at: null,
      metadata,
      action_names: ['open', 'close'],
      heartbeat: 'ok',
      recently_replaced: true,
      replaced_instance_id: 'i1',
    };
    expect(items).toMatchObject([snapshot]);
    await at.clock.advance(30_000);
    expect((await json('/connections')).items).toMatchObject([{ heartbeat: 'late', status: 'connected' }]);
  });

  it("has the status connected, stale or disconnected, depending on its client's signs of life", async () => {
    await at.client();
    const statuses: unknown[] = [];
    for (let second = 0; second <= 121; second++) {
      const [row] = (await json('/connections')).items;
      if (row?.status !== statuses.at(-1)) statuses.push(row?.status);
      await at.clock.advance(1000);
    }
    expect(statuses).toEqual(['connected', 'stale', 'disconnected', undefined]);
  });
});

describe('GET /connections', () => {
  it('takes optional user_id, node_id and status, each of which narrows', async () => {
    await live('alice', 'tab');
    const gone = await live('alice', 'phone');
    await live('bob', 'tab');
    await gone.session.closed('client_closed');
    const ids = async (query: string) =>
      (await json(`/connections?${query}`)).items.map((row: any) => `${row.user_id}/${row.client_id}`);
    expect(await ids('')).toEqual(['alice/phone', 'alice/tab', 'bob/tab']);
    expect(await ids('user_id=alice')).toEqual(['alice/phone', 'alice/tab']);
    expect(await ids('status=connected')).toEqual(['alice/tab', 'bob/tab']);
    expect(await ids('user_id=alice&status=disconnected')).toEqual(['alice/phone']);
    expect(await ids('status=stale')).toEqual([]);
    expect(await ids('node_id=n1&user_id=bob')).toEqual(['bob/tab']);
    expect(await ids('node_id=n2')).toEqual([]);
  });

  it('takes limit, an integer 1 to 1000, and is cursor-paginated', async () => {
    for (const name of ['a', 'b', 'c']) await live('alice', name);
    for (const limit of ['0', '1001', '-1', '1.5', 'many']) {
      const answer = await at.rest(`/connections?limit=${limit}`);
      expect([limit, answer.status, answer.json?.['errors']]).toEqual([
        limit,
        400,
        [{ parameter: 'limit', detail: expect.any(String) }],
      ]);
    }
    expect((await json('/connections?limit=1000')).items).toHaveLength(3);
    const first = await json('/connections?limit=1');
    const second = await json(`/connections?limit=2&cursor=${first.next_cursor}`);
    expect([...first.items, ...second.items].map(({ client_id }: any) => client_id)).toEqual(['a', 'b', 'c']);
    expect(second.next_cursor).toBeNull();
  });
});

describe('actions', () => {
  it('Action name (always present); optionally summary, description, version, argument-check flag, schema, metadata: preserved from the client hello', async () => {
    const full = {
      name: 'lamp.set',
      summary: 'Switches',
      description: 'Switches the lamp\non or off',
      version: '1.0.0-rc',
      checks_arguments: false,
      schema: { type: 'object', enum: ['CONNECTED', null], 'x-unknown': { snake_case: 1 } },
      metadata: [{ camelCase: true }, 1.25],
      guards: { approval: true, lease: false },
      effects: { read_only: true, destructive: null, idempotent: true, open_world: null },
    };
    await at.client({ payload: { actions: [full, { name: 'z' }, { name: 'a' }] } });
    const bare = {
      summary: null,
      description: null,
      version: null,
      checks_arguments: null,
      schema: null,
      metadata: null,
      guards: null,
      effects: null,
    };
    const { items } = await json('/connections/alice/tab/actions');
    expect(items).toEqual([full, { name: 'z', ...bare }, { name: 'a', ...bare }]);
  });

  it('a hello without a name for each action is refused', async () => {
    const peer = at.client({ payload: { actions: [{ summary: 'nameless' }] } });
    await expect(peer).rejects.toThrow(/closed without welcome/);
    expect((await json('/connections')).items).toEqual([]);
  });

  it('A bounded sample of advertisements across connections, with an explicit flag saying whether the sample was complete', async () => {
    await live('alice', 'tab', ['open', 'close']);
    await live('bob', 'tab', ['open']);
    const whole = await json('/actions');
    expect(whole.items.map(({ user_id, action }: any) => [user_id, action.name])).toEqual([
      ['alice', 'open'],
      ['alice', 'close'],
      ['bob', 'open'],
    ]);
    expect([whole.complete, whole.completeness.complete]).toEqual([true, true]);
    for (let i = 0; i < 4; i++)
      await live(
        'carol',
        `tab-${i}`,
        Array.from({ length: 250 }, (_, n) => `a${n}`),
      );
    const cut = await json('/actions');
    expect([cut.items.length, cut.complete, cut.completeness.complete]).toEqual([1000, false, false]);
    expect(cut.completeness.sources).toContainEqual(
      expect.objectContaining({ source: 'actions', complete: false, limit: 1000, reason: 'limit_reached' }),
    );
  });
});
