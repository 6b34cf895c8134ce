/** Tests contexts, windows and workers over GraphQL. */
import { describe, expect, it } from 'vitest';
import { isObjectType } from 'graphql';
import { schema } from '../../src/graphql/schema/schema.ts';
import { countedWindow, executionContext } from './kit/contexts.ts';
import { fakeCore } from './kit/fake-core.ts';
import { command, connection, T0 } from './kit/rows.ts';
import { ann, codeOf, dataOf } from './kit/run.ts';

const users = Array.from({ length: 20 }, (_, i) => `user-${String(i).padStart(2, '0')}`);
const coreOf = () =>
  fakeCore({
    connections: users.map((userId) => connection(userId, 'c1')),
    commands: [command({ userId: 'user-03', clientId: 'c1', commandId: 'k1' })],
    contexts: users.flatMap((userId) => [
      executionContext(userId, 'a', { windowId: 'w1' }),
      executionContext(userId, 'b', { ownership: 'worker', status: 'idle', windowId: 'w1' }),
      executionContext(userId, 'c', { ownership: 'worker', taskId: 't1', taskAssignedAt: T0 - 1000 }),
      executionContext(userId, 'd', { linkLost: true }),
    ]),
    windows: users.flatMap((userId) => [
      countedWindow(userId, 'w1', { live: { workers: 1, idle: 1, busy: 0 } }),
      countedWindow(userId, 'w2'),
    ]),
  });

describe('an execution context and a browser window', () => {
  it('are returned with every member, their derived status, and unchanged metadata', async () => {
    const { core } = coreOf();
    const document = `{
      contexts(filter: { userId: "user-01", ownership: WORKER }) { nodes {
        id: contextId userId clientId instanceId clientType status ownership windowId taskId taskAssignedAt title metadata reportedAt } }
      stale: contexts(filter: { userId: "user-01", status: STALE }) { nodes { id: contextId status } }
      contextCount(filter: { userId: "user-01" }) { count completeness { complete } }
    }`;
    const common = {
      userId: 'user-01',
      clientId: 'c1',
      instanceId: 'c1-i1',
      clientType: 'BROWSER',
      ownership: 'WORKER',
      title: null,
      metadata: { status: 'STALE', n: [1, null] },
      reportedAt: '2026-01-01T00:00:00.000Z',
    };
    expect(await dataOf(document, { core })).toEqual({
      contexts: {
        nodes: [
          { ...common, id: 'b', status: 'IDLE', windowId: 'w1', taskId: null, taskAssignedAt: null },
          {
            ...common,
            id: 'c',
            status: 'ACTIVE',
            windowId: null,
            taskId: 't1',
            taskAssignedAt: '2025-12-31T23:59:59.000Z',
          },
        ],
      },
      stale: { nodes: [{ id: 'd', status: 'STALE' }] },
      contextCount: { count: 4, completeness: { complete: true } },
    });
  });

  it("report the source of a window's counts: live contexts take precedence, also over larger reported counts", async () => {
    const { core } = coreOf();
    const document = `{
      browserWindows(filter: { userId: "user-01" }) { nodes {
        id: windowId userId clientId instanceId clientType ownership focused type state incognito tabCount capacity draining status
        workerCount idleCount busyCount countsFrom contexts { nodes { id: contextId } } reportedAt } }
      browserWindow(userId: "user-01", windowId: "w2") { workerCount countsFrom }
      absent: browserWindow(userId: "user-01", windowId: "w9") { id }
      browserWindowCount(filter: { userId: "user-01", status: OPEN }) { count }
    }`;
    const common = {
      userId: 'user-01',
      clientId: 'c1',
      instanceId: 'c1-i1',
      clientType: 'BROWSER',
      ownership: 'WORKER',
      focused: true,
      type: 'normal',
      state: 'minimized',
      incognito: false,
      tabCount: 4,
      capacity: 2,
      draining: false,
      status: 'OPEN',
      reportedAt: '2026-01-01T00:00:00.000Z',
    };
    expect(await dataOf(document, { core })).toEqual({
      browserWindows: {
        nodes: [
          {
            ...common,
            id: 'w1',
            workerCount: 1,
            idleCount: 1,
            busyCount: 0,
            countsFrom: 'CONTEXTS',
            contexts: { nodes: [{ id: 'a' }, { id: 'b' }] },
          },
          {
            ...common,
            id: 'w2',
            workerCount: 7,
            idleCount: 4,
            busyCount: 3,
            countsFrom: 'SNAPSHOT',
            contexts: { nodes: [] },
          },
        ],
      },
      browserWindow: { workerCount: 7, countsFrom: 'SNAPSHOT' },
      absent: null,
      browserWindowCount: { count: 2 },
    });
  });
});

describe('workers', () => {
  it('are split by assignment, and read once however many of the lists are selected', async () => {
    const { core, calls } = coreOf();
    const document = `{ workers(userId: "user-05", clientType: BROWSER) {
      idle { id: contextId } assigned { id: contextId taskAssignedAt } available { items { id: contextId } completeness { complete } }
      one: forTask(taskId: "t1") { items { id: contextId } } none: forTask(taskId: "t2") { items { id: contextId } }
      completeness { complete sources { observed } }
    } }`;
    expect(await dataOf(document, { core })).toEqual({
      workers: {
        idle: [{ id: 'b' }],
        assigned: [{ id: 'c', taskAssignedAt: '2025-12-31T23:59:59.000Z' }],
        available: { items: [{ id: 'b' }], completeness: { complete: true } },
        one: { items: [{ id: 'c' }] },
        none: { items: [] },
        completeness: { complete: true, sources: [{ observed: 1 }, { observed: 1 }] },
      },
    });
    expect(calls).toEqual(['contexts.workers']);
  });

  it('require a user, and are refused for another one, whatever is selected', async () => {
    const { core } = coreOf();
    await expect(dataOf('{ workers { __typename } }', { core })).rejects.toThrow(/userId/);
    expect(await codeOf('{ workers(userId: "user-01") { __typename } }', { core, requester: ann })).toBe('not_found');
    expect(await codeOf('{ workers(userId: "a/b") { __typename } }', { core })).toBe('invalid_user');
    for (const first of [0, 1001])
      expect(await codeOf(`{ workers(userId: "x", first: ${first}) { __typename } }`, { core })).toBe(
        'invalid_argument',
      );
  });
});

