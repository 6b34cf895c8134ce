/** Tests that the documented routes exist with their access, and no others. */
import { OTHER_OPERATIONS } from '../rest/kit/conformance.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postJson, type Answer } from '../http/kit/http-relay.ts';
import { RELAYS } from '../kit/store.ts';
import { OTHER, OWNER, PLANTED, world, type World } from './kit/planted.ts';

const { user, client, command, stream, window, task, context } = PLANTED;

/**
 * A relay with two users. Each has a client, which reports a window, an idle worker and a busy one, and three commands:
 * completed, failed, and pending.
 */
let at: World;
beforeAll(async () => {
  at = await world();
  const event = { kind: 'event', stream_suffix: 'notes', client_id: client, instance_id: 'planted-instance' };
  for (let i = 0; i < 2; i++) {
    const { text } = await at.post('/ingest', { ...event, message_id: 'm1', payload: { note: 'kept' } }, OWNER);
    expect(text).toContain('"error":null');
  }
});
afterAll(() => at[Symbol.asyncDispose]());

/** A row of the tables of the documented interface, and the test of the answer. */
type Row = {
  /** The text of the row: method, path and what it returns. */
  readonly row: string;
  /** The operations that serve the row. */
  readonly operations: readonly string[];
  readonly look: () => Promise<void>;
};

async function json(path: string): Promise<any> {
  const { status, text } = await at.rest(path);
  expect([path, status]).toEqual([path, 200]);
  return JSON.parse(text);
}

const ids = (items: readonly any[], name: string): unknown[] => items.map((item) => item[name]);
const complete = { complete: true };

