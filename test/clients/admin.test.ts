/** Tests what the admin library reads from a real relay. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminError, createAdmin, pages, type Admin } from '../../src/clients/admin/index.ts';
import { ADMIN } from '../http/kit/http-relay.ts';
import { RELAYS } from '../kit/store.ts';
import { OTHER, OWNER, PLANTED, world, type World } from '../relay/kit/planted.ts';

let at: World;
let reader: Admin;
beforeAll(async () => {
  at = await world();
  reader = createAdmin({ url: at.url, token: ADMIN });
});
afterAll(() => at[Symbol.asyncDispose]());

const { user: userId, client: clientId, command: commandId, stream, window: windowId, task } = PLANTED;
const target = { userId, clientId, commandId };

describe('a reader of a real relay', () => {
  test('shows users, one user with their rows, and null for an unknown one', async () => {
    const { nodes, completeness } = await reader.users();
    expect(nodes.map(({ id, connectionCount }) => [id, connectionCount])).toEqual([
      [OWNER, 1],
      [OTHER, 1],
    ]);
    expect(completeness.complete).toBe(true);
    const user = await reader.user(OWNER);
    expect(user?.connections.nodes[0]).toMatchObject({ clientId, status: 'CONNECTED', clientType: 'BROWSER' });
    expect(user?.streams.nodes.map(({ key }) => key)).toEqual([stream]);
    expect(user?.pendingRpcCount).toBe(1);
    expect(await reader.user('nobody')).toBeNull();
  });

  test('shows connections and their actions, with GraphQL names', async () => {
    expect((await reader.connections({ userId, status: 'CONNECTED' })).nodes).toMatchObject([{ clientId }]);
    expect((await reader.connections({ status: 'STALE' })).nodes).toEqual([]);
    expect((await reader.actions({ userId, clientId }))?.items).toMatchObject([
      { name: PLANTED.action, schema: { title: 'planted-schema' } },
    ]);
    expect(await reader.actions({ userId, clientId: 'none' })).toBeNull();
    expect((await reader.actionSample(PLANTED.action)).items).toMatchObject([{ userId, clientId }]);
    expect((await reader.actionSample()).items).toHaveLength(2);
  });

  test('shows and counts pending callers', async () => {
    const { nodes } = await reader.pending({ filter: { userId } });
    expect(nodes).toMatchObject([{ commandId: 'planted-live', waitFor: 'COMPLETED', stage: 'ACKNOWLEDGED' }]);
    expect((await reader.pendingCount()).count).toBe(2);
    expect((await reader.pendingCount({ userId })).count).toBe(1);
    expect((await reader.pendingCountByNode({ userId })).items).toEqual([{ nodeId: nodes[0]?.nodeId, count: 1 }]);
  });

  test('shows delivery: summary, nodes, scopes, records and one status', async () => {
    const delivery = reader.delivery();
    expect(await delivery.summary()).toMatchObject({ trackedCommands: 6, mode: at.callboard.core.mode.toUpperCase() });
    const { nodes } = await delivery.nodes();
    expect(nodes).toHaveLength(RELAYS);
    for (const node of nodes) expect(node).toMatchObject({ reconciliationAlive: true, draining: false });
    expect((await delivery.tenants()).nodes).toMatchObject([
      { scopeId: OWNER, reservedCommands: 1, holders: [{ commandId: 'planted-live' }] },
      { scopeId: OTHER },
    ]);
    const failed = await delivery.commands({ filter: { userId, outcome: 'FAILED' } });
    expect(failed.nodes.map((row) => row.commandId)).toEqual(['planted-failed']);
    expect(await delivery.status(target)).toMatchObject({ outcome: 'COMPLETED', execution: 'REPORTED_BY_CLIENT' });
    expect(await delivery.status({ ...target, commandId: 'none' })).toBeNull();
  });

  test('shows the case file of a command without any payload', async () => {
    const file = await reader.command(target);
    expect(file).toMatchObject({ action: PLANTED.action, outcome: 'COMPLETED', delivery: { stage: 'TERMINAL' } });
    expect(file?.history.nodes.map(({ kind }) => kind)).toEqual(['COMMAND', 'PROGRESS', 'RESULT']);
    expect(JSON.stringify(file)).not.toMatch(/planted-(params|result|late-result|progress)"/);
    expect(await reader.command({ ...target, commandId: 'none' })).toBeNull();
  });

  test('shows contexts and windows, and counts them', async () => {
    expect((await reader.contexts({ filter: { windowId } })).nodes).toHaveLength(2);
    expect((await reader.contextCount({ userId, status: 'IDLE' })).count).toBe(1);
    expect((await reader.windows({ filter: { userId } })).nodes).toMatchObject([{ id: windowId, busyCount: 1 }]);
    expect((await reader.windowCount({ userId, ownership: 'USER_OWNED' })).count).toBe(0);
    expect(await reader.window({ userId, windowId })).toMatchObject({ countsFrom: 'CONTEXTS', workerCount: 2 });
    expect(await reader.window({ userId, windowId: 'none' })).toBeNull();
  });

  test('shows the workers of the user that is named', async () => {
    const workers = await reader.workers({ userId });
    expect([workers.idle, workers.assigned]).toMatchObject([[{ taskId: null }], [{ taskId: task }]]);
    expect((await reader.availableWorkers({ userId })).items).toMatchObject([{ id: 'planted-context-2' }]);
    expect((await reader.workersOfTask(task, { userId })).items).toMatchObject([{ id: 'planted-context' }]);
    expect((await reader.workers({ userId, clientType: 'MOBILE' })).idle).toEqual([]);
  });

  test('shows deduplication, streams and messages, with payloads on request', async () => {
    expect(await reader.dedup({ windowSeconds: 60 })).toMatchObject({ stats: { windowSeconds: 60, exact: true } });
    expect((await reader.streams({ userId, prefix: 'clients/' })).nodes).toMatchObject([{ key: stream }]);
    const redacted = await reader.messages({ stream, kinds: ['RESULT'] });
    expect(redacted.nodes).toMatchObject([{ payload: null, payloadState: 'REDACTED' }]);
    const shown = await reader.commandMessages({ userId, commandId, includePayload: true });
    expect(shown.nodes[2]).toMatchObject({ kind: 'RESULT', payload: { got: 'planted-result' } });
    expect((await reader.rawMessages({ stream, limit: 1 })).items).toHaveLength(1);
  });

  test('reads a listing to its end, page by page', async () => {
    const ids: string[] = [];
    for await (const { nodes } of pages((after) => reader.messages({ stream, first: 2, after })))
      ids.push(...nodes.map(({ id }) => id));
    const whole = (await reader.messages({ stream })).nodes.map(({ id }) => id);
    expect(whole.length).toBeGreaterThan(4);
    expect(ids).toEqual(whole);
  });
});

describe('the worker methods', () => {
  test('use the literal user `default` if none is named, never the requester and never everybody', async () => {
    const requested = (question: (admin: Admin) => Promise<unknown>): Promise<unknown> => {
      const { promise, resolve } = Promise.withResolvers<unknown>();
      const fetch: typeof globalThis.fetch = async (_url, init) => {
        resolve(JSON.parse(String(init?.body)).variables);
        return Response.json({ data: { workers: { available: {}, forTask: {} } } });
      };
      void question(createAdmin({ url: at.url, token: 't', fetch }));
      return promise;
    };
    expect(await requested((admin) => admin.workers())).toEqual({ userId: 'default' });
    expect(await requested((admin) => admin.availableWorkers({ clientType: 'WEB' }))).toEqual({
      userId: 'default',
      clientType: 'WEB',
    });
    expect(await requested((admin) => admin.workersOfTask('t1'))).toEqual({ userId: 'default', taskId: 't1' });
    expect(await requested((admin) => admin.workers({ userId: 'alice' }))).toEqual({ userId: 'alice' });
    expect(await reader.workers()).toMatchObject({ idle: [], assigned: [] });
  });
});

describe('an AdminError', () => {
  const failing = async (question: Promise<unknown>): Promise<AdminError> => {
    const error = await question.catch((thrown: unknown) => thrown);
    if (!(error instanceof AdminError)) throw new Error(`no AdminError: ${String(error)}`);
    return error;
  };

  test("carries the relay's refusal: wrong token, wrong requester, wrong argument, wrong user", async () => {
    const wrong = await failing(createAdmin({ url: at.url, token: 'nobody' }).users());
    expect([wrong.code, wrong.status]).toEqual(['unauthenticated', 401]);
    const user = createAdmin({ url: at.url, token: (await at.token(OTHER)) ?? '' });
    expect((await failing(user.users())).code).toBe('forbidden');
    expect((await failing(user.workers({ userId: OWNER, first: 10 }))).code).toBe('not_found');
    const range = await failing(reader.users({ first: 0 }));
    expect([range.code, range.message]).toEqual(['invalid_argument', expect.stringContaining('first')]);
    expect((await failing(reader.messages({ stream: 'none' }))).code).toBe('invalid_argument');
    expect((await failing(reader.connections({ after: 'torn' }))).code).toBe('invalid_cursor');
  });

  test('reports that no relay answers', async () => {
    const of = (answer: () => Response): Admin =>
      createAdmin({ url: at.url, token: 't', retries: 0, fetch: async () => answer() });
    const page = await failing(of(() => new Response('<html>', { status: 404 })).users());
    expect([page.code, page.status]).toEqual(['bad_answer', 404]);
    expect((await failing(of(() => new Response('', { status: 502 })).users())).code).toBe('unreachable');
    const broken = of(() => {
      throw new TypeError('fetch failed');
    });
    const error = await failing(broken.users());
    expect([error.code, error.status]).toEqual(['unreachable', null]);
    expect((await failing(of(() => Response.json({ errors: ['odd'] })).users())).code).toBe('bad_answer');
  });

  test('is not used for an invalid URL: that is a TypeError at once', () => {
    expect(() => createAdmin({ url: 'relay', token: 't' })).toThrow(TypeError);
  });

  test('follows a refused token only after one more request for a token', async () => {
    const tokens = ['stale', ADMIN];
    const admin = createAdmin({ url: at.url, token: () => tokens.shift() ?? '' });
    expect((await admin.users()).nodes).toHaveLength(2);
  });
});
