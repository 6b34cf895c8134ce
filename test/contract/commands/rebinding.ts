/** Defines the contract tests of CommandStore about links that open, close or move. */
import { describe, expect, it } from 'vitest';
import { ALICE, type Bench, BOUND, commandActs, dispatched, keyFor, openNode, read } from '../kit/bench.ts';

/** Defines the tests of the commands of a client whose link opens, closes or moves. */
export function rebinding(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('rebinding', () => {
    it('queues parked commands in the order of admission when the client connects', async () => {
      const node = await openNode(bench());
      for (const id of ['c1', 'c2', 'c3']) await admit(id, { connectWithinMs: 5_000 });
      await bind();
      expect((await node.take()).map((row) => row.kind === 'command' && row.key.commandId)).toEqual(['c1', 'c2', 'c3']);
      await bench().advance(5_000);
      expect(await bench().backend.nodes.due(10)).toEqual([]);
    });

    it('parks undispatched commands when the link closes, until their deadline', async () => {
      await bind();
      await admit('c1');
      await bench().backend.commands.rebind(ALICE, BOUND, 'down');
      expect(await read(bench(), 'c1')).toMatchObject({ stage: 'admitted', nodeId: null, execution: 'not_written' });
      expect(await bench().backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
        kind: 'unchanged',
      });
      expect(
        await bench().backend.commands.rebind(ALICE, { ...BOUND, epoch: 2, instanceId: 'i2' }, 'up'),
      ).toMatchObject({
        requeued: 1,
      });
      expect(
        await bench().backend.commands.dispatch(keyFor('c1'), { ...BOUND, epoch: 2, instanceId: 'i2' }),
      ).toMatchObject({ kind: 'dispatch', command: { boundInstanceId: 'i2' } });
    });

    it('queues again for the link that is bound, and for no other', async () => {
      const { rebind } = bench().backend.commands;
      const node = await openNode(bench());
      const nothing = { requeued: 0, unfinished: [], orphaned: [] };
      const second = { ...BOUND, epoch: 2 };
      await bind();
      await rebind(ALICE, BOUND, 'down');
      await admit('c1', { connectWithinMs: 5_000 });
      expect(await rebind(ALICE, BOUND, 'again')).toEqual(nothing);
      expect([await node.take(), await read(bench(), 'c1')]).toMatchObject([[], { stage: 'admitted', queuedAt: null }]);
      await rebind(ALICE, second, 'up');
      expect(await node.take()).toHaveLength(1);
      expect(await rebind(ALICE, BOUND, 'again')).toEqual(nothing);
      expect(await node.take()).toEqual([]);
      expect(await rebind(ALICE, second, 'again')).toEqual({ ...nothing, requeued: 1 });
      expect(await node.take()).toMatchObject([{ kind: 'command', key: { commandId: 'c1' } }]);
      expect(await bench().backend.commands.dispatch(keyFor('c1'), second)).toMatchObject({ kind: 'dispatch' });
    });

    it('sorts running commands by the instance that they were written to, and never writes them again', async () => {
      await bind();
      await dispatched(bench(), 'c1');
      expect(await bench().backend.commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up')).toMatchObject({
        unfinished: [{ commandId: 'c1' }],
        orphaned: [],
      });
      expect(
        await bench().backend.commands.rebind(ALICE, { ...BOUND, epoch: 3, instanceId: 'i2' }, 'up'),
      ).toMatchObject({
        unfinished: [],
        orphaned: [{ commandId: 'c1' }],
      });
      expect(await bench().backend.commands.dispatch(keyFor('c1'), { ...BOUND, epoch: 3, instanceId: 'i2' })).toEqual({
        kind: 'skip',
      });
    });

    it('keeps what a move changed, although a dispatch that changed nothing came before it', async () => {
      const { dispatch, rebind, settle } = bench().backend.commands;
      await openNode(bench());
      await bind();
      await dispatched(bench(), 'c1');
      expect(await dispatch(keyFor('c1'), BOUND, 'another')).toEqual({ kind: 'skip' });
      await rebind(ALICE, { ...BOUND, nodeId: 'n2', epoch: 2 }, 'up');
      const moved = await read(bench(), 'c1');
      expect(moved).toMatchObject({ nodeId: 'n2', recoveredFromNodeId: 'n1' });
      await settle(keyFor('c1'), { kind: 'cancel', reason: null, by: 'test' });
      expect(await read(bench(), 'c1')).toEqual({
        ...moved,
        version: (moved?.version ?? 0) + 1,
        cancelRequestedAt: bench().now(),
        reason: 'cancel requested by test',
      });
    });

    it('records from which node a command was taken over, whether its link was closed before or not', async () => {
      await bind();
      for (const id of ['parked', 'replaced']) await admit(id);
      await dispatched(bench(), 'running');
      const on = (nodeId: string, epoch: number) => ({ ...BOUND, nodeId, epoch });
      const from = async () => {
        const keys = ['parked', 'replaced', 'running'].map((id) => keyFor(id));
        return (await bench().backend.commands.get(keys)).map((command) => command?.recoveredFromNodeId);
      };
      await bench().backend.commands.rebind(ALICE, on('n1', 2), 'up');
      expect(await from()).toEqual([null, null, null]);
      await bench().backend.commands.rebind(ALICE, on('n1', 2), 'down');
      await bench().backend.commands.rebind(ALICE, on('n2', 3), 'up');
      expect(await from()).toEqual(['n1', 'n1', 'n1']);
      await bench().backend.commands.rebind(ALICE, on('n3', 4), 'up');
      await bench().backend.commands.rebind(ALICE, on('n3', 5), 'up');
      expect(await from()).toEqual(['n2', 'n2', 'n2']);
      expect(await read(bench(), 'running')).toMatchObject({ nodeId: 'n3', stage: 'dispatched' });
    });

    it('keeps a command for the instance that it names, and ends it if that instance was replaced after queueing', async () => {
      await admit('parked', { namedInstanceId: 'i2', connectWithinMs: 60_000 });
      await bind();
      expect(await read(bench(), 'parked')).toMatchObject({ stage: 'admitted' });
      await admit('queued', { namedInstanceId: 'i1' });
      expect(
        await bench().backend.commands.rebind(ALICE, { ...BOUND, epoch: 2, instanceId: 'i2' }, 'up'),
      ).toMatchObject({
        requeued: 0,
      });
      expect(await read(bench(), 'parked')).toMatchObject({ stage: 'queued', expectedInstanceId: 'i2' });
      expect(await read(bench(), 'queued')).toMatchObject({
        outcome: 'expired',
        execution: 'not_written',
        error: { code: 'instance_replaced' },
      });
    });
  });
}
