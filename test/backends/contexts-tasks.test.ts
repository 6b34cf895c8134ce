/** Tests that workers of a task are found in memory without a look at every context of their user. */
import { expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { ContextFilter, ReportedContext } from '../../src/core/contexts/context.ts';
import { CLIENT_CONTEXTS } from '../../src/core/limits.ts';
import { SCAN_BUDGET } from '../../src/core/page.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';

const ANY: ContextFilter = {
  ...{ userId: 'alice', clientId: null, clientType: null, statuses: null, ownership: null, windowId: null },
  ...{ assigned: null, taskId: null },
};

function worker(contextId: string, taskId: string | null): ReportedContext {
  return {
    ...{ contextId, taskId, windowId: null, title: null, metadata: null },
    status: 'active',
    ownership: 'worker',
  };
}

it('workers of a task are on the first page, however many contexts are before them', async () => {
  const { connections, contexts } = createMemoryBackend({
    markSecret: 'x',
    ...{ clock: new FakeClock(), log: silentLog, sha256: createCrypto('test').sha256 },
  });
  const clients = Math.ceil(SCAN_BUDGET / CLIENT_CONTEXTS) + 2;
  for (let number = 0; number < clients; number++) {
    const key = { userId: 'alice', clientId: `tab${String(number).padStart(4, '0')}` };
    const seen = { nodeId: 'n1', clientType: 'browser', host: false, metadata: null, actions: [] } as const;
    const { connection } = await connections.connect({ ...key, instanceId: 'i1', ...seen });
    const set = Array.from({ length: CLIENT_CONTEXTS }, (_, at) => worker(`w${at}`, null));
    if (number === clients - 1) set.splice(-2, 2, worker('x1', 'last'), worker('x2', 'last'));
    await contexts.report(key, connection.epoch, { contexts: { snapshot: true, set, removed: [] }, windows: null });
  }
  const [last, other] = await contexts.lists(
    [
      { ...ANY, taskId: 'last' },
      { ...ANY, taskId: 'other' },
    ],
    10,
  );
  expect([last?.rows.map(({ row }) => row.contextId), last?.next]).toEqual([['x1', 'x2'], null]);
  expect([other?.rows, other?.next]).toEqual([[], null]);
  const second = await contexts.list({ ...ANY, taskId: 'last' }, { first: 1, after: last?.rows[0]?.position ?? null });
  expect(second.rows.map(({ row }) => row.contextId)).toEqual(['x2']);
});
