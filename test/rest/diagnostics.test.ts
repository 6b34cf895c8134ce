/** Tests users, connections, actions and histories over REST. */
import { describe, expect, test } from 'vitest';
import { connect, user } from '../kit/core.ts';
import { startRestRelay } from './kit/rest-server.ts';

const invokePath = '/connections/alice/tab/actions/open';

describe('diagnostics', () => {
  test('connections have REST names and words', async () => {
    await using relay = await startRestRelay();
    await connect(relay.core, user('alice'), { metadata: '{"user_id":"CONNECTED"}' as never });
    const { status, body } = await relay.ask('/connections?user_id=alice&status=connected');
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['items', 'next_cursor', 'completeness']);
    expect(body.items).toEqual([
      {
        user_id: 'alice',
        client_id: 'tab',
        instance_id: 'i1',
        node_id: 'n1',
        status: 'connected',
        client_type: 'browser',
        metadata: { user_id: 'CONNECTED' },
        connected_at: '2026-01-01T00:00:00.000Z',
        last_seen_at: '2026-01-01T00:00:00.000Z',
        disconnected_at: null,
        disconnect_cause: null,
        close_code: null,
        heartbeat: 'ok',
        knows_places: false,
        recently_replaced: false,
        replaced_instance_id: null,
        predecessors: [],
        action_names: ['open'],
      },
    ]);
    expect(body.next_cursor).toBeNull();
    expect(body.completeness).toMatchObject({ complete: true, sources: [{ source: 'connections', reason: null }] });
    expect((await relay.ask('/connections?status=stale')).body.items).toEqual([]);
    expect((await relay.ask('/connections?node_id=n2')).body.items).toEqual([]);
  });

  test('a listing is read to its end by cursors', async () => {
    await using relay = await startRestRelay();
    for (let i = 0; i < 5; i++) await connect(relay.core, user(`u${i}`));
    const seen: string[] = [];
    let next = '';
    for (let page = 0; page < 3; page++) {
      const { body } = await relay.ask(`/connections?limit=2${next && `&cursor=${next}`}`);
      seen.push(...body.items.map((item: { user_id: string }) => item.user_id));
      next = body.next_cursor;
    }
    expect(seen).toEqual(['u0', 'u1', 'u2', 'u3', 'u4']);
    expect(next).toBeNull();
  });

  test('a damaged cursor, and one of another listing, are refused', async () => {
    await using relay = await startRestRelay();
    for (let i = 0; i < 3; i++) await connect(relay.core, user(`u${i}`));
    const { body } = await relay.ask('/connections?limit=1');
    for (const path of [
      `/connections?limit=1&cursor=${body.next_cursor}x`,
      `/connections?limit=1&status=connected&cursor=${body.next_cursor}`,
      `/users?limit=1&cursor=${body.next_cursor}`,
    ]) {
      const reply = await relay.ask(path);
      expect([path, reply.status, reply.body.code]).toEqual([path, 400, 'invalid_cursor']);
    }
  });

  test('advertised actions of a connection are unchanged from the hello; an absent connection is 404', async () => {
    await using relay = await startRestRelay();
    const schema = { type: 'object', properties: { checksArguments: { const: 'OPEN' } } };
    const action = {
      name: 'open',
      summary: 'Opens.',
      description: null,
      version: '2',
      checksArguments: true,
      schema: JSON.stringify(schema) as never,
      metadata: null,
    };
    await connect(relay.core, user('alice'), { actions: [action] });
    const { body } = await relay.ask('/connections/alice/tab/actions');
    expect(body.items).toEqual([
      {
        name: 'open',
        summary: 'Opens.',
        description: null,
        version: '2',
        checks_arguments: true,
        schema,
        metadata: null,
        guards: null,
        effects: null,
      },
    ]);
    expect(body.completeness.complete).toBe(true);
    const sample = await relay.ask('/actions');
    expect(sample.body).toMatchObject({ complete: true, items: [{ user_id: 'alice', action: { name: 'open' } }] });
    expect((await relay.ask('/connections/alice/none/actions')).status).toBe(404);
  });

  test('a user’s summary has its connections, streams and pending RPCs; an unknown user is 404', async () => {
    await using relay = await startRestRelay();
    await connect(relay.core, user('alice'));
    const waiting = relay.ask({ method: 'POST', path: invokePath, requester: 'alice', body: {} });
    await expect.poll(async () => (await relay.ask('/rpc/pending/count')).body.count).toBe(1);
    const { body } = await relay.ask('/users/alice');
    expect(body).toMatchObject({ user_id: 'alice', connection_count: 1, stream_count: 1, pending_rpc_count: 1 });
    expect(body.connections.items[0].client_id).toBe('tab');
    expect(body.streams.items[0]).toMatchObject({ stream: 'alice/clients/tab', message_count: 1 });
    expect((await relay.ask('/users')).body.items).toMatchObject([{ user_id: 'alice', connection_count: 1 }]);
    expect((await relay.ask('/users/nobody')).status).toBe(404);
    await relay.clock.advance(31_000);
    expect((await waiting).status).toBe(504);
  });

  test('a summary names the source of which it shows only a part', async () => {
    await using relay = await startRestRelay();
    for (let i = 0; i < 101; i++) await connect(relay.core, user('alice'), { clientId: `tab${i}` });
    const { body } = await relay.ask('/users/alice');
    expect(body.connection_count).toBe(101);
    expect(body.connections.items).toHaveLength(100);
    expect(body.completeness).toMatchObject({
      complete: false,
      sources: [
        { source: 'connections', complete: false, observed: 100, limit: 100, reason: 'limit_reached' },
        { source: 'streams', complete: true, reason: null },
      ],
    });
    const rest = await relay.ask(`/connections?user_id=alice&cursor=${body.connections.next_cursor}`);
    expect(rest.body.items).toHaveLength(1);
  });

  test('pending RPCs are listed, filtered, cross-checked and counted', async () => {
    await using relay = await startRestRelay();
    await connect(relay.core, user('alice'));
    const waiting = relay.ask({ method: 'POST', path: invokePath, requester: 'alice', body: { command_id: 'c1' } });
    await expect.poll(async () => (await relay.ask('/rpc/pending/count')).body.count).toBe(1);
    await relay.clock.advance(2000);
    const { body } = await relay.ask('/rpc/pending?user_id=alice&client_id=tab&min_age_ms=2000&check_instance=i2');
    expect(body.items).toMatchObject([
      {
        command_id: 'c1',
        action: 'open',
        wait_for: 'completed',
        expected_instance_id: 'i1',
        age_ms: 2000,
        stage: 'dispatched',
        instance_mismatch: { expected_instance_id: 'i1', observed_instance_id: 'i2' },
      },
    ]);
    expect((await relay.ask('/rpc/pending?min_age_ms=2001')).body.items).toEqual([]);
    expect((await relay.ask('/rpc/pending?caller_node_id=n9')).body.items).toEqual([]);
    const counts = await relay.ask('/rpc/pending/count-by-node');
    expect(counts.body.items).toEqual([{ node_id: 'n1', count: 1 }]);
    await relay.clock.advance(31_000);
    await waiting;
    expect((await relay.ask('/rpc/pending/count')).body).toMatchObject({ count: 0, completeness: { complete: true } });
  });

  test('history is redacted unless requested, bounded by exclusive times and kinds', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, user('alice'));
    const waiting = relay.ask({
      method: 'POST',
      path: invokePath,
      requester: 'alice',
      body: { command_id: 'c1', params: { secret: 1 }, trace_id: 't' },
    });
    await expect.poll(() => client.sent.length).toBe(1);
    await relay.clock.advance(1000);
    await client.result(client.last, { ok: [1] });
    await waiting;
    const stream = 'stream=alice/clients/tab';
    const all = await relay.ask(`/history/messages?${stream}`);
    expect(all.body.items).toMatchObject([
      { kind: 'command', command_id: 'c1', trace_id: 't', payload: null, payload_state: 'redacted' },
      { kind: 'result', payload: null, payload_state: 'redacted', payload_bytes: 10 },
    ]);
    const shown = await relay.ask(`/history/messages?${stream}&include_payload=true&kinds=result,error`);
    expect(shown.body.items).toMatchObject([{ kind: 'result', payload: { ok: [1] }, payload_state: 'included' }]);
    const [, last] = all.body.items;
    expect((await relay.ask(`/history/messages?${stream}&after_time=${last.at}`)).body.items).toEqual([]);
    const before = await relay.ask(`/history/messages?${stream}&before_time=${Date.parse(last.at)}`);
    expect(before.body.items).toHaveLength(1);
    expect((await relay.ask('/history/command/alice/c1')).body.items).toHaveLength(2);
    expect((await relay.ask('/history/streams?user_id=alice&prefix=clients/')).body.items).toHaveLength(1);
    expect((await relay.ask('/history/messages?stream=alice/clients/none')).status).toBe(404);
    expect((await relay.ask('/history/messages')).body.errors).toEqual([{ parameter: 'stream', detail: 'required' }]);
  });
});
