import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import {
  admission,
  ALICE,
  BOUND,
  dispatched,
  ending,
  keyFor,
  kinds,
  openNode,
  read,
  type Bench,
  type MakeBench,
} from './kit.ts';

/** What every CommandStore keeps, whatever it is made of. */
export function commandContract(name: string, make: MakeBench): void {
  describe(`commands on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(() => bench.close());
    const admit = (id: string, over = {}) => bench.backend.commands.admit(admission(id, over));
    const bind = () => bench.backend.commands.rebind(ALICE, BOUND, 'up');

    describe('admission', () => {
      it('refuses an absent target without a connect budget and writes nothing', async () => {
        expect(await admit('c1')).toEqual({ kind: 'refused', code: 'not_connected' });
        expect(await bench.backend.commands.get([keyFor('c1')])).toEqual([null]);
        expect(await kinds(bench, 'c1')).toEqual([]);
        expect(
          await bench.backend.waiters.count({
            userId: null,
            clientId: null,
            nodeId: null,
            callerNodeId: null,
            minAgeMs: null,
          }),
        ).toEqual({ count: 0, complete: true });
      });

      it('parks a command whose caller gives time to connect, with both deadlines', async () => {
        const result = await admit('c1', { connectWithinMs: 5_000, respondWithinMs: 7_000 });
        expect(result).toMatchObject({
          kind: 'admitted',
          command: { stage: 'admitted', nodeId: null, queuedAt: null, execution: 'not_written' },
        });
        const command = await read(bench, 'c1');
        expect([command.connectDeadline - command.admittedAt, command.deadline - command.admittedAt]).toEqual([
          5_000, 12_000,
        ]);
      });

      it('records who invoked the command first, and the trace context that was given', async () => {
        await bind();
        const first = {
          caller: { kind: 'admin', name: 'ops' },
          traceFlags: '01',
          traceState: 'vendor=1,other=2',
        } as const;
        await admit('c1', first);
        await admit('c1', {
          caller: { kind: 'user', name: 'alice' },
          traceFlags: null,
          traceState: null,
          traceId: null,
        });
        expect(await read(bench, 'c1')).toMatchObject({ ...first, traceId: 't1', parentSpanId: 's1' });
        await admit('c2', { caller: { kind: 'grant', name: 'g1' }, traceFlags: null, traceState: null });
        expect(await read(bench, 'c2')).toMatchObject({
          caller: { kind: 'grant', name: 'g1' },
          traceFlags: null,
          traceState: null,
        });
      });

      it('queues a command for a live client and posts it to its node once', async () => {
        const node = await openNode(bench);
        await bind();
        expect(await admit('c1')).toMatchObject({
          kind: 'admitted',
          command: { stage: 'queued', nodeId: 'n1', expectedInstanceId: 'i1' },
        });
        expect(await node.take()).toEqual([{ kind: 'command', key: keyFor('c1') }]);
      });

      it('refuses a named instance that is not the live one', async () => {
        await bind();
        expect(await admit('c1', { namedInstanceId: 'i9', connectWithinMs: 1_000 })).toEqual({
          kind: 'refused',
          code: 'instance_mismatch',
        });
      });

      it('attaches the same id with the same digest to the live command, and refuses another digest', async () => {
        await bind();
        await admit('c1');
        const again = { waiter: { rpcId: 'rpc-2', callerNodeId: 'n1', waitFor: 'completed', withinMs: null } };
        expect(await admit('c1', again)).toMatchObject({
          kind: 'attached',
          command: { commandId: 'c1', version: 1 },
          result: null,
        });
        expect(await admit('c1', { ...again, digest: 'd2' })).toEqual({ kind: 'refused', code: 'command_conflict' });
        expect((await bench.backend.waiters.ofCommands([keyFor('c1')]))[0]?.map(({ waiter }) => waiter.rpcId)).toEqual([
          'rpc-c1',
          'rpc-2',
        ]);
      });

      it('replays the recorded outcome for an hour after its end, and then knows it no more', async () => {
        await bind();
        await dispatched(bench, 'c1');
        await bench.backend.commands.finish(keyFor('c1'), ending());
        await bench.advance(3_599_000);
        expect(await admit('c1')).toMatchObject({
          kind: 'attached',
          command: { outcome: 'completed' },
          result: toJson({ ok: true }),
        });
        await bench.advance(2_000);
        expect(await admit('c1')).toMatchObject({ kind: 'admitted' });
      });

      it('says for how long an ended id is known, and has no mark of what it has a record of, or never knew', async () => {
        expect(bench.backend.commands.windowMs).toBe(3_600_000);
        await bind();
        await dispatched(bench, 'c1');
        expect(await bench.backend.commands.mark(keyFor('c1'))).toBeNull();
        await bench.backend.commands.finish(keyFor('c1'), ending());
        expect(await bench.backend.commands.mark(keyFor('c1'))).toBeNull();
        expect(await bench.backend.commands.mark(keyFor('c2'))).toBeNull();
        expect(await read(bench, 'c1')).toMatchObject({ resultExpired: false });
      });

      it('holds one reservation per live command of the scope and frees it with its end', async () => {
        await bind();
        const one = { scopeLimit: 1 };
        await dispatched(bench, 'c1', one);
        expect(await admit('c2', one)).toEqual({ kind: 'refused', code: 'capacity_exceeded' });
        await bench.backend.commands.finish(keyFor('c1'), ending());
        expect(await admit('c2', one)).toMatchObject({ kind: 'admitted' });
        expect(await admit('c3', { ...one, scopeId: 'team' })).toMatchObject({ kind: 'admitted' });
      });

      it('holds at most 1000 undispatched commands for one client', async () => {
        await bind();
        for (let i = 0; i < 1000; i++) await admit(`c${i}`, { scopeLimit: 5000 });
        expect(await admit('more', { scopeLimit: 5000 })).toEqual({ kind: 'refused', code: 'queue_full' });
        await bench.backend.commands.dispatch(keyFor('c0'), BOUND);
        expect(await admit('more', { scopeLimit: 5000 })).toMatchObject({ kind: 'admitted' });
      });

      it('registers at most eight waiters on one command', async () => {
        await bind();
        for (let i = 0; i < 8; i++)
          await admit('c1', { waiter: { rpcId: `r${i}`, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } });
        expect(
          await admit('c1', { waiter: { rpcId: 'r8', callerNodeId: 'n1', waitFor: 'completed', withinMs: null } }),
        ).toEqual({ kind: 'refused', code: 'capacity_exceeded' });
      });
    });

    describe('dispatch', () => {
      it('marks the command once, binds the instance and hands out the params', async () => {
        await bind();
        await admit('c1');
        expect(await bench.backend.commands.dispatch(keyFor('c1'), BOUND)).toMatchObject({
          kind: 'dispatch',
          params: toJson({ n: 1 }),
          remainingMs: 30_000,
          command: { stage: 'dispatched', attempts: 1, boundInstanceId: 'i1', execution: 'may_have_run' },
        });
        expect(await bench.backend.commands.dispatch(keyFor('c1'), BOUND)).toEqual({ kind: 'skip' });
      });

      it('skips for a link that is no longer the bound one, for a due command and for an ended one', async () => {
        await bind();
        for (const id of ['c1', 'c2', 'c3']) await admit(id);
        expect(await bench.backend.commands.dispatch(keyFor('c1'), { ...BOUND, epoch: 7 })).toEqual({ kind: 'skip' });
        expect(await bench.backend.commands.dispatch(keyFor('c1'), { ...BOUND, nodeId: 'n9' })).toEqual({
          kind: 'skip',
        });
        await bench.backend.commands.settle(keyFor('c2'), { kind: 'cancel', reason: null, by: 'test' });
        expect(await bench.backend.commands.dispatch(keyFor('c2'), BOUND)).toEqual({ kind: 'skip' });
        await bench.advance(30_000);
        expect(await bench.backend.commands.dispatch(keyFor('c3'), BOUND)).toEqual({ kind: 'skip' });
        expect(await bench.backend.commands.dispatch(keyFor('none'), BOUND)).toEqual({ kind: 'skip' });
      });
    });

    describe('reports', () => {
      it('takes an acknowledgement once, from the bound instance only', async () => {
        await bind();
        await dispatched(bench, 'c1');
        const ack = (instanceId: string) =>
          bench.backend.commands.report(keyFor('c1'), { instanceId, kind: 'ack', payload: null, kept: null });
        expect(await ack('i9')).toMatchObject({ kind: 'ignored' });
        expect(await ack('i1')).toMatchObject({ kind: 'recorded', command: { stage: 'acknowledged' } });
        expect(await ack('i1')).toMatchObject({ kind: 'ignored' });
      });

      it('retains at most one progress row a second', async () => {
        await bind();
        await dispatched(bench, 'c1');
        const progress = () =>
          bench.backend.commands.report(keyFor('c1'), {
            instanceId: 'i1',
            kind: 'progress',
            payload: toJson(1),
            kept: { payload: toJson(1), spill: null },
          });
        for (let i = 0; i < 5; i++) await progress();
        expect(await kinds(bench, 'c1')).toEqual(['command', 'progress']);
        await bench.advance(1_000);
        expect(await progress()).toMatchObject({ kind: 'recorded' });
        expect(await kinds(bench, 'c1')).toEqual(['command', 'progress', 'progress']);
      });

      it('replies to who waits for the acknowledgement when it comes, and not to who waits for the end', async () => {
        const node = await openNode(bench);
        await bind();
        await dispatched(bench, 'c1', {
          waiter: { rpcId: 'early', callerNodeId: 'n1', waitFor: 'acknowledged', withinMs: null },
        });
        await admit('c1');
        await node.take();
        await bench.backend.commands.report(keyFor('c1'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
        expect(await node.take()).toMatchObject([
          { kind: 'reply', reply: { rpcId: 'early', command: { stage: 'acknowledged' }, result: null } },
        ]);
      });
    });

    describe('ends', () => {
      it('records a result once, replies with it to every waiter, and keeps its text untouched', async () => {
        const node = await openNode(bench);
        await bind();
        await dispatched(bench, 'c1');
        await admit('c1', { waiter: { rpcId: 'rpc-2', callerNodeId: 'n1', waitFor: 'completed', withinMs: null } });
        await node.take();
        const payload = toJson({ b: 1, a: [null] });
        expect(await bench.backend.commands.finish(keyFor('c1'), ending({ payload }))).toMatchObject({
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
        expect(await bench.backend.commands.result(keyFor('c1'))).toBe(payload);
        expect(await kinds(bench, 'c1')).toEqual(['command', 'result']);
      });

      it('tells a failure from a refusal by the client, and takes its word that it stopped', async () => {
        await bind();
        for (const id of ['c1', 'c2', 'c3']) await dispatched(bench, id);
        const error = { code: 'handler_failed', message: 'no' };
        await bench.backend.commands.finish(keyFor('c1'), ending({ kind: 'error', payload: null, error }));
        await bench.backend.commands.finish(
          keyFor('c2'),
          ending({ kind: 'error', payload: null, error: { code: 'client_denied', message: '' }, refused: true }),
        );
        await bench.backend.commands.finish(keyFor('c3'), ending({ kind: 'cancelled', payload: null }));
        expect(await read(bench, 'c1')).toMatchObject({ outcome: 'failed', execution: 'reported_by_client', error });
        expect(await read(bench, 'c2')).toMatchObject({ outcome: 'failed', execution: 'refused_by_client' });
        expect(await read(bench, 'c3')).toMatchObject({ outcome: 'cancelled', execution: 'reported_by_client' });
      });

      it('counts a re-sent end as a sighting and keeps another end as late evidence, changing no state', async () => {
        await bind();
        await dispatched(bench, 'c1');
        await bench.backend.commands.finish(keyFor('c1'), ending());
        for (let i = 0; i < 9; i++)
          expect(await bench.backend.commands.finish(keyFor('c1'), ending())).toMatchObject({ kind: 'duplicate' });
        const late = ending({ kind: 'error', payload: null, error: { code: 'handler_failed', message: 'x' } });
        expect(await bench.backend.commands.finish(keyFor('c1'), late)).toMatchObject({ kind: 'late' });
        expect(await bench.backend.commands.finish(keyFor('c1'), late)).toMatchObject({ kind: 'duplicate' });
        const command = await read(bench, 'c1');
        expect(command).toMatchObject({
          outcome: 'completed',
          lateResults: 1,
          firstLate: { instanceId: 'i1', kind: 'error' },
        });
        expect(command.sightings.map(({ messageId, count }) => [messageId, count])).toEqual([
          ['c1:result:i1', 10],
          ['c1:error:i1', 2],
        ]);
        expect(await kinds(bench, 'c1')).toEqual(['command', 'result', 'late_result']);
        expect(await bench.backend.commands.result(keyFor('c1'))).toBe(toJson({ ok: true }));
      });

      it('never lets another instance, or one that was not dispatched to, resolve a command', async () => {
        await bind();
        await admit('queued');
        await dispatched(bench, 'c1');
        expect(await bench.backend.commands.finish(keyFor('c1'), ending({ instanceId: 'i9' }))).toMatchObject({
          kind: 'fenced',
          command: { stage: 'dispatched', lateResults: 1 },
        });
        expect(await bench.backend.commands.finish(keyFor('queued'), ending())).toMatchObject({
          kind: 'fenced',
          command: { stage: 'queued' },
        });
        expect(await bench.backend.commands.finish(keyFor('none'), ending())).toEqual({ kind: 'unknown' });
        expect(await bench.backend.commands.result(keyFor('c1'))).toBe(null);
        expect(await bench.backend.commands.finish(keyFor('c1'), ending())).toMatchObject({ kind: 'finished' });
      });
    });

    describe('settling', () => {
      const cancel = { kind: 'cancel', reason: 'enough', by: 'test' } as const;

      it('cancels before dispatch for good: nothing was written and nothing will be', async () => {
        await bind();
        await admit('c1');
        expect(await bench.backend.commands.settle(keyFor('c1'), cancel)).toMatchObject({
          kind: 'settled',
          command: { outcome: 'cancelled', execution: 'not_written', lastProvenStage: 'queued' },
        });
        expect(await bench.backend.commands.settle(keyFor('c1'), cancel)).toMatchObject({ kind: 'unchanged' });
      });

      it('only asks the client after dispatch, and leaves the end to its answer', async () => {
        const node = await openNode(bench);
        await bind();
        await dispatched(bench, 'c1');
        await node.take();
        expect(await bench.backend.commands.settle(keyFor('c1'), cancel)).toMatchObject({
          kind: 'requested',
          command: { stage: 'dispatched', outcome: null },
        });
        expect(await node.take()).toEqual([{ kind: 'cancel', key: keyFor('c1'), reason: 'enough' }]);
        expect((await read(bench, 'c1')).cancelRequestedAt).toBe(bench.now());
        await bench.backend.commands.finish(keyFor('c1'), ending());
        expect(await read(bench, 'c1')).toMatchObject({ outcome: 'completed' });
      });

      it('expires a parked command at its connect deadline and not before', async () => {
        await admit('c1', { connectWithinMs: 5_000 });
        await bench.advance(4_999);
        expect(await bench.backend.nodes.due(10)).toEqual([]);
        expect(await bench.backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
          kind: 'unchanged',
        });
        await bench.advance(1);
        expect(await bench.backend.nodes.due(10)).toEqual([keyFor('c1')]);
        expect(await bench.backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
          kind: 'settled',
          command: { outcome: 'expired', execution: 'not_written', error: { code: 'connect_timeout' } },
        });
        expect(await bench.backend.nodes.due(10)).toEqual([]);
      });

      it('expires what was queued but never dispatched, and says of what was dispatched that it may have run', async () => {
        await bind();
        await admit('c1');
        await dispatched(bench, 'c2');
        await bench.advance(30_000);
        expect(await bench.backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
          command: { outcome: 'expired', error: { code: 'queue_timeout' } },
        });
        expect(await bench.backend.commands.settle(keyFor('c2'), { kind: 'expire' })).toMatchObject({
          command: {
            outcome: 'outcome_unknown',
            execution: 'may_have_run',
            lastProvenStage: 'dispatched',
            error: { code: 'response_timeout' },
          },
        });
        expect(await kinds(bench, 'c2')).toEqual(['command', 'error']);
      });

      it('gives up only on the instance named', async () => {
        await bind();
        await dispatched(bench, 'c1');
        const giveUp = (instanceId: string) =>
          bench.backend.commands.settle(keyFor('c1'), { kind: 'give_up', code: 'instance_replaced', instanceId });
        expect(await giveUp('i9')).toMatchObject({ kind: 'unchanged' });
        expect(await giveUp('i1')).toMatchObject({
          kind: 'settled',
          command: { outcome: 'outcome_unknown', error: { code: 'instance_replaced' } },
        });
      });

      it('proves nothing after the store lost something, not even of a command that was not dispatched', async () => {
        await bind();
        await admit('c1');
        const giveUp = { kind: 'give_up', code: 'store_lost', instanceId: null } as const;
        expect(await bench.backend.commands.settle(keyFor('c1'), giveUp)).toMatchObject({
          kind: 'settled',
          command: {
            outcome: 'outcome_unknown',
            execution: 'may_have_run',
            lastProvenStage: 'queued',
            attempts: 0,
            error: { code: 'store_lost', message: 'The store lost data that it had confirmed.' },
          },
        });
        expect(await bench.backend.commands.dispatch(keyFor('c1'), BOUND)).toEqual({ kind: 'skip' });
        await admit('c2');
        const nodeLost = { kind: 'give_up', code: 'node_lost', instanceId: null } as const;
        expect(await bench.backend.commands.settle(keyFor('c2'), nodeLost)).toMatchObject({
          command: { outcome: 'expired', execution: 'not_written', error: { code: 'node_lost' } },
        });
      });
    });

    it('names the commands of a client that have not ended, queued, parked or dispatched', async () => {
      const live = async () => (await bench.backend.commands.live(ALICE)).map(({ commandId }) => commandId).sort();
      expect(await live()).toEqual([]);
      await admit('parked', { connectWithinMs: 5_000, namedInstanceId: 'i9' });
      await bind();
      for (const id of ['queued', 'ended']) await admit(id);
      await dispatched(bench, 'running');
      expect(await live()).toEqual(['ended', 'parked', 'queued', 'running']);
      await bench.backend.commands.settle(keyFor('ended'), { kind: 'cancel', reason: null, by: 'test' });
      await bench.backend.commands.finish(keyFor('running'), ending());
      expect(await live()).toEqual(['parked', 'queued']);
      expect(await bench.backend.commands.live({ ...ALICE, clientId: 'other' })).toEqual([]);
    });

    describe('rebinding', () => {
      it('queues what was parked, in the order admitted, when the client connects', async () => {
        const node = await openNode(bench);
        for (const id of ['c1', 'c2', 'c3']) await admit(id, { connectWithinMs: 5_000 });
        await bind();
        expect((await node.take()).map((row) => row.kind === 'command' && row.key.commandId)).toEqual([
          'c1',
          'c2',
          'c3',
        ]);
        await bench.advance(5_000);
        expect(await bench.backend.nodes.due(10)).toEqual([]);
      });

      it('parks what was not dispatched when the link goes, until its deadline', async () => {
        await bind();
        await admit('c1');
        await bench.backend.commands.rebind(ALICE, BOUND, 'down');
        expect(await read(bench, 'c1')).toMatchObject({ stage: 'admitted', nodeId: null, execution: 'not_written' });
        expect(await bench.backend.commands.settle(keyFor('c1'), { kind: 'expire' })).toMatchObject({
          kind: 'unchanged',
        });
        expect(
          await bench.backend.commands.rebind(ALICE, { ...BOUND, epoch: 2, instanceId: 'i2' }, 'up'),
        ).toMatchObject({
          requeued: 1,
        });
        expect(
          await bench.backend.commands.dispatch(keyFor('c1'), { ...BOUND, epoch: 2, instanceId: 'i2' }),
        ).toMatchObject({ kind: 'dispatch', command: { boundInstanceId: 'i2' } });
      });

      it('queues again for the link that is bound, and for no other', async () => {
        const { rebind } = bench.backend.commands;
        const node = await openNode(bench);
        const nothing = { requeued: 0, unfinished: [], orphaned: [] };
        const second = { ...BOUND, epoch: 2 };
        await bind();
        await rebind(ALICE, BOUND, 'down');
        await admit('c1', { connectWithinMs: 5_000 });
        expect(await rebind(ALICE, BOUND, 'again')).toEqual(nothing);
        expect([await node.take(), await read(bench, 'c1')]).toMatchObject([[], { stage: 'admitted', queuedAt: null }]);
        await rebind(ALICE, second, 'up');
        expect(await node.take()).toHaveLength(1);
        expect(await rebind(ALICE, BOUND, 'again')).toEqual(nothing);
        expect(await node.take()).toEqual([]);
        expect(await rebind(ALICE, second, 'again')).toEqual({ ...nothing, requeued: 1 });
        expect(await node.take()).toMatchObject([{ kind: 'command', key: { commandId: 'c1' } }]);
        expect(await bench.backend.commands.dispatch(keyFor('c1'), second)).toMatchObject({ kind: 'dispatch' });
      });

      it('sorts what runs by the instance that it was written to, and never writes it again', async () => {
        await bind();
        await dispatched(bench, 'c1');
        expect(await bench.backend.commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up')).toMatchObject({
          unfinished: [{ commandId: 'c1' }],
          orphaned: [],
        });
        expect(
          await bench.backend.commands.rebind(ALICE, { ...BOUND, epoch: 3, instanceId: 'i2' }, 'up'),
        ).toMatchObject({
          unfinished: [],
          orphaned: [{ commandId: 'c1' }],
        });
        expect(await bench.backend.commands.dispatch(keyFor('c1'), { ...BOUND, epoch: 3, instanceId: 'i2' })).toEqual({
          kind: 'skip',
        });
      });

      it('notes from which node a command was taken over, whether its link went down before or not', async () => {
        await bind();
        for (const id of ['parked', 'replaced']) await admit(id);
        await dispatched(bench, 'running');
        const on = (nodeId: string, epoch: number) => ({ ...BOUND, nodeId, epoch });
        const from = async () => {
          const keys = ['parked', 'replaced', 'running'].map((id) => keyFor(id));
          return (await bench.backend.commands.get(keys)).map((command) => command?.recoveredFromNodeId);
        };
        await bench.backend.commands.rebind(ALICE, on('n1', 2), 'up');
        expect(await from()).toEqual([null, null, null]);
        await bench.backend.commands.rebind(ALICE, on('n1', 2), 'down');
        await bench.backend.commands.rebind(ALICE, on('n2', 3), 'up');
        expect(await from()).toEqual(['n1', 'n1', 'n1']);
        await bench.backend.commands.rebind(ALICE, on('n3', 4), 'up');
        await bench.backend.commands.rebind(ALICE, on('n3', 5), 'up');
        expect(await from()).toEqual(['n2', 'n2', 'n2']);
        expect(await read(bench, 'running')).toMatchObject({ nodeId: 'n3', stage: 'dispatched' });
      });

      it('keeps a command for the instance it names, and ends it once that was replaced after queueing', async () => {
        await admit('parked', { namedInstanceId: 'i2', connectWithinMs: 60_000 });
        await bind();
        expect(await read(bench, 'parked')).toMatchObject({ stage: 'admitted' });
        await admit('queued', { namedInstanceId: 'i1' });
        expect(
          await bench.backend.commands.rebind(ALICE, { ...BOUND, epoch: 2, instanceId: 'i2' }, 'up'),
        ).toMatchObject({
          requeued: 0,
        });
        expect(await read(bench, 'parked')).toMatchObject({ stage: 'queued', expectedInstanceId: 'i2' });
        expect(await read(bench, 'queued')).toMatchObject({
          outcome: 'expired',
          execution: 'not_written',
          error: { code: 'instance_replaced' },
        });
      });
    });
  });
}
