/** Tests invoking, awaiting and cancelling over REST. */
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { connect, user } from '../kit/core.ts';
import { startRestRelay } from './kit/rest-server.ts';

const invokePath = '/connections/alice/tab/actions/open';

describe('calls', () => {
  const call = { method: 'POST', path: invokePath, requester: 'alice' };

  test('an invocation answers 200 with the result that the client reported', async () => {
    await using relay = await startRestRelay();
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
      last_proven_stage: 'dispatched',
      execution: 'reported_by_client',
      result: { fine: true },
      error: null,
    });
  });

  test('a failure that the client reported is a 200 with its error', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, user('alice'));
    const waiting = relay.ask({ ...call, body: {} });
    await expect.poll(() => client.sent.length).toBe(1);
    await client.error(client.last, 'client_denied', true);
    const { status, body } = await waiting;
    expect([status, body.outcome, body.execution]).toEqual([200, 'failed', 'refused_by_client']);
    expect(body.error.code).toBe('client_denied');
  });

  test('202 when the requested stage is reached, and again while awaiting reads a live record', async () => {
    await using relay = await startRestRelay();
    await connect(relay.core, user('alice'));
    const { status, body } = await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    expect([status, body.outcome]).toEqual([202, null]);
    const read = await relay.ask({ path: '/commands/alice/tab/c1', requester: 'alice' });
    expect([read.status, read.body.command_id, read.body.rpc_id]).toEqual([202, 'c1', null]);
    expect((await relay.ask('/rpc/pending/count')).body.count).toBe(0);
  });

  test('504 with the members of the command when its end is unknown', async () => {
    await using relay = await startRestRelay();
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

  describe('for a command whose end is unknown, or that never ran', () => {
    const read = '/commands/alice/tab/c1';

    test.each([
      ['outcome_unknown', 'response_timeout', { respond_within_ms: 1000 }, 'dispatched'],
      ['expired', 'connect_timeout', { connect_within_ms: 1000 }, 'admitted'],
    ])('%s: reading its record answers 200, waiting for it 504', async (outcome, code, budget, stage) => {
      await using relay = await startRestRelay();
      if (outcome === 'outcome_unknown') await connect(relay.core, user('alice'));
      const waiting = relay.ask({ ...call, body: { ...budget, command_id: 'c1' } });
      await expect
        .poll(async () => relay.ask({ path: read, requester: 'alice' }))
        .toMatchObject({ status: 202, body: { stage } });
      await relay.clock.advance(1000);
      expect((await waiting).status).toBe(504);
      // The request is sent three times, so that graphql-js and the JSON writer both answer it.
      for (let turn = 0; turn < 3; turn++) {
        const { status, headers, body } = await relay.ask({ path: `${read}?wait_for=admitted`, requester: 'alice' });
        expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
        expect(body).toMatchObject({ command_id: 'c1', rpc_id: null, outcome, result: null, error: { code } });
        for (const within of ['0', '1000']) {
          const awaited = await relay.ask({ path: `${read}?within_ms=${within}`, requester: 'alice' });
          expect([awaited.status, awaited.body.code, awaited.body.outcome]).toEqual([504, code, outcome]);
        }
      }
      expect((await relay.ask({ ...call, body: { ...budget, command_id: 'c1' } })).status).toBe(504);
    });
  });

  test('504 with connect_timeout when the client never connected', async () => {
    await using relay = await startRestRelay();
    const waiting = relay.ask({ ...call, body: { connect_within_ms: 500, command_id: 'c1' } });
    await expect.poll(async () => (await relay.ask('/rpc/pending/count')).body.count).toBe(1);
    await relay.clock.advance(500);
    expect((await waiting).body).toMatchObject({ status: 504, code: 'connect_timeout', outcome: 'expired' });
  });

  test('refusals have the status of their code', async () => {
    await using relay = await startRestRelay();
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
    await using relay = await startRestRelay();
    await connect(relay.core, user('alice'));
    await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    const foreign = await relay.ask({ path: '/commands/alice/tab/c1', requester: 'bob' });
    const absent = await relay.ask({ path: '/commands/bob/tab/c1', requester: 'bob' });
    expect([foreign.status, absent.status]).toEqual([404, 404]);
    expect(foreign.body).toEqual(absent.body);
    const call2 = await relay.ask({ ...call, requester: 'bob', body: {} });
    expect([call2.status, call2.body.code]).toEqual([404, 'not_found']);
  });

  test('a command is awaited by its ids until it ends', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, user('alice'));
    await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    const waiting = relay.ask({
      path: '/commands/alice/tab/c1?within_ms=60000&wait_for=completed',
      requester: 'alice',
    });
    await expect.poll(async () => (await relay.ask('/rpc/pending/count')).body.count).toBe(1);
    // With two relays, the command may still be on its way to the client's relay, as the cancel may be below.
    await expect.poll(() => client.sent.length).toBe(1);
    await client.result(client.last, 7);
    expect((await waiting).body).toMatchObject({ outcome: 'completed', result: 7 });
  });

  test('a cancel answers the state of the command', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, user('alice'));
    await relay.ask({ ...call, body: { wait_for: 'admitted', command_id: 'c1' } });
    const cancel = {
      method: 'POST',
      path: '/commands/alice/tab/c1/cancel',
      requester: 'alice',
      body: { reason: 'enough' },
    };
    await expect.poll(() => client.sent.length).toBe(1);
    const requested = await relay.ask(cancel);
    expect([requested.status, requested.body.state, requested.body.command.command_id]).toEqual([
      200,
      'requested',
      'c1',
    ]);
    await expect.poll(() => client.cancels).toEqual(['c1']);
    await client.result(client.last);
    expect((await relay.ask({ ...cancel, body: undefined })).body.state).toBe('too_late');
    expect((await relay.ask({ ...cancel, path: '/commands/alice/tab/c9/cancel' })).status).toBe(404);
  });

  test('a caller that hangs up ends its wait, and the command continues', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, user('alice'));
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
    const read = await relay.ask({ path: `/commands/alice/tab/${client.last.commandId}`, requester: 'alice' });
    expect(read.body).toMatchObject({ outcome: 'completed', result: 'late but fine' });
  });
});
