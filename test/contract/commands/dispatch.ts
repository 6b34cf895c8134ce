/** Defines the contract tests of CommandStore about the dispatch of commands. */
import { describe, expect, it } from 'vitest';
import { toJson } from '../../../src/core/json.ts';
import { BOUND, keyFor, type Bench } from '../kit/bench.ts';
import { commandActs } from './acts.ts';

/** Defines the tests that a command is dispatched once, to the bound link. */
export function dispatch(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('dispatch', () => {
    it('marks the command once, binds the instance and returns the params', async () => {
      await bind();
      await admit('c1');
      expect(await bench().backend.commands.dispatch(keyFor('c1'), BOUND)).toMatchObject({
        kind: 'dispatch',
        params: toJson({ n: 1 }),
        remainingMs: 30_000,
        command: { stage: 'dispatched', attempts: 1, boundInstanceId: 'i1', execution: 'may_have_run' },
      });
      expect(await bench().backend.commands.dispatch(keyFor('c1'), BOUND)).toEqual({ kind: 'skip' });
    });

    it('skips for a link that is no longer bound, for a due command and for an ended one', async () => {
      await bind();
      for (const id of ['c1', 'c2', 'c3']) await admit(id);
      expect(await bench().backend.commands.dispatch(keyFor('c1'), { ...BOUND, epoch: 7 })).toEqual({ kind: 'skip' });
      expect(await bench().backend.commands.dispatch(keyFor('c1'), { ...BOUND, nodeId: 'n9' })).toEqual({
        kind: 'skip',
      });
      await bench().backend.commands.settle(keyFor('c2'), { kind: 'cancel', reason: null, by: 'test' });
      expect(await bench().backend.commands.dispatch(keyFor('c2'), BOUND)).toEqual({ kind: 'skip' });
      await bench().advance(30_000);
      expect(await bench().backend.commands.dispatch(keyFor('c3'), BOUND)).toEqual({ kind: 'skip' });
      expect(await bench().backend.commands.dispatch(keyFor('none'), BOUND)).toEqual({ kind: 'skip' });
    });
  });
}
