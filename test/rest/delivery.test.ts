/** Tests the operator's routes of delivery over REST: summary, nodes, tenants, records, disconnects and drains. */
import { describe, expect, test } from 'vitest';
import { meanwhile } from '../kit/clock.ts';
import { connect, PROCESS, user, type TestClient } from '../kit/core.ts';
import { startRestRelay, type RestServer } from './kit/rest-server.ts';

const alice = user('alice');
const STATUS = '/delivery/status?user_id=alice&client_id=tab';

async function invoke(relay: RestServer, client: TestClient, command_id: string): Promise<void> {
  const sent = client.sent.length;
  const body = { command_id, wait_for: 'admitted' };
  await relay.ask({ method: 'POST', path: '/connections/alice/tab/actions/open', requester: 'alice', body });
  await expect.poll(() => client.sent.length).toBe(sent + 1);
}

const ROUTES = [
  ['GET', '/delivery/summary'],
  ['GET', '/delivery/nodes'],
  ['GET', '/delivery/tenants'],
  ['GET', `${STATUS}&command_id=c1`],
  ['GET', '/delivery/commands'],
  ['POST', '/connections/alice/tab/disconnect'],
  ['POST', '/delivery/nodes/n1/drain'],
] as const;

describe('every route of delivery', () => {
  test.each(ROUTES)('%s %s requires an administrator: 401 without a token, 403 with a user’s', async (method, path) => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, alice);
    const body = method === 'POST' ? { body: {} } : {};
    const nobody = await relay.ask({ method, path, requester: null, ...body });
    expect([nobody.status, nobody.body.code, nobody.headers['www-authenticate']]).toEqual([
      401,
      'unauthenticated',
      'Bearer',
    ]);
    const owner = await relay.ask({ method, path, requester: 'alice', ...body });
    expect([owner.status, owner.body.code]).toEqual([403, 'forbidden']);
    expect(client.closes).toEqual([]);
    expect(relay.core.draining).toBe(false);
  });
});

describe('GET /delivery/summary', () => {
  test('has the tracked and due counts, the sampled oldest ones, the size of the sample and the legacy depths', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, alice);
    client.backlog = Number.MAX_SAFE_INTEGER;
    const body = { command_id: 'c1', wait_for: 'admitted' };
    await relay.ask({ method: 'POST', path: '/connections/alice/tab/actions/open', requester: 'alice', body });
    await relay.clock.advance(700);
    const reply = await relay.ask('/delivery/summary');
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        tracked_commands: 1,
        due_commands: 0,
        sampled_oldest_deadline: '2026-01-01T00:00:30.000Z',
        sampled_oldest_queued_age_ms: 700,
        sample_size: 1,
        legacy_command_stream_depth: null,
        pending_command_depth: null,
        mode: relay.core.mode,
        completeness: {
          complete: true,
          sources: [
            {
              source: 'delivery',
              node_id: null,
              complete: true,
              observed: 1,
              limit: null,
              reason: null,
              as_of: '2026-01-01T00:00:00.700Z',
            },
          ],
        },
      },
    ]);
    expect((await relay.ask('/delivery/summary?limit=1')).status).toBe(400);
  });
});

describe('GET /delivery/nodes', () => {
  test('has the recently reporting dispatcher nodes with their loops, drainers, waiters and counters', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, alice);
    await invoke(relay, client, 'c1');
    await relay.clock.advance(2_000);
    const { body } = await relay.ask('/delivery/nodes');
    expect(Object.keys(body)).toEqual(['items', 'next_cursor', 'completeness']);
    const [node] = body.items.filter(({ node_id }: { node_id: string }) => node_id === 'n1');
    expect(node).toMatchObject({
      node_id: 'n1',
      mailbox_listener_alive: true,
      reconciliation_alive: true,
      active_drainers: 0,
      connection_waiters: 0,
      links: 1,
      unfinished_commands: 1,
      updated_at: '2026-01-01T00:00:02.000Z',
      stale: false,
      draining: false,
      version: '1.2.3',
      started_at: '2026-01-01T00:00:00.000Z',
      memory_bytes: PROCESS.memoryBytes,
      event_loop_delay_ms: PROCESS.loopDelayMs,
    });
    expect(node.counters).toContainEqual({ name: 'commands_dispatched', value: 1 });
    expect(body.next_cursor).toBeNull();
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'cursor=x', 'page=2'])
      expect([query, (await relay.ask(`/delivery/nodes?${query}`)).status]).toEqual([query, 400]);
  });
});