const DIAGNOSTICS: readonly Row[] = [
  {
    row: 'GET /users: rows of canonical user scope with connection and stream counts and a completeness block',
    operations: ['GET /users'],
    async look() {
      const { items, completeness } = await json('/users');
      expect(items).toMatchObject([
        { user_id: OWNER, connection_count: 1, stream_count: 2, completeness: complete },
        { user_id: OTHER, connection_count: 1, stream_count: 1, completeness: complete },
      ]);
      expect(ids(completeness.sources, 'source')).toEqual(['connections', 'streams']);
    },
  },
  {
    row: 'GET /users/{user_id}: user summary',
    operations: ['GET /users/{user_id}'],
    async look() {
      const { connections, streams, pending_rpc_count, completeness } = await json(`/users/${user}`);
      expect([ids(connections.items, 'client_id'), ids(streams.items, 'suffix')]).toEqual([
        [client],
        [`clients/${client}`, 'notes'],
      ]);
      expect([pending_rpc_count, completeness.complete]).toEqual([1, true]);
    },
  },
  {
    row: 'GET /connections: cursor-paginated snapshots by user_id, node_id, status, cursor and limit',
    operations: ['GET /connections'],
    async look() {
      const first = await json('/connections?limit=1');
      const second = await json(`/connections?limit=1&cursor=${first.next_cursor}`);
      expect(ids([...first.items, ...second.items], 'user_id')).toEqual([OWNER, OTHER]);
      const [{ node_id }] = first.items;
      expect((await json(`/connections?user_id=${user}&node_id=${node_id}&status=connected`)).items).toHaveLength(1);
      for (const query of ['user_id=nobody', 'node_id=none', 'status=disconnected', 'status=stale'])
        expect([query, (await json(`/connections?${query}`)).items]).toEqual([query, []]);
    },
  },
  {
    row: 'GET /connections/{user_id}/{client_id}/actions: advertisements preserved from the hello',
    operations: ['GET /connections/{user_id}/{client_id}/actions'],
    async look() {
      const { items } = await json(`/connections/${user}/${client}/actions`);
      expect(items).toMatchObject([{ name: PLANTED.action, metadata: { note: 'planted-action-metadata' } }]);
    },
  },
  {
    row: 'GET /actions: bounded sample of advertisements across connections with a completeness flag for the sample',
    operations: ['GET /actions'],
    async look() {
      const { items, complete: whole } = await json('/actions');
      expect([ids(items, 'user_id'), whole]).toEqual([[OWNER, OTHER], true]);
    },
  },
  {
    row: 'GET /rpc/pending: by user, client, owning node, minimum age, optional runtime-instance cross-check',
    operations: ['GET /rpc/pending'],
    async look() {
      const { items } = await json(`/rpc/pending?user_id=${user}&client_id=${client}&min_age_ms=0&check_instance=i2`);
      expect(items).toMatchObject([
        {
          command_id: 'planted-live',
          expected_instance_id: 'planted-instance',
          instance_mismatch: { expected_instance_id: 'planted-instance', observed_instance_id: 'i2' },
        },
      ]);
    },
  },
  {
    row: 'GET count and count-by-node routes for pending RPCs: alerting without listing',
    operations: ['GET /rpc/pending/count', 'GET /rpc/pending/count-by-node'],
    async look() {
      expect((await json('/rpc/pending/count')).count).toBe(2);
      expect((await json(`/rpc/pending/count?user_id=${user}`)).count).toBe(1);
      expect(ids((await json('/rpc/pending/count-by-node')).items, 'count')).toEqual([2]);
    },
  },
  {
    row: 'GET /history/streams: stream summaries of one user, by prefix and cursor',
    operations: ['GET /history/streams'],
    async look() {
      const { items } = await json(`/history/streams?user_id=${user}&prefix=not`);
      expect(items).toMatchObject([{ stream: `${user}/notes`, message_count: 1 }]);
      const first = await json(`/history/streams?user_id=${user}&limit=1`);
      const rest = await json(`/history/streams?user_id=${user}&limit=1&cursor=${first.next_cursor}`);
      expect(ids([...first.items, ...rest.items], 'suffix')).toEqual([`clients/${client}`, 'notes']);
    },
  },
  {
    row: 'GET /history/messages: normalized summaries, payloads redacted unless include_payload is set',
    operations: ['GET /history/messages'],
    async look() {
      const path = `/history/messages?stream=${stream}&kinds=command,result&limit=2`;
      expect((await json(path)).items).toMatchObject([
        { kind: 'command', payload: null, payload_state: 'redacted' },
        { kind: 'result', payload: null, payload_state: 'redacted' },
      ]);
      expect((await json(`${path}&include_payload=true`)).items[1].payload).toEqual({ got: 'planted-result' });
    },
  },
  {
    row: 'GET /history/command/{user_id}/{command_id}: related messages for the command, redacted by default',
    operations: ['GET /history/command/{user_id}/{command_id}'],
    async look() {
      const { items } = await json(`/history/command/${user}/${command}`);
      expect(new Set(ids(items, 'command_id'))).toEqual(new Set([command]));
      expect(new Set(ids(items, 'payload'))).toEqual(new Set([null]));
      expect(ids(items, 'kind')).toEqual(expect.arrayContaining(['command', 'result']));
    },
  },
  {
    row: 'GET /history/raw-messages: one bounded stored-representation sample, optionally payload values only',
    operations: ['GET /history/raw-messages'],
    async look() {
      const { items } = await json(`/history/raw-messages?stream=${user}/notes&limit=1`);
      expect(items).toHaveLength(1);
      expect(JSON.stringify(items)).toContain('m1');
      expect((await json(`/history/raw-messages?stream=${user}/notes&values_only=true`)).items).toEqual([
        { note: 'kept' },
      ]);
    },
  },
  {
    row: 'GET /dedup/stats: deduplicator observations of the requested window',
    operations: ['GET /dedup/stats'],
    async look() {
      const stats = await json('/dedup/stats?window_seconds=60');
      expect(stats).toMatchObject({ window_seconds: 60, exact: true });
      // One event was sent twice, and each of the two clients sent a result again.
      expect([stats.duplicates, stats.seen - stats.unique]).toEqual([3, 3]);
    },
  },
  {
    row: 'GET /dedup/backend: implementation, TTL, safe namespace information',
    operations: ['GET /dedup/backend'],
    async look() {
      expect(await json('/dedup/backend')).toEqual({
        implementation: expect.stringMatching(/\w/),
        ttl_seconds: 120,
        namespace: at.callboard.core.mode === 'direct' ? null : expect.any(String),
      });
    },
  },
];

