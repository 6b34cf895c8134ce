import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { NodeReport } from '../../src/core/delivery/nodes.ts';
import { admission, keyFor, openNode, type Bench, type MakeBench } from './kit/bench.ts';

const REPORT: NodeReport = {
  listenerAlive: true,
  reconciliationAlive: true,
  activeDrainers: 1,
  connectionWaiters: 2,
  links: 3,
  unfinishedCommands: 4,
  draining: false,
  counters: new Map([['a', 1]]),
};

/** The contract of every NodeStore. */
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
        expect(await bench.backend.nodes.post('n1', { kind: 'ended', key: keyFor(`c${i}`) })).toBe(true);
      expect((await node.take()).map((row) => row.kind === 'ended' && row.key.commandId)).toEqual([
        'c0',
        'c1',
        'c2',
        'c3',
        'c4',
      ]);
      node.detach();
      expect(await bench.backend.nodes.post('n1', { kind: 'drain', withinMs: 1 })).toBe(false);
      expect(await node.take()).toEqual([]);
    });

    it('lets one process at a time hold a node id', async () => {
      const node = await openNode(bench);
      await expect(async () => openNode(bench)).rejects.toThrow('n1');
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
      await vi.waitFor(async () => expect(await nodes.silent()).toEqual(['n1']));
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
  });
}