describe('GET /delivery/tenants', () => {
  test('has capacity scopes with reserved counts, oldest deadlines and who holds them, page by page', async () => {
    await using relay = await startRestRelay();
    for (const name of ['bob', 'carol']) {
      const client = await connect(relay.core, user(name));
      const path = `/connections/${name}/tab/actions/open`;
      await relay.ask({ method: 'POST', path, requester: name, body: { command_id: 'c', wait_for: 'admitted' } });
      await expect.poll(() => client.sent.length).toBe(1);
    }
    const first = await relay.ask('/delivery/tenants?limit=1');
    const deadline = '2026-01-01T00:00:30.000Z';
    expect(first.body.items).toEqual([
      {
        scope_id: 'bob',
        reserved_commands: 1,
        limit: 10_000,
        oldest_deadline: deadline,
        holders: [{ user_id: 'bob', client_id: 'tab', command_id: 'c', deadline }],
      },
    ]);
    const rest = await relay.ask(`/delivery/tenants?limit=1&cursor=${first.body.next_cursor}`);
    expect(rest.body).toMatchObject({ items: [{ scope_id: 'carol' }], next_cursor: null });
    const foreign = await relay.ask(`/delivery/nodes?cursor=${first.body.next_cursor}`);
    expect([foreign.status, foreign.body.code]).toEqual([400, 'invalid_cursor']);
  });
});

describe('GET /delivery/status', () => {
  test('has one payload-free record with its admission, attempt, acknowledgement, recovery and terminal fields', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, alice);
    await invoke(relay, client, 'c1');
    await client.session.ack('c1');
    await relay.clock.advance(1_000);
    await client.result(client.last, { secret: 's3cret' });
    const { status, body, text } = await relay.ask(`${STATUS}&command_id=c1`);
    expect(status).toBe(200);
    expect(text).not.toContain('s3cret');
    const at = '2026-01-01T00:00:00.000Z';
    expect(body).toEqual({
      user_id: 'alice',
      client_id: 'tab',
      command_id: 'c1',
      action: 'open',
      context_id: null,
      client_type: 'browser',
      scope_id: 'alice',
      stage: 'terminal',
      outcome: 'completed',
      last_proven_stage: 'acknowledged',
      execution: 'reported_by_client',
      attempts: 1,
      admitted_at: at,
      queued_at: at,
      dispatched_at: at,
      acknowledged_at: at,
      terminal_at: '2026-01-01T00:00:01.000Z',
      duration_ms: 1000,
      connect_deadline: at,
      deadline: '2026-01-01T00:00:30.000Z',
      node_id: 'n1',
      bound_instance_id: 'i1',
      recovered_from_node_id: null,
      cancel_requested_at: null,
      late_results: 0,
      first_late_at: null,
      code: null,
      message: null,
      reason: null,
      caller: { kind: 'user', name: 'alice', program: null },
    });
  });

  test('of a command with no retained status is 404', async () => {
    await using relay = await startRestRelay();
    const reply = await relay.ask(`${STATUS}&command_id=none`);
    expect([reply.status, reply.body.code]).toEqual([404, 'not_found']);
  });

  test('with invalid identities or an invalid combination is a bounded client error', async () => {
    await using relay = await startRestRelay();
    const bad: [string, string][] = [
      ['user_id=a%2Fb&client_id=tab&command_id=c', 'invalid_user'],
      ['user_id=%20&client_id=tab&command_id=c', 'invalid_user'],
      ['user_id=alice&client_id=a%20b&command_id=c', 'invalid_argument'],
      [`user_id=alice&client_id=tab&command_id=${'x'.repeat(200)}`, 'invalid_argument'],
      [`user_id=alice&client_id=tab&command_id=${'x'.repeat(5_000)}`, 'invalid_argument'],
      ['user_id=alice&client_id=tab', 'invalid_argument'],
      ['client_id=tab&command_id=c', 'invalid_argument'],
      ['user_id=alice&client_id=tab&command_id=c&command_id=d', 'invalid_argument'],
      ['user_id=alice&client_id=tab&command_id=c&node_id=n1', 'invalid_argument'],
      ['', 'invalid_argument'],
    ];
    for (const [query, code] of bad) {
      const reply = await relay.ask(`/delivery/status?${query}`);
      expect([query, reply.status, reply.body.code]).toEqual([query, 400, code]);
      expect(reply.text.length).toBeLessThan(1_500);
    }
  });
});

