/** Defines the contract tests of CommandStore about previews of an admission. */
import { describe, expect, it } from 'vitest';
import type { AdmitRequest } from '../../../src/core/commands/stores.ts';
import { admission, ALICE, BOUND, countWaits, dispatched, ending, keyFor, kinds, type Bench } from '../kit/bench.ts';
import { commandActs } from './acts.ts';

/** Defines the tests that a preview predicts the answer to the admission after it, and writes nothing. */
export function previews(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  const both = async (id: string, over: Partial<AdmitRequest> = {}) => {
    const { answer, ...state } = await bench().backend.commands.preview(admission(id, over));
    const admitted = await admit(id, over);
    expect(answer.kind).toBe(admitted.kind);
    if (answer.kind === 'refused') expect(answer).toEqual(admitted);
    if (answer.kind === 'attached' && admitted.kind === 'attached') expect(answer.command).toEqual(admitted.command);
    return { kind: answer.kind, code: answer.kind === 'refused' ? answer.code : null, ...state };
  };
  const empty = { known: false, boundInstanceId: null, reserved: 0, queued: 0 };

  describe('a preview of an admission', () => {
    it('refuses as the admission does: an absent target, another instance, a full scope', async () => {
      expect(await both('c1')).toEqual({ kind: 'refused', code: 'not_connected', ...empty });
      await bind();
      const bound = { ...empty, boundInstanceId: 'i1' };
      expect(await both('c1', { namedInstanceId: 'i9' })).toMatchObject({ code: 'instance_mismatch', ...bound });
      expect(await both('c1', { scopeLimit: 1 })).toEqual({ kind: 'admitted', code: null, ...bound });
      const full = { code: 'capacity_exceeded', ...bound, reserved: 1, queued: 1 };
      expect(await both('c2', { scopeLimit: 1 })).toMatchObject(full);
    });

    it('attaches to a known id and replays an ended one, and refuses another digest and a ninth wait', async () => {
      await bind();
      for (let i = 0; i < 7; i++)
        await admit('c1', { waiter: { rpcId: `r${i}`, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } });
      expect(await both('c1')).toMatchObject({ code: null, kind: 'attached', known: true });
      const ninth = { rpcId: 'r9', callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;
      expect(await both('c1', { waiter: ninth })).toMatchObject({ code: 'capacity_exceeded', known: true });
      expect(await both('c1', { digest: 'd2' })).toMatchObject({ code: 'command_conflict', known: true });
      await dispatched(bench(), 'c2');
      await bench().backend.commands.finish(keyFor('c2'), ending());
      expect(await both('c2')).toMatchObject({ kind: 'attached', known: true });
    });

    it('admits, registers, reserves and retains nothing', async () => {
      await bind();
      const { commands, waiters, inspector } = bench().backend;
      for (let i = 0; i < 3; i++) expect((await commands.preview(admission('c1'))).answer.kind).toBe('admitted');
      expect(await commands.get([keyFor('c1')])).toEqual([null]);
      expect(await kinds(bench(), 'c1')).toEqual([]);
      const filter = { userId: null, clientId: null, nodeId: null, callerNodeId: null, minAgeMs: null };
      expect(await countWaits(waiters, filter)).toEqual({ count: 0, complete: true });
      expect((await inspector.scopes({ first: 10, after: null })).rows).toEqual([]);
      expect(await commands.live(ALICE)).toEqual([]);
      expect((await commands.dispatch(keyFor('c1'), BOUND)).kind).toBe('skip');
    });
  });
}
