/** Tests the task board of the demo. */
import { expect, test } from 'vitest';
import { startBoardServer, createTasks } from '../../demo/pages.ts';
const VIEWERS = {
  type: 'viewers',
  relayUrl: 'http://relay.test',
  viewers: [{ name: 'editor', may: 'may finish tasks', sessionId: 's1', token: 'cbg_</script>' }],
} as const;

async function startBench(viewers: boolean) {
  const tasks = createTasks();
  const changes: string[] = [];
  const server = await startBoardServer({
    tasks,
    viewers: () => (viewers ? { ...VIEWERS, viewers: [...VIEWERS.viewers] } : null),
    apiToken: () => 'api',
    changed: (reason, id) => void changes.push(`${reason} ${id}`),
  });
  const ask = async (method: string, path: string, token = ''): Promise<readonly [number, string]> => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${server.origin}${path}`, { method, headers });
    return [response.status, await response.text()];
  };
  return { tasks, changes, ask, ...server };
}

test('the board keeps a bounded number of tasks, and drops the oldest finished ones', () => {
  const tasks = createTasks();
  for (let count = 0; count < 100; count++) {
    const added = tasks.add();
    if (added) tasks.finish(added.id);
  }
  expect(tasks.list()).toHaveLength(12);
  expect(
    tasks
      .list()
      .filter(({ done }) => !done)
      .map(({ id }) => id),
  ).toEqual(['t1', 't2', 't3']);
  expect(tasks.list().at(-1)).toMatchObject({ id: 't103', done: true });
  expect(tasks.finish('t4')).toBeNull();
});

test('the board accepts no further task while enough are open', () => {
  const tasks = createTasks();
  for (let count = 0; count < 10; count++) tasks.add();
  expect(tasks.list()).toHaveLength(6);
  expect(tasks.add()).toBeNull();
});

test('tasks are finished by the bearer of the token, and announced once', async () => {
  await using bench = await startBench(true);
  expect(await bench.ask('POST', '/api/tasks/t1/finish')).toEqual([401, '']);
  expect(await bench.ask('POST', '/api/tasks/t1/finish', 'apj')).toEqual([401, '']);
  expect(bench.changes).toEqual([]);
  const done = [200, JSON.stringify({ id: 't1', title: 'Sweep the stage', done: true })];
  expect(await bench.ask('POST', '/api/tasks/t1/finish', 'api')).toEqual(done);
  expect(await bench.ask('POST', '/api/tasks/t1/finish', 'api')).toEqual(done);
  expect(await bench.ask('POST', '/api/tasks/t99/finish', 'api')).toEqual([404, '{"message":"There is no task t99."}']);
  expect(bench.changes).toEqual(['task_finished t1']);
});

test('pages require the key, and contain their viewer\u2019s token as data', async () => {
  await using bench = await startBench(true);
  const [status, page] = await bench.ask('GET', `/${bench.key}/editor`);
  expect(status).toBe(200);
  expect(page).toContain('cbg_\\u003c/script>');
  for (const path of [
    '/',
    '/editor',
    '/wrong/editor',
    `/${bench.key}`,
    `/${bench.key}/nobody`,
    `/${bench.key}/editor/`,
  ]) {
    expect(await bench.ask('GET', path)).toEqual([404, '']);
  }
  await using early = await startBench(false);
  expect((await early.ask('GET', `/${early.key}/editor`))[0]).toBe(404);
});
