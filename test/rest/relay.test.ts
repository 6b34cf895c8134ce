import { describe, expect, test } from 'vitest';
import { connect, user } from '../kit/core.ts';
import { startRelay } from './kit.ts';

const invokePath = '/connections/alice/tab/actions/open';

describe('diagnostics', () => {
  test('connections are told by their wire names and words', async () => {
    await using relay = await startRelay();
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
        heartbeat: 'ok',
        recently_replaced: false,
        replaced_instance_id: null,
        action_names: ['open'],
      },
    ]);
    expect(body.next_cursor).toBeNull();
    expect(body.completeness).toMatchObject({ complete: true, sources: [{ source: 'connections', reason: null }] });
    expect((await relay.ask('/connections?status=stale')).body.items).toEqual([]);
    expect((await relay.ask('/connections?node_id=n2')).body.items).toEqual([]);
  });

  test('a listing is read to its end by cursors', async () => {
    await using relay = await startRelay();
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
    await using relay = await startRelay();
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

  test('advertised actions of a connection keep what the hello said; an absent connection is 404', async () => {
    await using relay = await startRelay();
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
      },
    ]);
    expect(body.completeness.complete).toBe(true);
    const sample = await relay.ask('/actions');
    expect(sample.body).toMatchObject({ complete: true, items: [{ user_id: 'alice', action: { name: 'open' } }] });
    expect((await relay.ask('/connections/alice/none/actions')).status).toBe(404);
  });

  test('a user’s summary has its connections, streams and pending RPCs; an unknown user is 404', async () => {
    await using relay = await startRelay();
    await connect(relay.core, user('alice'));
    const waiting = relay.ask({ method: 'POST', path: invokePath, who: 'alice', body: {} });
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

  test('pending RPCs are listed, filtered, cross-checked and counted', async () => {
    await using relay = await startRelay();
    await connect(relay.core, user('alice'));
    const waiting = relay.ask({ method: 'POST', path: invokePath, who: 'alice', body: { command_id: 'c1' } });
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

  test('history is redacted unless asked, bounded by exclusive times and kinds', async () => {
    await using relay = await startRelay();
    const client = await connect(relay.core, user('alice'));
    const waiting = relay.ask({
      method: 'POST',
      path: invokePath,
      who: 'alice',
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

describe('calls', () => {
  const call = { method: 'POST', path: invokePath, who: 'alice' };

  test('an invocation answers 200 with the result that the client reported', async () => {
    await using relay = await startRelay();
    const client = await connect(relay.core, user('alice'));
    const waiting = relay.ask({ ...call, body: { params: { DARK: 'x' }, command_id: 'c1' } });
    await expect.poll(() => client.sent.length).toBe(1);
    expect(client.sent[0]?.params).toBe('{"DARK":"x"}');
    await client.result(client.last, { fine: true });
    const { status, body } = await waiting;
    expect(status).toBe(200);
    expect(body).toEqual({
      command_id: 'c1',
      rpc_id: expect.any(String),
      outcome: 'completed',
      stage: 'terminal',
      execution: 'reported_by_client',
      result: { fine: true },
      error: null,
    });
  });

  test('a failure that the client reported is a 200 with its error', async () => {
    await using relay = await startRelay();
    const client = await connect(relay.core, user('alice'));
    const waiting = relay.ask({ ...call, body: {} });
    await expect.poll(() => client.sent.length).toBe(1);
    await client.error(client.last, 'client_denied', true);
    const { status, body } = await waiting;
    expect([status, body.outcome, body.execution]).toEqual([200, 'failed', 'refused_by_client']);
    expect(body.error.code).toBe('client_denied');
  });

  test('202 when what was waited for is reached, and again while awaiting reads a live record', async () => {
    await using relay = await startRelay();
    await connect(relay.core, user('alice'));
    const { status, body } = await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    expect([status, body.outcome]).toEqual([202, null]);
    const read = await relay.ask({ path: '/commands/alice/tab/c1', who: 'alice' });
    expect([read.status, read.body.command_id, read.body.rpc_id]).toEqual([202, 'c1', null]);
    expect((await relay.ask('/rpc/pending/count')).body.count).toBe(0);
  });

  test('504 with the members of the command when its end is not known', async () => {
    await using relay = await startRelay();
    const client = await connect(relay.core, user('alice'));
    const waiting = relay.ask({ ...call, body: { respond_within_ms: 1000, command_id: 'c1' } });
    await expect.poll(() => client.sent.length).toBe(1);
    await relay.clock.advance(1000);
    const { status, body, headers } = await waiting;
    expect([status, headers['content-type']]).toEqual([504, 'application/problem+json']);
    expect(body).toMatchObject({
      code: 'response_timeout',
      command_id: 'c1',
      outcome: 'outcome_unknown',
      execution: 'may_have_run',
    });
  });

  test('504 with connect_timeout when the client never came', async () => {
    await using relay = await startRelay();
    const waiting = relay.ask({ ...call, body: { connect_within_ms: 500, command_id: 'c1' } });
    await expect.poll(async () => (await relay.ask('/rpc/pending/count')).body.count).toBe(1);
    await relay.clock.advance(500);
    expect((await waiting).body).toMatchObject({ status: 504, code: 'connect_timeout', outcome: 'expired' });
  });

  test('refusals have the status of their code', async () => {
    await using relay = await startRelay();
    expect((await relay.ask({ ...call, body: {} })).body).toMatchObject({
      code: 'not_connected',
      status: 409,
      by: 'target',
    });
    await connect(relay.core, user('alice'));
    const stranger = await relay.ask({ ...call, path: '/connections/alice/tab/actions/close', body: {} });
    expect([stranger.status, stranger.body.code]).toEqual([404, 'action_not_advertised']);
    const other = await relay.ask({ ...call, body: { instance_id: 'i9' } });
    expect([other.status, other.body.code]).toEqual([409, 'instance_mismatch']);
    const first = { wait_for: 'admitted', command_id: 'c1' };
    expect((await relay.ask({ ...call, body: first })).status).toBe(202);
    const conflict = await relay.ask({ ...call, body: { ...first, params: { a: 1 } } });
    expect([conflict.status, conflict.body.code]).toEqual([409, 'command_conflict']);
  });

  test('another user’s client and an absent command are the same 404', async () => {
    await using relay = await startRelay();
    await connect(relay.core, user('alice'));
    await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    const foreign = await relay.ask({ path: '/commands/alice/tab/c1', who: 'bob' });
    const absent = await relay.ask({ path: '/commands/bob/tab/c1', who: 'bob' });
    expect([foreign.status, absent.status]).toEqual([404, 404]);
    expect(foreign.body).toEqual(absent.body);
    const call2 = await relay.ask({ ...call, who: 'bob', body: {} });
    expect([call2.status, call2.body.code]).toEqual([404, 'not_found']);
  });

  test('a command is awaited by its ids until it ends', async () => {
    await using relay = await startRelay();
    const client = await connect(relay.core, user('alice'));
    await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    const waiting = relay.ask({ path: '/commands/alice/tab/c1?within_ms=60000&wait_for=completed', who: 'alice' });
    await expect.poll(async () => (await relay.ask('/rpc/pending/count')).body.count).toBe(1);
    await client.result(client.last, 7);
    expect((await waiting).body).toMatchObject({ outcome: 'completed', result: 7 });
  });

  test('a cancelled command says what became of it', async () => {
    await using relay = await startRelay();
    const client = await connect(relay.core, user('alice'));
    await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    const cancel = { method: 'POST', path: '/commands/alice/tab/c1/cancel', who: 'alice', body: { reason: 'enough' } };
    const asked = await relay.ask(cancel);
    expect([asked.status, asked.body.state, asked.body.command.command_id]).toEqual([200, 'requested', 'c1']);
    expect(client.cancels).toEqual(['c1']);
    await client.result(client.last);
    expect((await relay.ask({ ...cancel, body: undefined })).body.state).toBe('too_late');
    expect((await relay.ask({ ...cancel, path: '/commands/alice/tab/c9/cancel' })).status).toBe(404);
  });

  test('a caller that hangs up ends its wait, and the command goes on', async () => {
    await using relay = await startRelay();
    const client = await connect(relay.core, user('alice'));
    const { request } = await import('node:http');
    const req = request({
      host: '127.0.0.1',
      port: relay.port,
      method: 'POST',
      path: invokePath,
      headers: { 'x-who': 'alice' },
    });
    req.on('error', () => {});
    req.end();
    await expect.poll(() => client.sent.length).toBe(1);
    expect((await relay.ask('/rpc/pending/count')).body.count).toBe(1);
    req.destroy();
    await expect.poll(async () => (await relay.ask('/rpc/pending/count')).body.count).toBe(0);
    await client.result(client.last, 'late but fine');
    const read = await relay.ask({ path: `/commands/alice/tab/${client.last.commandId}`, who: 'alice' });
    expect(read.body).toMatchObject({ outcome: 'completed', result: 'late but fine' });
  });
});

describe('access', () => {
  test('every route refuses nobody with 401 and a wrong scope with 403, whatever else is wrong', async () => {
    await using relay = await startRelay();
    for (const { method, path, access } of relay.door.operations) {
      const url = `${path.replaceAll(/\{\w+\}/g, '%00')}?nonsense`;
      const statuses: Record<string, number> = {};
      for (const who of ['', 'alice:connect', 'alice:invoke', 'admin']) {
        const reply = await relay.ask({ method, path: url, who, ...(method === 'POST' && { body: [] }) });
        statuses[who] = reply.status;
      }
      const scoped = access === 'ADMIN' ? 403 : 400;
      expect([path, statuses]).toEqual([path, { '': 401, 'alice:connect': 403, 'alice:invoke': scoped, admin: 400 }]);
    }
  });
});
