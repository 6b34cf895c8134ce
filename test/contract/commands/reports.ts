/** Defines the contract tests of CommandStore about the reports of clients. */
import { describe, expect, it } from 'vitest';
import { toJson } from '../../../src/core/json.ts';
import { dispatched, keyFor, kinds, openNode, type Bench } from '../kit/bench.ts';
import { commandActs } from './acts.ts';

/** Defines the tests of acknowledgements and progress that the bound instance reports. */
export function reports(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('reports', () => {
    it('accepts an acknowledgement once, from the bound instance only', async () => {
      await bind();
      await dispatched(bench(), 'c1');
      const ack = (instanceId: string) =>
        bench().backend.commands.report(keyFor('c1'), { instanceId, kind: 'ack', payload: null, kept: null });
      expect(await ack('i9')).toMatchObject({ kind: 'ignored' });
      expect(await ack('i1')).toMatchObject({ kind: 'recorded', command: { stage: 'acknowledged' } });
      expect(await ack('i1')).toMatchObject({ kind: 'ignored' });
    });

    it('retains at most one progress row a second', async () => {
      await bind();
      await dispatched(bench(), 'c1');
      const progress = () =>
        bench().backend.commands.report(keyFor('c1'), {
          instanceId: 'i1',
          kind: 'progress',
          payload: toJson(1),
          kept: { payload: toJson(1), spill: null },
        });
      for (let i = 0; i < 5; i++) await progress();
      expect(await kinds(bench(), 'c1')).toEqual(['command', 'progress']);
      await bench().advance(1_000);
      expect(await progress()).toMatchObject({ kind: 'recorded' });
      expect(await kinds(bench(), 'c1')).toEqual(['command', 'progress', 'progress']);
    });

    it('replies to waiters for the acknowledgement when it arrives, and not to waiters for the end', async () => {
      const node = await openNode(bench());
      await bind();
      await dispatched(bench(), 'c1', {
        waiter: { rpcId: 'early', callerNodeId: 'n1', waitFor: 'acknowledged', withinMs: null },
      });
      await admit('c1');
      await node.take();
      await bench().backend.commands.report(keyFor('c1'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
      expect(await node.take()).toMatchObject([
        { kind: 'reply', reply: { rpcId: 'early', command: { stage: 'acknowledged' }, result: null } },
      ]);
    });
  });
}
