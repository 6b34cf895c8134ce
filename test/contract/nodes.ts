/**
 * Defines the contract tests of the port NodeStore (leases, heartbeats and mailboxes). Every backend must pass them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NodeReport } from '../../src/core/commands/node-store.ts';
import { admission, ALICE, BOUND, keyFor, openNode, type Bench, type MakeBench } from './kit/bench.ts';
import { eventually } from '../kit/patience.ts';

const REPORT: NodeReport = {
  listenerAlive: true,
  reconciliationAlive: true,
  activeDrainers: 1,
  connectionWaiters: 2,
  links: 3,
  unfinishedCommands: 4,
  draining: false,
  counters: new Map([['a', 1]]),
  process: { version: '1.2.3', startedAt: 1_700_000_000_000, memoryBytes: 90_000_000, loopDelayMs: 1.25 },
};

/** Defines the tests that every NodeStore must pass. */
export function nodeContract(name: string, make: MakeBench): void {
  describe(`nodes on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(() => bench.close());

    it('delivers rows in the order posted, each once, and none after the node left', async () => {
      const node = await openNode(bench);
      for (let i = 0; i < 5; i++)
        expect(await bench.backend.nodes.post('n1', { kind: 'drain', withinMs: i })).toBe(true);
      expect((await node.take()).map((row) => row.kind === 'drain' && row.withinMs)).toEqual([0, 1, 2, 3, 4]);
      node.detach();
      expect(await bench.backend.nodes.post('n1', { kind: 'drain', withinMs: 1 })).toBe(false);
      expect(await node.take()).toEqual([]);
    });

    it('delivers the questions and answers of nodes unchanged', async () => {
      const node = await openNode(bench);
      const text = JSON.stringify({ text: 'é "quoted"\n', list: Array.from({ length: 20_000 }, (_, i) => i) });
      const question = { kind: 'question', questionId: 'q1', from: 'n2', topic: 'series', text } as const;
      const answer = { kind: 'answer', questionId: 'q1', text } as const;
      for (const row of [question, answer]) expect(await bench.backend.nodes.post('n1', row)).toBe(true);
      expect(await node.take()).toEqual([question, answer]);
      expect(await bench.backend.nodes.post('nowhere', question)).toBe(false);
    });

    it('lets one process at a time hold a node id', async () => {
      const node = await openNode(bench);
      // A store that a killed process may have used lets the second one wait for the end of that one's lease.
      let second = 'waits';
      void openNode(bench).then(
        () => (second = 'holds it'),
        (error: unknown) => (second = String(error)),
      );
      for (let reads = 0; reads < 3; reads++) await bench.backend.nodes.list({ first: 10, after: null });
      expect(second).toMatch(/^waits$|n1/);
      node.detach();
      await openNode(bench);
    });

    it('lists each live node with its last report and its time', async () => {
      await openNode(bench, 'n2');
      await openNode(bench, 'n1');
      await bench.backend.nodes.beat('n2', REPORT);
      await bench.advance(2_000);
      await bench.backend.nodes.beat('n1', { ...REPORT, draining: true });
      await bench.backend.nodes.beat('ghost', REPORT);
      const { rows, next } = await bench.backend.nodes.list({ first: 10, after: null });
      expect(rows.map(({ row }) => [row.nodeId, row.draining, bench.now() - row.updatedAt])).toEqual([
        ['n1', true, 0],
        ['n2', false, 2_000],
      ]);
      expect(next).toBe(null);
      expect(await bench.backend.nodes.get('n2')).toEqual(rows[1]?.row);
      expect(rows[1]?.row).toMatchObject(REPORT);
      expect(await bench.backend.nodes.get('ghost')).toBe(null);
    });

    it('lists as silent the nodes whose beat is five seconds old, until they beat again or release their id', async () => {
      const { nodes } = bench.backend;
      await openNode(bench, 'n1');
      const second = await openNode(bench, 'n2');
      for (const node of ['n2', 'n1']) await nodes.beat(node, REPORT);
      await bench.advance(2_000);
      await nodes.beat('n1', REPORT);
      await bench.advance(2_999);
      expect(await nodes.silent()).toEqual([]);
      await bench.advance(1);
      expect(await nodes.silent()).toEqual(['n2']);
      await bench.advance(2_000);
      expect(await nodes.silent()).toEqual(['n1', 'n2']);
      await nodes.beat('n2', REPORT);
      expect(await nodes.silent()).toEqual(['n1']);
      await bench.advance(5_000);
      second.detach();
      await bench.advance(0);
      await eventually(async () => expect(await nodes.silent()).toEqual(['n1']));
      expect((await nodes.list({ first: 10, after: null })).rows.map(({ row }) => row.nodeId)).toEqual(['n1']);
    });

    it('returns due commands oldest first, a bounded number at a time, and removes nothing', async () => {
      for (const [id, connectWithinMs] of [
        ['late', 3_000],
        ['soon', 1_000],
        ['mid', 2_000],
        ['far', 90_000],
      ] as const)
        await bench.backend.commands.admit(admission(id, { connectWithinMs }));
      await bench.advance(3_000);
      expect(await bench.backend.nodes.due(2)).toEqual([keyFor('soon'), keyFor('mid')]);
      expect(await bench.backend.nodes.due(10)).toEqual([keyFor('soon'), keyFor('mid'), keyFor('late')]);
    });

    it('returns commands past their deadline in every scope, in whatever order they were admitted', async () => {
      const { commands, nodes } = bench.backend;
      await commands.rebind(ALICE, BOUND, 'up');
      const admit = async (id: string, scopeId: string, respondWithinMs: number): Promise<void> => {
        const result = await commands.admit(admission(id, { scopeId, respondWithinMs, connectWithinMs: 0 }));
        expect(result.kind).toBe('admitted');
      };
      const due = async () => (await nodes.due(10)).map(({ commandId }) => commandId);
      const expire = (id: string) => commands.settle(keyFor(id), { kind: 'expire' });
      await admit('far', 'a', 60_000);
      await admit('near', 'a', 5_000);
      await admit('other', 'b', 7_000);
      await commands.dispatch(keyFor('other'), BOUND);
      await bench.advance(4_999);
      expect(await due()).toEqual([]);
      await bench.advance(1);
      expect(await due()).toEqual(['near']);
      await bench.advance(2_000);
      expect(await due()).toEqual(['near', 'other']);
      expect(await nodes.due(1)).toEqual([keyFor('near')]);
      for (const id of ['near', 'other']) expect((await expire(id)).kind).toBe('settled');
      expect(await due()).toEqual([]);
      // Both scopes were searched and had nothing due. A command with an earlier deadline must be found nevertheless.
      for (const scopeId of ['a', 'b']) await admit(`new-${scopeId}`, scopeId, 1_000);
      await bench.advance(1_000);
      expect((await due()).sort()).toEqual(['new-a', 'new-b']);
      for (const id of ['new-a', 'new-b']) await expire(id);
      expect(await due()).toEqual([]);
      await bench.advance(52_000);
      expect(await due()).toEqual(['far']);
    });

    it('returns a command that waits for its client once, at its connect deadline or, once it was queued, at its deadline', async () => {
      const { commands, nodes } = bench.backend;
      const due = async () => (await nodes.due(10)).map(({ commandId }) => commandId);
      for (const id of ['waits', 'linked', 'ends'])
        await commands.admit(admission(id, { connectWithinMs: 2_000, respondWithinMs: 3_000 }));
      await commands.settle(keyFor('ends'), { kind: 'cancel', reason: null, by: 'test' });
      await bench.advance(2_000);
      expect((await due()).sort()).toEqual(['linked', 'waits']);
      await commands.rebind(ALICE, BOUND, 'up');
      await commands.rebind(ALICE, BOUND, 'down');
      expect(await due()).toEqual([]);
      await bench.advance(3_000);
      expect((await due()).sort()).toEqual(['linked', 'waits']);
    });
  });
}
