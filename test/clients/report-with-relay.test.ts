/** Tests that the contexts which a runtime reports arrive at a real relay. */
import { expect, test } from 'vitest';
import { createRuntime, type ReportedContext } from '../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

const worker: ReportedContext = { contextId: 'w1', status: 'idle', ownership: 'worker', windowId: 'win' };
const window = {
  windowId: 'win',
  ownership: 'worker',
  focused: true,
  type: 'normal',
  state: 'maximized',
  incognito: false,
  tabCount: 2,
  draining: false,
  status: 'open',
  workerCount: 9,
} as const;

async function read(relay: RealRelay, path: string): Promise<Record<string, any>> {
  const token = await relay.token('ops', 'admin');
  const answer = await fetch(`${relay.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  return (await answer.json()) as Record<string, any>;
}

function runtimeOf(relay: RealRelay, instanceId: string) {
  const token = () => relay.token('alice', 'connect');
  return createRuntime({ url: relay.link, token, clientId: 'browser', clientType: 'browser', instanceId });
}

test('an operator reads what a runtime reports, until its client stops reporting it or is replaced', async () => {
  await using relay = await startRealRelay();
  await using first = runtimeOf(relay, 'run-1');
  first.reportWindows([window]);
  first.connect();
  await first.ready();
  const counts = async () => {
    const { worker_count, idle_count, busy_count, counts_from } = await read(
      relay,
      '/browser-windows/win?user_id=alice',
    );
    return [worker_count, idle_count, busy_count, counts_from];
  };
  await expect.poll(counts).toEqual([9, 0, 0, 'snapshot']);
  first.reportContexts([worker, { ...worker, contextId: 'w2', taskId: 'job', metadata: { step: 1 } }]);
  await expect.poll(counts).toEqual([2, 1, 1, 'contexts']);
  const { idle, assigned, completeness } = await read(relay, '/workers?user_id=alice&client_type=browser');
  expect(idle).toMatchObject([{ context_id: 'w1', instance_id: 'run-1', status: 'idle', ownership: 'worker' }]);
  expect(assigned).toMatchObject([{ context_id: 'w2', task_id: 'job', metadata: { step: 1 } }]);
  expect(Date.parse(assigned[0].task_assigned_at)).toBeLessThanOrEqual(Date.now());
  expect(completeness.complete).toBe(true);
  first.reportContexts({ removed: ['w2'] });
  await expect.poll(async () => (await read(relay, '/contexts/count?user_id=alice'))['count']).toBe(1);
  await using second = runtimeOf(relay, 'run-2');
  second.connect();
  await second.ready();
  expect((await read(relay, '/contexts'))['items']).toEqual([]);
  expect((await read(relay, '/browser-windows'))['items']).toEqual([]);
  second.reportContexts([{ ...worker, contextId: 'of-second' }]);
  await expect
    .poll(async () => (await read(relay, '/workers/available?user_id=alice'))['items'])
    .toMatchObject([{ context_id: 'of-second', instance_id: 'run-2' }]);
  await second.close();
  await expect
    .poll(async () => (await read(relay, '/contexts?status=stale'))['items'])
    .toMatchObject([{ context_id: 'of-second', status: 'stale' }]);
});