describe('nested', () => {
  const EVERYTHING = `{ users(first: 20) { nodes {
    id: userId
    contexts(first: 10) { nodes { id: contextId userId } }
    browserWindows(first: 10) { nodes { id: windowId userId contexts(first: 5) { nodes { id: contextId } } } }
    workers { idle { id: contextId userId } assigned { id: contextId } completeness { complete } }
    connections(first: 1) { nodes { contexts(first: 10) { nodes { id: contextId } } } }
  } } }`;

  it('each kind is read once per depth, and each parent gets its own rows', async () => {
    const { core, calls } = coreOf();
    type Rows = { nodes: { id: string; userId: string; contexts: { nodes: unknown[] } }[] };
    type Node = { id: string; contexts: Rows; browserWindows: Rows; workers: { idle: { userId: string }[] } };
    const { users: page } = (await dataOf(EVERYTHING, { core })) as { users: { nodes: Node[] } };
    const counts = Object.fromEntries(
      [...new Set(calls)].map((name) => [name, calls.filter((call) => call === name).length]),
    );
    expect(counts).toMatchObject({ 'contexts.windowLists': 1, 'contexts.workers': 1 });
    // The lists of users, connections and windows have different depths or sizes, so each kind may need its own read.
    expect(counts['contexts.lists']).toBeLessThanOrEqual(3);
    expect(counts['contexts.list']).toBeUndefined();
    expect(page.nodes).toHaveLength(20);
    for (const user of page.nodes) {
      expect(user.contexts.nodes.map(({ id, userId }) => `${userId}/${id}`)).toEqual(
        ['a', 'b', 'c', 'd'].map((id) => `${user.id}/${id}`),
      );
      expect(user.browserWindows.nodes.map(({ userId, contexts }) => [userId, contexts.nodes.length])).toEqual([
        [user.id, 2],
        [user.id, 0],
      ]);
      expect(user.workers.idle.map(({ userId }) => userId)).toEqual([user.id]);
    }
  });

  it('pages start from the batch and continue with the cursors of the listing', async () => {
    const document = `query ($after: String) { user(userId: "user-07") {
      contexts(first: 3, after: $after, clientType: BROWSER) { nodes { id: contextId } nextCursor }
      browserWindows(first: 1, status: OPEN) { nodes { id: windowId } nextCursor } } }`;
    const { core, calls } = coreOf();
    type Page = { user: { contexts: { nodes: { id: string }[]; nextCursor: string | null } } };
    const first = (await dataOf(document, { core })) as Page;
    const variables = { after: first.user.contexts.nextCursor };
    const second = (await dataOf(document, { core, variables })) as Page;
    expect([...first.user.contexts.nodes, ...second.user.contexts.nodes].map(({ id }) => id).join('')).toBe('abcd');
    expect(second.user.contexts.nextCursor).toBeNull();
    expect(calls.filter((call) => call === 'contexts.list')).toHaveLength(1);
    const other = 'query ($after: String) { user(userId: "user-08") { contexts(after: $after) { nextCursor } } }';
    expect(await codeOf(other, { core, variables })).toBe('invalid_cursor');
  });

  it('a command shows the current contexts of its client', async () => {
    const { core } = coreOf();
    const document = `{ command(userId: "user-03", clientId: "c1", commandId: "k1") {
      contexts(first: 2) { nodes { id: contextId userId reportedAt } nextCursor } } }`;
    expect(await dataOf(document, { core })).toMatchObject({
      command: { contexts: { nodes: [{ id: 'a', userId: 'user-03' }, { id: 'b' }], nextCursor: expect.any(String) } },
    });
  });

  it('refuse a size out of bounds, although the batch would not', async () => {
    const { core, calls } = coreOf();
    for (const first of [0, -1, 1001]) {
      for (const field of ['contexts', 'browserWindows']) {
        const requested = `{ user(userId: "user-07") { ${field}(first: ${first}) { nextCursor } } }`;
        expect(await codeOf(requested, { core }), `${field} ${first}`).toBe('invalid_argument');
      }
    }
    expect(calls).toEqual([]);
  });
});

describe('the descriptions of the types', () => {
  it('state that a task on a worker is a current assignment, not a durable job or an effect', () => {
    const fieldsOf = (name: string) => {
      const type = schema.getType(name);
      return isObjectType(type) ? type.getFields() : {};
    };
    const texts = [
      schema.getType('ExecutionContext')?.description,
      schema.getType('Workers')?.description,
      fieldsOf('ExecutionContext')['taskId']?.description,
    ];
    for (const text of texts)
      expect(text).toMatch(/(not proof|neither).*durable job system owns the task.*n(or|either).*effect/);
    expect(schema.getType('Workers')?.description).toMatch(/Reading acquires, renews and releases no worker/);
  });
});
