/** Tests that the search for a command and the groups of failures read a bounded number of commands, and say so. */
import { expect, it } from 'vitest';
import { SCAN_BUDGET } from '../../src/core/page.ts';
import { admin, testCore, type TestCore } from '../kit/core.ts';

/** Admits this many commands of twenty users, for clients that do not exist, by the storage port. */
async function admitMany({ backend }: TestCore, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const userId = `user-${i % 20}`;
    await backend.commands.admit({
      ...{ userId, clientId: 'away', commandId: `command-${i}`, chosenId: true, action: 'open', digest: 'd' },
      ...{ scopeId: userId, scopeLimit: count, memberLimit: null, namedInstanceId: null, clientType: null },
      ...{ params: null, kept: { payload: null, spill: null }, caller: { kind: 'user', name: userId } },
      ...{ traceId: null, parentSpanId: null, traceFlags: null, traceState: null, callSpan: null },
      ...{ connectWithinMs: 300_000, respondWithinMs: 300_000 },
      waiter: {
        ...{ rpcId: `rpc-${i}`, caller: { kind: 'user', name: userId }, callerNodeId: 'n1' },
        ...{ waitFor: 'admitted', withinMs: null },
      },
    });
  }
}

it('a search reads on where its page ended, and failures among older commands are said to be missing', async () => {
  await using at = await testCore();
  const { lookup } = at.core;
  await admitMany(at, SCAN_BUDGET + 1);
  const first = await lookup.find(admin, 'command-0', {});
  expect([first.nodes, first.hasNextPage, first.completeness.complete]).toEqual([[], true, false]);
  expect(first.completeness.sources[0]).toMatchObject({ reason: 'limit_reached', limit: SCAN_BUDGET });
  const rest = await lookup.find(admin, 'command-0', { after: first.cursors.end() });
  expect([rest.nodes.map(({ commandId }) => commandId), rest.hasNextPage]).toEqual([['command-0'], false]);
  const by = { by: ['action'], first: 20 } as const;
  const failures = await lookup.failures(admin, {}, by);
  expect(failures).toMatchObject({ groups: [], count: 0, completeness: { complete: false } });
  expect(failures.completeness.sources[0]).toMatchObject({ reason: 'limit_reached', limit: SCAN_BUDGET });
});
