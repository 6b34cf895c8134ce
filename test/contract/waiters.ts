/**
 * Defines the contract tests of the port WaiterStore, which keeps the waits of callers. Every backend must pass them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANY_WAIT, type WaiterFilter } from '../../src/core/commands/waiter-store.ts';
import {
  CALLER,
  countWaits,
  admission,
  ALICE,
  BOUND,
  dispatched,
  ending,
  keyFor,
  openNode,
  type Bench,
  type MakeBench,
} from './kit/bench.ts';

/** Defines the tests that every WaiterStore must pass. */
export function waiterContract(name: string, make: MakeBench): void {
  describe(`waiters on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
      await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    });
    afterEach(() => bench.close());
    const wait = (rpcId: string, over = {}) =>
      ({ rpcId, caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null, ...over }) as const;
    const listed = async (filter: Partial<WaiterFilter> = {}) =>
      (await bench.backend.waiters.list({ ...ANY_WAIT, ...filter }, { first: 100, after: null })).rows.map(
        ({ row }) => row.waiter.rpcId,
      );

    it('attaches to a live command until the stage is reached, and answers at once if it already is', async () => {
      await dispatched(bench, 'c1');
      expect(await bench.backend.waiters.attach(keyFor('c1'), wait('r2', { withinMs: 500 }))).toMatchObject({
        kind: 'waiting',
        waiter: { rpcId: 'r2', timesOutAt: bench.now() + 500 },
      });
      expect(await bench.backend.waiters.attach(keyFor('c1'), wait('r3', { waitFor: 'admitted' }))).toMatchObject({
        kind: 'satisfied',
      });
      await bench.backend.commands.finish(keyFor('c1'), ending());
      expect(await listed()).toEqual([]);
      expect(await bench.backend.waiters.attach(keyFor('c1'), wait('r4'))).toMatchObject({
        kind: 'satisfied',
        command: { outcome: 'completed' },
        result: ending().payload,
      });
      expect(await bench.backend.waiters.attach(keyFor('none'), wait('r5'))).toEqual({ kind: 'unknown' });
    });

    it('accepts no more than eight on one command', async () => {
      await dispatched(bench, 'c1');
      for (let i = 0; i < 7; i++) await bench.backend.waiters.attach(keyFor('c1'), wait(`r${i}`));
      expect(await bench.backend.waiters.attach(keyFor('c1'), wait('more'))).toEqual({ kind: 'full' });
    });

    it('replies at the acknowledgement to a wait for it that a repeated request added', async () => {
      const node = await openNode(bench);
      await dispatched(bench, 'c1');
      const waiter = wait('again', { waitFor: 'acknowledged' });
      expect(await bench.backend.commands.admit(admission('c1', { waiter }))).toMatchObject({ kind: 'attached' });
      await bench.backend.commands.report(keyFor('c1'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
      const replies = (await node.take()).filter(({ kind }) => kind === 'reply');
      expect(replies).toMatchObject([{ reply: { rpcId: 'again' } }]);
      expect(await listed()).toEqual(['rpc-c1']);
    });

    it('removes a wait without changing the command, and removing it twice has no effect', async () => {
      await dispatched(bench, 'c1');
      await bench.backend.waiters.remove(keyFor('c1'), 'rpc-c1');
      await bench.backend.waiters.remove(keyFor('c1'), 'rpc-c1');
      expect(await listed()).toEqual([]);
      expect(await bench.backend.commands.get([keyFor('c1')])).toMatchObject([{ stage: 'dispatched' }]);
    });

    it('lists oldest first by every filter', async () => {
      await dispatched(bench, 'c1');
      await bench.advance(1_000);
      await bench.backend.commands.admit(admission('c2', { waiter: wait('rpc-c2', { callerNodeId: 'n2' }) }));
      await bench.advance(1);
      const bob = { userId: 'bob', clientId: 'tab' };
      await bench.backend.commands.admit(admission('c3', { ...bob, connectWithinMs: 9_000 }));
      expect(await listed()).toEqual(['rpc-c1', 'rpc-c2', 'rpc-c3']);
      expect(await listed({ userId: 'alice' })).toEqual(['rpc-c1', 'rpc-c2']);
      expect(await listed({ userId: 'bob', clientId: 'other' })).toEqual([]);
      expect(await listed({ clientId: 'tab', callerNodeId: 'n2' })).toEqual(['rpc-c2']);
      expect(await listed({ nodeId: 'n1' })).toEqual(['rpc-c1', 'rpc-c2']);
      expect(await listed({ minAgeMs: 1_000 })).toEqual(['rpc-c1']);
      const ops = { kind: 'admin', name: 'ops' } as const;
      await bench.backend.waiters.attach(keyFor('c1'), wait('of-ops', { caller: ops }));
      expect(await listed({ caller: 'ops' })).toEqual(['of-ops']);
      expect(await listed({ caller: 'alice' })).toEqual(['rpc-c1', 'rpc-c2', 'rpc-c3']);
      expect(await listed({ callerKind: 'admin' })).toEqual(['of-ops']);
      expect(await listed({ caller: 'ops', callerKind: 'user' })).toEqual([]);
      await bench.backend.waiters.remove(keyFor('c1'), 'of-ops');
      expect(await countWaits(bench.backend.waiters, { ...ANY_WAIT, userId: 'alice' })).toEqual({
        count: 2,
        complete: true,
      });
      expect(await bench.backend.waiters.countByNode(ANY_WAIT)).toEqual({
        complete: true,
        counts: new Map([
          ['n1', 2],
          [null, 1],
        ]),
      });
    });

    it('pages without repeating or losing a wait that exists throughout the paging', async () => {
      for (let i = 0; i < 10; i++) await bench.backend.commands.admit(admission(`c${i}`));
      const first = await bench.backend.waiters.list(ANY_WAIT, { first: 4, after: null });
      await bench.backend.waiters.remove(keyFor('c1'), 'rpc-c1');
      await bench.backend.waiters.remove(keyFor('c5'), 'rpc-c5');
      await bench.backend.commands.admit(admission('c10'));
      const rest = await bench.backend.waiters.list(ANY_WAIT, { first: 100, after: first.next });
      const ids = [...first.rows, ...rest.rows].map(({ row }) => row.waiter.commandId);
      expect(ids).toEqual(['c0', 'c1', 'c2', 'c3', 'c4', 'c6', 'c7', 'c8', 'c9', 'c10']);
      expect(rest.next).toBe(null);
    });

    it('answers for many users, clients and commands at once, in the order requested', async () => {
      for (const id of ['c1', 'c2', 'c3']) await bench.backend.commands.admit(admission(id));
      const [nobody, alice] = await bench.backend.waiters.ofUsers(['nobody', 'alice'], 2);
      expect([nobody?.total, alice?.total, alice?.scan.rows.length]).toEqual([0, 3, 2]);
      expect(alice?.scan).toEqual(
        await bench.backend.waiters.list({ ...ANY_WAIT, userId: 'alice' }, { first: 2, after: null }),
      );
      const [client] = await bench.backend.waiters.ofClients([ALICE], 10);
      expect(client?.scan.rows.map(({ row }) => row.waiter.commandId)).toEqual(['c1', 'c2', 'c3']);
      expect(
        (await bench.backend.waiters.ofCommands([keyFor('none'), keyFor('c2')])).map((list) => list.length),
      ).toEqual([0, 1]);
    });

    it('changes nothing by reading', async () => {
      const node = await openNode(bench);
      await dispatched(bench, 'c1');
      await node.take();
      const before = await bench.backend.commands.get([keyFor('c1')]);
      await listed();
      await countWaits(bench.backend.waiters, ANY_WAIT);
      expect(await bench.backend.commands.get([keyFor('c1')])).toEqual(before);
      expect(await node.take()).toEqual([]);
    });
  });
}
