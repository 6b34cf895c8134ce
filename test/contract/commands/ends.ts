/** Defines the contract tests of CommandStore about the ends of commands. */
import { describe, expect, it } from 'vitest';
import { toJson } from '../../../src/core/json.ts';
import {
  CALLER,
  type Bench,
  BOUND,
  commandActs,
  dispatched,
  ending,
  keyFor,
  kinds,
  openNode,
  read,
} from '../kit/bench.ts';

/** Defines the tests that the first end of a command counts, and that later ends are evidence. */
export function ends(bench: () => Bench): void {
  const { admit, bind } = commandActs(bench);
  describe('ends', () => {
    it('records a result once, replies with it to every waiter, and keeps its text unchanged', async () => {
      const node = await openNode(bench());
      await bind();
      await dispatched(bench(), 'c1');
      await admit('c1', {
        waiter: { rpcId: 'rpc-2', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null },
      });
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

    it('gives no stage a time before the stage that it follows, whatever the clock of the node says', async () => {
      await bind();
      const { queuedAt } = await dispatched(bench(), 'c1');
      await admit('c2');
      bench().setBack(5);
      const second = await bench().backend.commands.dispatch(keyFor('c2'), BOUND);
      bench().setBack(5);
      await bench().backend.commands.report(keyFor('c2'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
      bench().setBack(5);
      await bench().backend.commands.finish(keyFor('c2'), ending());
      await bench().backend.commands.finish(keyFor('c1'), ending());
      bench().setBack(5);
      await bench().backend.commands.finish(keyFor('c2'), ending());
      const [c1, c2] = [await read(bench(), 'c1'), await read(bench(), 'c2')];
      expect(c1).toMatchObject({ dispatchedAt: queuedAt, terminalAt: queuedAt });
      const { admittedAt } = c2;
      expect(second).toMatchObject({ command: { dispatchedAt: admittedAt } });
      expect(c2).toMatchObject({ dispatchedAt: admittedAt, acknowledgedAt: admittedAt, terminalAt: admittedAt });
      expect(c2.sightings).toMatchObject([{ firstSeenAt: admittedAt, lastSeenAt: admittedAt, count: 2 }]);
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

// Defines the contract tests of CommandStore about cancellation, expiry and giving up.

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

// Defines the contract tests of CommandStore about the reports of clients.

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
        waiter: { rpcId: 'early', caller: CALLER, callerNodeId: 'n1', waitFor: 'acknowledged', withinMs: null },
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
