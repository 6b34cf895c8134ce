/** Tests the pool of workers in the demo's kiosk. */
import { expect, it } from 'vitest';
import { WorkerPool } from '../../demo/actions.ts';

/** Creates a pool whose tasks end on request. */
function setUp(windows: number, workersInEach: number) {
  const pool = new WorkerPool({ windows, workersInEach });
  const begun: string[] = [];
  const start = (taskId: string) => {
    const abort = new AbortController();
    const { promise, resolve } = Promise.withResolvers<string>();
    const done = pool.run({ taskId, signal: abort.signal }, () => {
      begun.push(taskId);
      return promise;
    });
    done.catch(() => {});
    return { abort, done, end: () => resolve(`${taskId} is done`) };
  };
  return { pool, begun, start };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const tasks = (pool: WorkerPool) => Object.fromEntries(pool.contexts().map((c) => [c.contextId, c.taskId ?? null]));
const statuses = (pool: WorkerPool) => new Set(pool.contexts().map(({ status, taskId }) => `${status} ${taskId}`));

it('gives each task a worker of its own, and lets the next one wait for the first idle one', async () => {
  const { pool, begun, start } = setUp(1, 2);
  const [one, two, three] = [start('one'), start('two'), start('three')];
  await settle();
  expect(begun).toEqual(['one', 'two']);
  expect(tasks(pool)).toEqual({ 'desk-1-worker-1': 'one', 'desk-1-worker-2': 'two' });
  two.end();
  expect(await two.done).toBe('two is done');
  await settle();
  expect(begun).toEqual(['one', 'two', 'three']);
  expect(tasks(pool)).toEqual({ 'desk-1-worker-1': 'one', 'desk-1-worker-2': 'three' });
  one.end();
  three.end();
  await Promise.all([one.done, three.done]);
  expect(statuses(pool)).toEqual(new Set(['idle null']));
});

it('frees the worker of work that fails', async () => {
  const pool = new WorkerPool({ windows: 1, workersInEach: 1 });
  const { signal } = new AbortController();
  const broken = pool.run({ taskId: 'broken', signal }, () => Promise.reject(new Error('out of paper')));
  await expect(broken).rejects.toThrow('out of paper');
  expect(statuses(pool)).toEqual(new Set(['idle null']));
});

it('does not begin a task that is aborted while it waits, and gives its turn to the next', async () => {
  const { pool, begun, start } = setUp(1, 1);
  const [first, second, third] = [start('first'), start('second'), start('third')];
  second.abort.abort(new Error('never mind'));
  await expect(second.done).rejects.toThrow('never mind');
  first.end();
  await first.done;
  await settle();
  expect(begun).toEqual(['first', 'third']);
  third.end();
  await third.done;
  const late = new AbortController();
  late.abort(new Error('too late'));
  await expect(pool.run({ taskId: 'late', signal: late.signal }, async () => 1)).rejects.toThrow('too late');
  expect(statuses(pool)).toEqual(new Set(['idle null']));
});

it('drains a window: running tasks end there, none begins there, and then a new window replaces it', async () => {
  const { pool, start } = setUp(2, 1);
  const before = start('before');
  await settle();
  const rested = Promise.withResolvers<void>();
  let rests = 0;
  const renewed = pool.renew(() => {
    rests++;
    return rested.promise;
  });
  const [after, last] = [start('after'), start('last')];
  await settle();
  expect(pool.windows().map(({ windowId, draining }) => [windowId, draining])).toEqual([
    ['desk-1', true],
    ['desk-2', false],
  ]);
  expect(tasks(pool)).toEqual({ 'desk-1-worker-1': 'before', 'desk-2-worker-1': 'after' });
  before.end();
  await before.done;
  await settle();
  expect([rests, tasks(pool)]).toEqual([1, { 'desk-2-worker-1': 'after' }]);
  rested.resolve();
  await renewed;
  await settle();
  expect(pool.windows().map(({ windowId, draining }) => [windowId, draining])).toEqual([
    ['desk-2', false],
    ['desk-3', false],
  ]);
  expect(tasks(pool)).toEqual({ 'desk-2-worker-1': 'after', 'desk-3-worker-1': 'last' });
  for (const task of [after, last]) task.end();
  await Promise.all([after.done, last.done]);
});

it('announces each change after it happened', async () => {
  const { pool, start } = setUp(1, 1);
  const changes: unknown[] = [];
  pool.onChange(() => changes.push(tasks(pool)));
  const task = start('task');
  await settle();
  task.end();
  await task.done;
  expect(changes).toEqual([{ 'desk-1-worker-1': 'task' }, { 'desk-1-worker-1': null }]);
});
