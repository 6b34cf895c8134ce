/** Defines the contract tests of CommandStore about the ends of commands. */
import { describe, expect, it } from 'vitest';
import { toJson } from '../../../src/core/json.ts';
import { dispatched, ending, keyFor, kinds, openNode, read, type Bench } from '../kit/bench.ts';
import { commandActs } from './acts.ts';

/** Defines the tests that the first end of a command counts, and that later ends are evidence. */
export function ends(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('ends', () => {
    it('records a result once, replies with it to every waiter, and keeps its text unchanged', async () => {
      const node = await openNode(bench());
      await bind();
      await dispatched(bench(), 'c1');
      await admit('c1', { waiter: { rpcId: 'rpc-2', callerNodeId: 'n1', waitFor: 'completed', withinMs: null } });
      await node.take();
      const payload = toJson({ b: 1, a: [null] });
      expect(await bench().backend.commands.finish(keyFor('c1'), ending({ payload }))).toMatchObject({
        kind: 'finished',
        command: {
          stage: 'terminal',
          outcome: 'completed',
          execution: 'reported_by_client',
          lastProvenStage: 'dispatched',
        },
      });
      expect(await node.take()).toMatchObject([
        { kind: 'reply', reply: { rpcId: 'rpc-c1', result: payload } },
        { kind: 'reply', reply: { rpcId: 'rpc-2', result: payload } },
      ]);
      expect(await bench().backend.commands.result(keyFor('c1'))).toBe(payload);
      expect(await kinds(bench(), 'c1')).toEqual(['command', 'result']);
    });

    it('distinguishes a failure from a refusal by the client, and accepts its report that it stopped', async () => {
      await bind();
      for (const id of ['c1', 'c2', 'c3']) await dispatched(bench(), id);
      const error = { code: 'handler_failed', message: 'no' };
      await bench().backend.commands.finish(keyFor('c1'), ending({ kind: 'error', payload: null, error }));
      await bench().backend.commands.finish(
        keyFor('c2'),
        ending({ kind: 'error', payload: null, error: { code: 'client_denied', message: '' }, refused: true }),
      );
      await bench().backend.commands.finish(keyFor('c3'), ending({ kind: 'cancelled', payload: null }));
      expect(await read(bench(), 'c1')).toMatchObject({ outcome: 'failed', execution: 'reported_by_client', error });
      expect(await read(bench(), 'c2')).toMatchObject({ outcome: 'failed', execution: 'refused_by_client' });
      expect(await read(bench(), 'c3')).toMatchObject({ outcome: 'cancelled', execution: 'reported_by_client' });
    });

    it('counts a repeated end as a sighting and keeps a different end as late evidence, without a change of state', async () => {
      await bind();
      await dispatched(bench(), 'c1');
      await bench().backend.commands.finish(keyFor('c1'), ending());
      for (let i = 0; i < 9; i++)
        expect(await bench().backend.commands.finish(keyFor('c1'), ending())).toMatchObject({ kind: 'duplicate' });
      const late = ending({ kind: 'error', payload: null, error: { code: 'handler_failed', message: 'x' } });
      expect(await bench().backend.commands.finish(keyFor('c1'), late)).toMatchObject({ kind: 'late' });
      expect(await bench().backend.commands.finish(keyFor('c1'), late)).toMatchObject({ kind: 'duplicate' });
      const command = await read(bench(), 'c1');
      expect(command).toMatchObject({
        outcome: 'completed',
        lateResults: 1,
        firstLate: { instanceId: 'i1', kind: 'error' },
      });
      expect(command.sightings.map(({ messageId, count }) => [messageId, count])).toEqual([
        ['c1:result:i1', 10],
        ['c1:error:i1', 2],
      ]);
      expect(await kinds(bench(), 'c1')).toEqual(['command', 'result', 'late_result']);
      expect(await bench().backend.commands.result(keyFor('c1'))).toBe(toJson({ ok: true }));
    });

    it('never lets another instance, or one without a dispatch, resolve a command', async () => {
      await bind();
      await admit('queued');
      await dispatched(bench(), 'c1');
      expect(await bench().backend.commands.finish(keyFor('c1'), ending({ instanceId: 'i9' }))).toMatchObject({
        kind: 'fenced',
        command: { stage: 'dispatched', lateResults: 1 },
      });
      expect(await bench().backend.commands.finish(keyFor('queued'), ending())).toMatchObject({
        kind: 'fenced',
        command: { stage: 'queued' },
      });
      expect(await bench().backend.commands.finish(keyFor('none'), ending())).toEqual({ kind: 'unknown' });
      expect(await bench().backend.commands.result(keyFor('c1'))).toBe(null);
      expect(await bench().backend.commands.finish(keyFor('c1'), ending())).toMatchObject({ kind: 'finished' });
    });
  });
}
