/** Defines the contract tests of CommandStore about cancellation, expiry and giving up. */
import { describe, expect, it } from 'vitest';
import { BOUND, dispatched, ending, keyFor, kinds, openNode, read, type Bench } from '../kit/bench.ts';
import { commandActs } from './acts.ts';

/** Defines the tests of cancellation, expiry and giving up. */
export function settling(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('settling', () => {
    const cancel = { kind: 'cancel', reason: 'enough', by: 'test' } as const;

    it('cancels permanently before dispatch: nothing was written and nothing will be', async () => {
      await bind();
      await admit('c1');
      expect(await bench().backend.commands.settle(keyFor('c1'), cancel)).toMatchObject({
        kind: 'settled',
        command: { outcome: 'cancelled', execution: 'not_written', lastProvenStage: 'queued' },
      });
      expect(await bench().backend.commands.settle(keyFor('c1'), cancel)).toMatchObject({ kind: 'unchanged' });
    });

    it("only requests a cancel after dispatch, and leaves the end to the client's answer", async () => {
      const node = await openNode(bench());
      await bind();
      await dispatched(bench(), 'c1');
      await node.take();
      expect(await bench().backend.commands.settle(keyFor('c1'), cancel)).toMatchObject({
        kind: 'requested',
        command: { stage: 'dispatched', outcome: null },
      });
      expect(await node.take()).toEqual([{ kind: 'cancel', key: keyFor('c1'), reason: 'enough' }]);
      expect((await read(bench(), 'c1')).cancelRequestedAt).toBe(bench().now());
      await bench().backend.commands.finish(keyFor('c1'), ending());
      expect(await read(bench(), 'c1')).toMatchObject({ outcome: 'completed' });
    });

    it('expires a parked command at its connect deadline and not before', async () => {
      await admit('c1', { connectWithinMs: 5_000 });
      await bench().advance(4_999);
      expect(await bench().backend.nodes.due(10)).toEqual([]);
      expect(await bench().backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
        kind: 'unchanged',
      });
      await bench().advance(1);
      expect(await bench().backend.nodes.due(10)).toEqual([keyFor('c1')]);
      expect(await bench().backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
        kind: 'settled',
        command: { outcome: 'expired', execution: 'not_written', error: { code: 'connect_timeout' } },
      });
      expect(await bench().backend.nodes.due(10)).toEqual([]);
    });

    it('expires a command that was never dispatched, and reports that a dispatched one may have run', async () => {
      await bind();
      await admit('c1');
      await dispatched(bench(), 'c2');
      await bench().advance(30_000);
      expect(await bench().backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
        command: { outcome: 'expired', error: { code: 'queue_timeout' } },
      });
      expect(await bench().backend.commands.settle(keyFor('c2'), { kind: 'expire' })).toMatchObject({
        command: {
          outcome: 'outcome_unknown',
          execution: 'may_have_run',
          lastProvenStage: 'dispatched',
          error: { code: 'response_timeout' },
        },
      });
      expect(await kinds(bench(), 'c2')).toEqual(['command', 'error']);
    });

    it('gives up only commands of the named instance', async () => {
      await bind();
      await dispatched(bench(), 'c1');
      const giveUp = (instanceId: string) =>
        bench().backend.commands.settle(keyFor('c1'), { kind: 'give_up', code: 'instance_replaced', instanceId });
      expect(await giveUp('i9')).toMatchObject({ kind: 'unchanged' });
      expect(await giveUp('i1')).toMatchObject({
        kind: 'settled',
        command: { outcome: 'outcome_unknown', error: { code: 'instance_replaced' } },
      });
    });

    it('proves nothing after the store lost data, not even for an undispatched command', async () => {
      await bind();
      await admit('c1');
      const giveUp = { kind: 'give_up', code: 'store_lost', instanceId: null } as const;
      expect(await bench().backend.commands.settle(keyFor('c1'), giveUp)).toMatchObject({
        kind: 'settled',
        command: {
          outcome: 'outcome_unknown',
          execution: 'may_have_run',
          lastProvenStage: 'queued',
          attempts: 0,
          error: { code: 'store_lost', message: 'The store lost data that it had confirmed.' },
        },
      });
      expect(await bench().backend.commands.dispatch(keyFor('c1'), BOUND)).toEqual({ kind: 'skip' });
      await admit('c2');
      const nodeLost = { kind: 'give_up', code: 'node_lost', instanceId: null } as const;
      expect(await bench().backend.commands.settle(keyFor('c2'), nodeLost)).toMatchObject({
        command: { outcome: 'expired', execution: 'not_written', error: { code: 'node_lost' } },
      });
    });
  });
}