describe('GET /delivery/commands', () => {
  test('lists tracked commands by user, client, stage, outcome, node and time, page by page', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, alice);
    await invoke(relay, client, 'c1');
    await client.error(client.last, 'handler_failed');
    await relay.clock.advance(1_000);
    await invoke(relay, client, 'c2');
    const ids = async (query: string): Promise<string[]> =>
      (await relay.ask(`/delivery/commands?${query}`)).body.items.map(
        (item: { command_id: string }) => item.command_id,
      );
    expect(await ids('')).toEqual(['c1', 'c2']);
    expect(await ids('outcome=failed')).toEqual(['c1']);
    expect(await ids('stage=dispatched&user_id=alice&client_id=tab&node_id=n1')).toEqual(['c2']);
    expect(await ids('stage=terminal&outcome=completed')).toEqual([]);
    expect(await ids('user_id=bob')).toEqual([]);
    expect(await ids('admitted_after=2026-01-01T00:00:00Z')).toEqual(['c2']);
    const first = await relay.ask('/delivery/commands?limit=1');
    expect(await ids(`cursor=${first.body.next_cursor}`)).toEqual(['c2']);
    expect(await ids('stage=queued&outcome=failed')).toEqual([]);
    for (const query of ['stage=QUEUED', 'outcome=none', 'admitted_after=now', 'state=queued']) {
      const reply = await relay.ask(`/delivery/commands?${query}`);
      expect([query, reply.status, reply.body.code]).toEqual([query, 400, 'invalid_argument']);
    }
  });
});

describe('POST /connections/{user_id}/{client_id}/disconnect', () => {
  const path = '/connections/alice/tab/disconnect';

  test('closes the link and answers the connection in its state afterwards', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, alice);
    const requested = relay.ask({ method: 'POST', path, body: { reason: 'misbehaves' } });
    const { status, body } = await meanwhile(relay.clock, requested);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      state: 'closed',
      connection: { user_id: 'alice', client_id: 'tab', status: 'disconnected', disconnect_cause: 'operator' },
    });
    expect(client.closes).toEqual([{ cause: 'operator', instanceId: null }]);
    const again = await relay.ask({ method: 'POST', path });
    expect([again.status, again.body]).toEqual([409, expect.objectContaining({ code: 'not_connected', by: 'target' })]);
  });

  test('answers 404 for an absent client, and 400 for wrong input', async () => {
    await using relay = await startRestRelay();
    expect((await relay.ask({ method: 'POST', path })).status).toBe(404);
    await connect(relay.core, alice);
    for (const body of [{ reason: 'x'.repeat(300) }, { reason: 7 }, { why: 'x' }, []]) {
      const reply = await relay.ask({ method: 'POST', path, body });
      expect([body, reply.status, reply.body.code]).toEqual([body, 400, 'invalid_argument']);
    }
    const reply = await relay.ask({ method: 'POST', path: '/connections/alice/a%20b/disconnect' });
    expect([reply.status, reply.body.code]).toEqual([400, 'invalid_argument']);
    expect((await relay.ask(path)).status).toBe(405);
  });
});

describe('POST /delivery/nodes/{node_id}/drain', () => {
  const path = '/delivery/nodes/n1/drain';

  test('drains the node and answers what is left on it', async () => {
    await using relay = await startRestRelay();
    const client = await connect(relay.core, alice);
    await invoke(relay, client, 'c1');
    const { status, body } = await meanwhile(
      relay.clock,
      relay.ask({ method: 'POST', path, body: { within_ms: 60_000 } }),
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({ node_id: 'n1', draining: true, links: 1, unfinished_commands: 1 });
    const open = { method: 'POST', path: '/connections/alice/tab/actions/open', requester: 'alice' };
    const more = await relay.ask({ ...open, body: { wait_for: 'admitted' } });
    // Only one node is drained. If the deployment has another one, that node admits the command.
    const drains = relay.core.nodeId === 'n1';
    expect([more.status, more.body.code]).toEqual(drains ? [503, 'draining'] : [202, undefined]);
    await relay.clock.advance(60_000);
    expect(client.closes).toEqual([{ cause: 'node_drained', instanceId: null }]);
  });

  test('answers 404 for an absent node, and 400 for wrong input', async () => {
    await using relay = await startRestRelay();
    expect((await relay.ask({ method: 'POST', path: '/delivery/nodes/n9/drain' })).status).toBe(404);
    for (const body of [{ within_ms: -1 }, { within_ms: 600_001 }, { within_ms: '5' }, { withinMs: 5 }]) {
      const reply = await relay.ask({ method: 'POST', path, body });
      expect([body, reply.status, reply.body.code]).toEqual([body, 400, 'invalid_argument']);
    }
    expect((await relay.ask({ method: 'POST', path: '/delivery/nodes/a%20b/drain' })).status).toBe(400);
    expect(relay.core.draining).toBe(false);
  });
});
