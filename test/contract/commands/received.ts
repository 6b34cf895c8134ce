/** Defines the contract tests of CommandStore about clients that say what they have received. */
import { describe, expect, it } from 'vitest';
import type { Binding, RebindResult } from '../../../src/core/commands/command-store.ts';
import type { Command } from '../../../src/core/commands/command.ts';
import {
  ALICE,
  BOUND,
  admission,
  commandActs,
  ending,
  keyFor,
  kinds,
  openNode,
  read,
  type Bench,
} from '../kit/bench.ts';

const TOLD: Binding = { ...BOUND, tellsReceived: true };

function link(epoch: number, over: Partial<Binding> = {}): Binding {
  return { ...TOLD, epoch, ...over };
}

function idOf({ commandId }: Command): string {
  return commandId;
}

/** A command that failed because it never arrived. Nothing ran. */
const NOT_RECEIVED = {
  stage: 'terminal',
  outcome: 'failed',
  execution: 'refused_by_client',
  error: { code: 'not_received' },
} as const;

/** Defines the tests of what happens to commands of which a client says that they never arrived. */
export function receiving(bench: () => Bench): void {
  const { admit } = commandActs(bench);
  const rebind = async (binding: Binding, ...received: readonly string[]): Promise<RebindResult> =>
    bench().backend.commands.rebind(ALICE, binding, 'up', new Set(received));
  const dispatch = async (commandId: string, binding: Binding): Promise<Command> => {
    const result = await bench().backend.commands.dispatch(keyFor(commandId), binding);
    if (result.kind !== 'dispatch') throw new Error(`not dispatched: ${commandId}`);
    return result.command;
  };
  const run = async (...ids: readonly string[]): Promise<void> => {
    await rebind(TOLD);
    for (const id of ids) await admit(id);
    for (const id of ids) await dispatch(id, TOLD);
  };

  describe('what never arrived', () => {
    it('is written again in order, or has failed as not received: each of those that are not named', async () => {
      const node = await openNode(bench());
      await run('c1', 'c2', 'c3');
      const { unfinished, unreceived } = await rebind(link(2), 'c2');
      expect(unfinished).toMatchObject([{ commandId: 'c2', attempts: 1 }]);
      const { again = [], ended = [] } = unreceived ?? {};
      // What is written again is in order. What has ended may be in any order.
      const lost = [...again.map(({ command }) => command), ...ended.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1))];
      expect(lost.map(idOf)).toEqual(['c1', 'c3']);
      for (const { command, params, remainingMs } of again) {
        expect([params, remainingMs, command.attempts, command.stage]).toEqual(['{"n":1}', 30_000, 2, 'dispatched']);
        expect(await read(bench(), command.commandId)).toEqual(command);
      }
      for (const command of ended) {
        expect(await read(bench(), command.commandId)).toMatchObject(NOT_RECEIVED);
        expect(await kinds(bench(), command.commandId)).toEqual(['command', 'error']);
      }
      const told = (await node.take()).filter((row) => row.kind === 'ended').map(({ key }) => key.commandId);
      expect(told).toEqual(ended.map(idOf));
    });

    it('is neither an acknowledged command nor one with progress, whatever the client names', async () => {
      await run('c1', 'c2');
      const { report } = bench().backend.commands;
      await report(keyFor('c1'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
      await report(keyFor('c2'), { instanceId: 'i1', kind: 'progress', payload: null, kept: null });
      const { unfinished, unreceived } = await rebind(link(2));
      expect([unfinished.map(idOf).sort(), unreceived]).toEqual([['c1', 'c2'], { again: [], ended: [] }]);
    });

    it('is what the link of another instance had not, nor what a client does not say', async () => {
      await run('c1');
      const silent = await bench().backend.commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up');
      expect(silent).toMatchObject({ unfinished: [{ commandId: 'c1' }] });
      expect(silent.unreceived).toBeUndefined();
      expect(await rebind(link(3, { instanceId: 'i2' }))).toMatchObject({
        unfinished: [],
        orphaned: [{ commandId: 'c1' }],
        unreceived: { again: [], ended: [] },
      });
      expect(await read(bench(), 'c1')).toMatchObject({ stage: 'dispatched', attempts: 1 });
    });

    it('is nothing for a link that is older than the bound one', async () => {
      await run('c1');
      await rebind(link(3), 'c1');
      expect(await rebind(link(2))).toEqual({ requeued: 0, unfinished: [], orphaned: [] });
      expect(await read(bench(), 'c1')).toMatchObject({ stage: 'dispatched', attempts: 1 });
    });

    it('is not written again once it is due, or once its cancel was requested', async () => {
      await run('c1', 'c2');
      await bench().backend.commands.settle(keyFor('c2'), { kind: 'cancel', reason: null, by: 'user:alice' });
      expect((await rebind(link(2), 'c1')).unreceived).toMatchObject({ again: [], ended: [{ commandId: 'c2' }] });
      await bench().advance(30_000);
      expect((await rebind(link(3))).unreceived).toMatchObject({ again: [], ended: [{ commandId: 'c1' }] });
      for (const id of ['c1', 'c2']) expect(await read(bench(), id)).toMatchObject(NOT_RECEIVED);
    });

    it('ends once: a late end of it is evidence and changes nothing', async () => {
      await run('c1');
      const { unreceived } = await rebind(link(2));
      const { finish } = bench().backend.commands;
      const [first, second] = [await finish(keyFor('c1'), ending()), await finish(keyFor('c1'), ending())];
      const isEnded = unreceived?.ended.length === 1;
      expect([first.kind, second.kind]).toEqual([isEnded ? 'late' : 'finished', 'duplicate']);
      expect(await read(bench(), 'c1')).toMatchObject(
        isEnded ? { ...NOT_RECEIVED, lateResults: 1 } : { outcome: 'completed', attempts: 2 },
      );
    });

    it('has params that were absent too, and those of a command that was dispatched as it was admitted', async () => {
      await rebind(TOLD);
      const claim = { binding: TOLD, attempt: '1' };
      await bench().backend.commands.admit(admission('c1', { params: null, claim }));
      const { unreceived } = await rebind(link(2));
      const { again = [], ended = [] } = unreceived ?? {};
      expect(again.length + ended.length).toBe(1);
      for (const { params } of again) expect(params).toBe('{}');
    });
  });
}