const DELIVERY: readonly Row[] = [
  {
    row: 'GET /delivery/summary: bounded deployment aggregates',
    operations: ['GET /delivery/summary'],
    async look() {
      expect(await json('/delivery/summary')).toMatchObject({
        tracked_commands: 6,
        sample_size: expect.any(Number),
        due_commands: 0,
        legacy_command_stream_depth: null,
        mode: at.callboard.core.mode,
      });
    },
  },
  {
    row: 'GET /delivery/nodes: recently reporting dispatcher nodes, paged',
    operations: ['GET /delivery/nodes'],
    async look() {
      const { items, next_cursor } = await json('/delivery/nodes?limit=1');
      expect(items).toMatchObject([
        { mailbox_listener_alive: true, reconciliation_alive: true, stale: false, counters: expect.any(Array) },
      ]);
      expect(next_cursor === null).toBe(RELAYS === 1);
    },
  },
  {
    row: 'GET /delivery/tenants: capacity scopes with reserved counts and oldest deadlines, paged',
    operations: ['GET /delivery/tenants'],
    async look() {
      const first = await json('/delivery/tenants?limit=1');
      expect(first.items).toMatchObject([{ reserved_commands: 1, oldest_deadline: expect.stringMatching(/Z$/) }]);
      const second = await json(`/delivery/tenants?limit=1&cursor=${first.next_cursor}`);
      expect(ids([...first.items, ...second.items], 'scope_id').sort()).toEqual([OWNER, OTHER]);
    },
  },
  {
    row: 'GET /delivery/status: one payload-free delivery record by user_id, client_id and command_id',
    operations: ['GET /delivery/status'],
    async look() {
      const path = `/delivery/status?user_id=${user}&client_id=${client}&command_id=${command}`;
      expect(await json(path)).toMatchObject({
        command_id: command,
        stage: 'terminal',
        outcome: 'completed',
        execution: 'reported_by_client',
        attempts: 1,
      });
      expect((await at.rest(path)).text).not.toMatch(/planted-(params|result)"|payload/);
    },
  },
];

const SITES_OF_EXECUTION: readonly Row[] = [
  {
    row: 'GET /contexts: current contexts by canonical user, client, client type, status, ownership, browser window',
    operations: ['GET /contexts'],
    async look() {
      const requested = `user_id=${user}&client_id=${client}&client_type=browser&ownership=worker&window_id=${window}`;
      expect(ids((await json(`/contexts?${requested}`)).items, 'status')).toEqual(['active', 'idle']);
      expect(ids((await json(`/contexts?${requested}&status=active`)).items, 'context_id')).toEqual([context]);
      for (const other of ['ownership=user-owned', 'client_type=mobile', 'client_id=none', 'status=closed'])
        expect([other, (await json(`/contexts?${other}`)).items]).toEqual([other, []]);
    },
  },
  {
    row: 'GET context count routes: counts by the same filters',
    operations: ['GET /contexts/count'],
    async look() {
      expect((await json('/contexts/count')).count).toBe(4);
      expect((await json(`/contexts/count?window_id=${window}&status=idle`)).count).toBe(1);
    },
  },
  {
    row: 'GET browser window list, detail and count routes: window records',
    operations: ['GET /browser-windows', 'GET /browser-windows/{window_id}', 'GET /browser-windows/count'],
    async look() {
      expect(ids((await json('/browser-windows')).items, 'user_id')).toEqual([OWNER, OTHER]);
      expect(await json(`/browser-windows/${window}?user_id=${user}`)).toMatchObject({
        window_id: window,
        ownership: 'worker',
        focused: true,
        tab_count: 2,
        status: 'open',
        worker_count: 2,
        idle_count: 1,
        busy_count: 1,
        counts_from: 'contexts',
      });
      expect((await json(`/browser-windows/count?user_id=${user}`)).count).toBe(1);
      expect((await json('/browser-windows/count?status=closed')).count).toBe(0);
    },
  },
  {
    row: 'GET /workers: worker contexts of a canonical user_id, split into idle and task-assigned',
    operations: ['GET /workers'],
    async look() {
      const { idle, assigned } = await json(`/workers?user_id=${user}&client_type=browser`);
      expect([ids(idle, 'task_id'), ids(assigned, 'task_id')]).toEqual([[null], [task]]);
      expect(assigned[0].task_assigned_at).toMatch(/Z$/);
      expect(await json(`/workers?user_id=${user}&client_type=web`)).toMatchObject({ idle: [], assigned: [] });
      expect((await at.rest('/workers')).status).toBe(400);
    },
  },
  {
    row: 'GET /workers/available: available (idle) worker contexts of a canonical user_id',
    operations: ['GET /workers/available'],
    async look() {
      const { items } = await json(`/workers/available?user_id=${user}`);
      expect(items).toMatchObject([{ status: 'idle', task_id: null }]);
      expect((await at.rest('/workers/available')).status).toBe(400);
    },
  },
  {
    row: 'GET /workers/tasks/{task_id}: worker contexts for the task of a canonical user_id',
    operations: ['GET /workers/tasks/{task_id}'],
    async look() {
      expect(ids((await json(`/workers/tasks/${task}?user_id=${user}`)).items, 'context_id')).toEqual([context]);
      expect((await json(`/workers/tasks/${task}?user_id=${OTHER}`)).items).toEqual([]);
      expect((await at.rest(`/workers/tasks/${task}`)).status).toBe(400);
    },
  },
];

/** The routes that the tables do not list: the relay's own calls, operator actions, and cooperative sites. */
const BESIDES: readonly string[] = [
  'GET /commands',
  'GET /commands/{user_id}/{client_id}/{command_id}',
  'GET /delivery/commands',
  'GET /delivery/failures',
  'GET /devices',
  'GET /pauses',
  'GET /revocations',
  'DELETE /devices/{user_id}/{client_id}',
  'DELETE /pauses/{pause_id}',
  'POST /commands/{user_id}/{client_id}/{command_id}/cancel',
  'POST /connections/{user_id}/{client_id}/actions/{action}',
  'POST /connections/{user_id}/{client_id}/actions/{action}/preflight',
  'POST /connections/{user_id}/{client_id}/disconnect',
  'POST /delivery/nodes/{node_id}/drain',
  'POST /devices/token',
  'POST /enrolments',
  'POST /enrolments/decide',
  'POST /enrolments/lookup',
  'POST /ingest',
  'POST /pauses',
  'POST /revocations',
  'PUT /devices/{user_id}/{client_id}',
];
const isOfSites = (operation: string): boolean => / \/(sites|site-sessions)\b/.test(operation);

const rows = [...DIAGNOSTICS, ...DELIVERY, ...SITES_OF_EXECUTION];

describe.each([
  ['Diagnostics', DIAGNOSTICS],
  ['Delivery', DELIVERY],
  ['Contexts, windows, workers', SITES_OF_EXECUTION],
] as const)('%s', (_, table) => {
  it.each(table)('$row', ({ look }) => look());

  it.each(table)('requires administrative authentication: $row', async ({ operations }) => {
    for (const operation of operations) {
      const path = operation.replace('GET ', '').replaceAll(/\{\w+\}/g, 'x');
      const requested = async (requester: string): Promise<Answer> => at.rest(path, { requester });
      expect([path, (await requested('nobody')).status, (await requested(OWNER)).status]).toEqual([path, 401, 403]);
    }
  });
});

describe('the routes', () => {
  it('are those of the tables and the documented additions, each once', async () => {
    const { paths } = await json('/openapi.json');
    const described = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const documented = [...rows.flatMap(({ operations }) => operations), ...BESIDES];
    expect(documented.toSorted()).toEqual([...new Set(documented)].toSorted());
    const ofTables = described.filter((operation) => !isOfSites(operation) && !OTHER_OPERATIONS.includes(operation));
    expect(ofTables.toSorted()).toEqual(documented.toSorted());
    expect(described.filter(isOfSites).length).toBeGreaterThan(8);
  });

  it('answer an unknown one with 404 and a documented one with another method with 405', async () => {
    expect((await at.rest('/workers/none')).status).toBe(404);
    for (const { operations } of rows) {
      const path = (operations[0] ?? '').replace('GET ', '').replaceAll(/\{\w+\}/g, 'x');
      expect([path, (await at.rest(path, postJson({}, { method: 'PUT' }))).status]).toEqual([path, 405]);
    }
  });
});
