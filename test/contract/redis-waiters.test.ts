/** Runs the contract of waiters over Redis, and tests a wait that another process registers. */
import { describe, expect, it } from 'vitest';
import { createHeldCommands } from '../../src/backends/redis/commands/record.ts';
import { createRedisWaiters } from '../../src/backends/redis/waiters.ts';
import { ALICE, BOUND, CALLER, dispatched, keyFor, openNode } from './kit/bench.ts';
import { auditedBench } from './kit/redis-bench.ts';
import { waiterContract } from './waiters.ts';

waiterContract('Redis', () => auditedBench());

describe('a wait over Redis', () => {
  it('gets its reply from a process that cached the record before another registered the wait', async () => {
    const bench = await auditedBench();
    try {
      const node = await openNode(bench);
      await bench.backend.commands.rebind(ALICE, BOUND, 'up');
      await dispatched(bench, 'c1');
      await node.take();
      const registering = createRedisWaiters({ ...bench.parts, held: createHeldCommands() });
      const wait = {
        rpcId: 'r2',
        caller: CALLER,
        callerNodeId: 'n1',
        waitFor: 'acknowledged',
        withinMs: null,
      } as const;
      expect(await registering.attach(keyFor('c1'), wait)).toMatchObject({ kind: 'waiting' });
      await bench.backend.commands.report(keyFor('c1'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
      expect(await node.take()).toMatchObject([{ kind: 'reply', reply: { rpcId: 'r2' } }]);
    } finally {
      await bench.close();
    }
  });
});
