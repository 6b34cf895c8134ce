/** Tests the documented semantics of deduplication and of tasks on workers. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { schema } from '../../src/graphql/schema/schema.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';

let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay();
});
afterEach(() => at[Symbol.asyncDispose]());

const json = async (path: string): Promise<any> => JSON.parse((await at.rest(path)).text);

describe('3. Deduplication describes server ingestion, not client execution', () => {
  const stats = async () => {
    const { seen, unique, duplicates } = await json('/dedup/stats');
    return { seen, unique, duplicates };
  };

  it('a result that is sent again is a duplicate, although the client ran once', async () => {
    const tab = await at.client();
    const runs: string[] = [];
    const invoked = at.post('/connections/alice/tab/actions/open', { command_id: 'c1' });
    runs.push((await tab.next('command')).command_id);
    for (const recorded of ['recorded', 'duplicate', 'duplicate']) {
      tab.send({ type: 'result', command_id: 'c1' }, { ran: runs.length });
      expect(await tab.next('result_ack')).toMatchObject({ recorded });
    }
    await invoked;
    expect(tab.seen('command')).toHaveLength(1);
    expect(await stats()).toEqual({ seen: 3, unique: 1, duplicates: 2 });
    const file = '{ command(userId: "alice", clientId: "tab", commandId: "c1") { sightings { count } } }';
    expect(await at.data(file)).toEqual({ command: { sightings: [{ count: 3 }] } });
  });

  it('an event that is ingested twice is a duplicate, although no client executed anything', async () => {
    const event = { message_id: 'm1', kind: 'event', stream_suffix: 'notes', client_id: 'tab', instance_id: 'i1' };
    for (const duplicate of [false, true]) {
      expect((await at.post('/ingest', event, 'alice:host')).json).toMatchObject({ items: [{ duplicate }] });
    }
    expect(await stats()).toEqual({ seen: 2, unique: 1, duplicates: 1 });
    expect(await json('/delivery/commands')).toMatchObject({ items: [] });
  });

  it('and its types state it', () => {
    expect(schema.getType('DedupSighting')?.description).toMatch(/does not say how often the client executed/);
    expect(schema.getType('DedupStats')?.description).toMatch(/does not say how often any client executed/);
  });
});

describe('5. A task identifier on a worker context shows a current registry assignment only', () => {
  const context = (context_id: string, task_id?: string) => ({
    context_id,
    status: 'active',
    ownership: 'worker',
    task_id,
  });
  const workersOn = async (task: string): Promise<readonly string[]> =>
    (await json(`/workers/tasks/${task}?user_id=alice`)).items.map((row: { context_id: string }) => row.context_id);
  const shows = (task: string, count: number) => until(async () => (await workersOn(task)).length === count);

  it('leads to the command that the client reports as the task, and to the context by its ids', async () => {
    const tab = await at.client();
    void at.post('/connections/alice/tab/actions/open', { command_id: 'c1' });
    await tab.next('command');
    tab.send(
      { type: 'report' },
      { contexts: { set: [context('w1', 'c1'), context('w2', 'not-a-command'), context('w3')] } },
    );
    await shows('c1', 1);
    const rows = `{ contexts { nodes { contextId command { action delivery { caller { name } } } } } }`;
    expect(await at.data(rows)).toEqual({
      contexts: {
        nodes: [
          { contextId: 'w1', command: { action: 'open', delivery: { caller: { name: 'alice' } } } },
          { contextId: 'w2', command: null },
          { contextId: 'w3', command: null },
        ],
      },
    });
    const one = (id: string) =>
      `{ context(userId: "alice", clientId: "tab", contextId: "${id}") { taskId command { commandId } } }`;
    expect(await at.data(one('w1'))).toEqual({ context: { taskId: 'c1', command: { commandId: 'c1' } } });
    expect(await at.data(one('never'))).toEqual({ context: null });
  });

  it('not that a durable job system owns the task: several may claim it, and it is gone with the next report', async () => {
    const tab = await at.client({ client_id: 'tab', payload: {} });
    const phone = await at.client({ client_id: 'phone', payload: {} });
    for (const client of [tab, phone]) client.send({ type: 'report' }, { contexts: { set: [context('w1', 't1')] } });
    await shows('t1', 2);
    tab.send({ type: 'report' }, { contexts: { set: [context('w1', 't2')] } });
    await shows('t1', 1);
    expect(await workersOn('t2')).toEqual(['w1']);
    phone.send({ type: 'report' }, { contexts: { removed: ['w1'] } });
    await shows('t1', 0);
    expect(await json('/history/streams?user_id=alice')).toMatchObject({ items: [] });
    expect(await json('/delivery/commands?user_id=alice')).toMatchObject({ items: [] });
  });

  it('not that its external effect completed: an assignment that ends does not say how', async () => {
    const tab = await at.client({ payload: {} });
    const outcomes: string[] = [];
    for (const [task, outcome] of [
      ['done', 'effect complete'],
      ['dropped', 'nothing happened'],
    ] as const) {
      tab.send({ type: 'report' }, { contexts: { snapshot: true, set: [context('w1', task)] } });
      await shows(task, 1);
      tab.send({ type: 'report' }, { contexts: { snapshot: true, set: [{ ...context('w1'), status: 'idle' }] } });
      await shows(task, 0);
      const { idle, assigned } = await json('/workers?user_id=alice');
      const [{ reported_at: _, ...row }] = idle;
      outcomes.push(`${outcome}: ${JSON.stringify([row, assigned])}`);
    }
    const [done = '', dropped = ''] = outcomes;
    expect(done.split(': ').slice(1)).toEqual(dropped.split(': ').slice(1));
    expect(done).toContain('"task_id":null');
  });

  it('disappears with its client, and reading acquires nothing', async () => {
    const tab = await at.client({ payload: {} });
    tab.send({ type: 'report' }, { contexts: { set: [context('w1', 't1'), { ...context('w2'), status: 'idle' }] } });
    await shows('t1', 1);
    const available = async () =>
      (await json('/workers/available?user_id=alice')).items.map((row: any) => row.context_id);
    for (let look = 0; look < 3; look++) expect(await available()).toEqual(['w2']);
    await at.clock.advance(125_000);
    expect([await workersOn('t1'), await available()]).toEqual([[], []]);
  });

  it('and its type states it', () => {
    expect(schema.getType('ExecutionContext')?.description).toMatch(/neither that a durable job system owns the task/);
  });
});
