/** Defines the contract tests of CommandStore about the answers of commands: who owes one, and when it was written. */
import { describe, expect, it } from 'vitest';
import { OWED_BY_NOBODY } from '../../../src/core/commands/command.ts';
import type { OfAnswer } from '../../../src/core/commands/settlement.ts';
import { admission, commandActs, dispatched, ending, keyFor, read, type Bench } from '../kit/bench.ts';

const [FIRST, SECOND, THIRD] = ['n1/a.1', 'n2/b.1', 'n2/b.2'];

/** Defines the tests of the settlements that concern the answer of a command, and never its end. */
export function answers(bench: () => Bench): void {
  const { bind } = commandActs(bench);
  const settle = (settlement: OfAnswer) => bench().backend.commands.settle(keyFor('c1'), settlement);
  /** What the record says of the answer. */
  const said = async () => {
    const { owedBy, answeredAt } = await read(bench(), 'c1');
    return { owedBy, answeredAt };
  };
  /** Dispatches a command whose answer the first request owes. */
  const begin = async (): Promise<void> => {
    await bind();
    await dispatched(bench(), 'c1', { owedBy: FIRST });
  };
  const finish = () => bench().backend.commands.finish(keyFor('c1'), ending());

  describe('answers', () => {
    it('are owed by the request that admitted the command, and by none if none is named', async () => {
      await begin();
      await dispatched(bench(), 'c2');
      expect(await said()).toEqual({ owedBy: FIRST, answeredAt: undefined });
      expect(await read(bench(), 'c2')).not.toHaveProperty('owedBy');
    });

    it('make an id that is known a conflict, unless the same request admitted it', async () => {
      await begin();
      const again = (owedBy: string) => bench().backend.commands.admit(admission('c1', { owedBy }));
      expect(await again(SECOND)).toMatchObject({ kind: 'refused', code: 'command_conflict' });
      expect(await again(FIRST)).not.toMatchObject({ kind: 'refused' });
      expect(await said()).toEqual({ owedBy: FIRST, answeredAt: undefined });
    });

    it('count as written once, by the request that owes them and after the end alone', async () => {
      await begin();
      await settle({ kind: 'answered', by: FIRST });
      expect((await said()).answeredAt).toBeUndefined();
      await finish();
      await settle({ kind: 'answered', by: SECOND });
      expect((await said()).answeredAt).toBeUndefined();
      await bench().advance(1_000);
      const at = bench().now();
      await settle({ kind: 'answered', by: FIRST });
      await bench().advance(1_000);
      for (const by of [FIRST, null]) await settle({ kind: 'answered', by });
      expect(await said()).toEqual({ owedBy: FIRST, answeredAt: at });
    });

    it('are lost by the request that owes them alone, also after they were written', async () => {
      await begin();
      await finish();
      await settle({ kind: 'lost', by: SECOND });
      expect((await said()).owedBy).toBe(FIRST);
      await settle({ kind: 'answered', by: FIRST });
      await settle({ kind: 'lost', by: FIRST });
      expect(await said()).toEqual({ owedBy: OWED_BY_NOBODY, answeredAt: undefined });
      await settle({ kind: 'answered', by: FIRST });
      expect((await said()).answeredAt).toBeUndefined();
    });

    it('are owed by one of two repeats of a lost call', async () => {
      await begin();
      await settle({ kind: 'lost', by: FIRST });
      const take = (by: string, instead: string) => settle({ kind: 'owed', by, instead });
      const [second, third] = await Promise.all([take(SECOND, OWED_BY_NOBODY), take(THIRD, OWED_BY_NOBODY)]);
      const { owedBy } = await said();
      expect([SECOND, THIRD]).toContain(owedBy);
      for (const settled of [second, third]) expect(settled).not.toMatchObject({ kind: 'unknown' });
      await take(FIRST, OWED_BY_NOBODY);
      expect((await said()).owedBy).toBe(owedBy);
      await take(FIRST, owedBy ?? '');
      expect((await said()).owedBy).toBe(FIRST);
    });

    it('that were written are owed by nobody else any more', async () => {
      await begin();
      await finish();
      await settle({ kind: 'answered', by: FIRST });
      await settle({ kind: 'owed', by: SECOND, instead: FIRST });
      expect((await said()).owedBy).toBe(FIRST);
    });

    it('of an unknown outcome end with a call that names the command, and not with a written answer', async () => {
      await begin();
      await settle({ kind: 'repeated' });
      expect((await said()).answeredAt).toBeUndefined();
      await bench().advance(30_000);
      await bench().backend.commands.settle(keyFor('c1'), { kind: 'expire' });
      expect(await read(bench(), 'c1')).toMatchObject({ outcome: 'outcome_unknown' });
      for (const by of [FIRST, null]) await settle({ kind: 'answered', by });
      expect((await said()).answeredAt).toBeUndefined();
      await settle({ kind: 'repeated' });
      expect((await said()).answeredAt).toBe(bench().now());
    });

    it('change nothing of the end, and those of an unknown command are unknown', async () => {
      await begin();
      await finish();
      const { stage, outcome, terminalAt } = await read(bench(), 'c1');
      const all: OfAnswer[] = [
        { kind: 'lost', by: FIRST },
        { kind: 'owed', by: SECOND, instead: OWED_BY_NOBODY },
        { kind: 'answered', by: SECOND },
        { kind: 'repeated' },
      ];
      for (const settlement of all) {
        expect(await settle(settlement)).not.toMatchObject({ kind: 'settled' });
        expect(await read(bench(), 'c1')).toMatchObject({ stage, outcome, terminalAt });
        expect(await bench().backend.commands.settle(keyFor('none'), settlement)).toEqual({ kind: 'unknown' });
      }
    });
  });
}
