/** Tests what a node that died leaves in Redis, and how other nodes see that node. */
import { afterEach, describe, expect, it } from 'vitest';
import { lookAtNodes } from '../../src/backends/redis/nodes-listed.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import { NODE_GONE_MS } from '../../src/core/limits.ts';
import { CALLER, admission, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { beats, LEASE, linkUp, TestNode, REPORT } from './kit/test-node.ts';

const ALL = { first: 10, after: null };

describe('a node that died over Redis', () => {
  const benches: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of benches.splice(0).reverse()) await bench.close();
  });
  const node = async (id: string): Promise<TestNode> => {
    const bench = await redisBench({ ...LEASE, ...(benches[0] && { beside: benches[0] }) });
    benches.push(bench);
    return new TestNode(bench, id).attach();
  };
  const two = async (): Promise<readonly [TestNode, TestNode]> => {
    const nodes = [await node('a'), await node('b')] as const;
    await beats(nodes, 8_000);
    return nodes;
  };
  const listed = async ({ bench }: TestNode): Promise<readonly (readonly [string, number])[]> => {
    const { rows } = await bench.backend.nodes.list(ALL);
    return rows.map(({ row }) => [row.nodeId, bench.now() - row.updatedAt]);
  };
  const silent = ({ bench }: TestNode) => bench.backend.nodes.silent();

  it('leaves the deadlines of its commands and the waits of other nodes, and no wait of its own', async () => {
    const [a, b] = await two();
    const epoch = await linkUp(a, 'tab');
    const { commands, waiters, nodes } = b.bench.backend;
    const wait = (rpcId: string, callerNodeId: string) =>
      ({ rpcId, caller: CALLER, callerNodeId, waitFor: 'completed', withinMs: null }) as const;
    for (const id of ['c1', 'c2']) {
      const waiter = wait(`${id}-of-a`, 'a');
      await a.bench.backend.commands.admit(admission(id, { waiter, connectWithinMs: 5_000, respondWithinMs: 300_000 }));
    }
    await a.bench.backend.commands.dispatch(keyFor('c1'), { nodeId: 'a', instanceId: 'i1', epoch });
    for (const id of ['c1', 'c2']) await waiters.attach(keyFor(id), wait(`${id}-of-b`, 'b'));
    await beats([b], 10_000);
    const left = await waiters.list(ANY_WAIT, ALL);
    expect(left.rows.map(({ row }) => row.waiter.rpcId).sort()).toEqual(['c1-of-b', 'c2-of-b']);
    expect(await nodes.due(10)).toEqual([]);
    expect(await commands.get(['c1', 'c2'].map((id) => keyFor(id)))).toMatchObject([
      { stage: 'dispatched' },
      { stage: 'admitted', nodeId: null },
    ]);
    await b.bench.clock.advance(300_000);
    expect((await nodes.due(10)).map(({ commandId }) => commandId).sort()).toEqual(['c1', 'c2']);
  });

  it('is silent from its second missed beat on, and stays listed for 30 s after it was reaped', async () => {
    const [, b] = await two();
    await beats([b], 4_000);
    expect(await silent(b)).toEqual([]);
    // At 6 s the node is silent; at 8 s its lease has ended and it is reaped.
    for (let gone = 6_000; gone < 8_000 + NODE_GONE_MS; gone += 2_000) {
      await beats([b], 2_000);
      expect([gone, await silent(b), await listed(b)]).toEqual([
        gone,
        ['a'],
        [
          ['a', gone],
          ['b', 0],
        ],
      ]);
    }
    await beats([b], 2_000);
    expect([await silent(b), await listed(b)]).toEqual([[], [['b', 0]]]);
    const { store, connect } = b.bench;
    const client = connect();
    await client.connect();
    const rests = await Promise.all(
      Array.from({ length: store.partitions }, async (_, partition) => [
        await client.exists(store.key(partition, 'nodesgone')),
        await client.hexists(store.key(partition, 'node', 'a'), 'report'),
      ]),
    );
    client.disconnect();
    expect(rests).toEqual(Array.from({ length: store.partitions }, () => [0, 0]));
  });

  it('is listed once only, and not as silent, when another process takes its id', async () => {
    const [, b] = await two();
    await beats([b], 10_000);
    expect(await silent(b)).toEqual(['a']);
    const again = await node('a');
    expect(await silent(b)).toEqual([]);
    await again.bench.backend.nodes.beat('a', REPORT);
    expect(await listed(b)).toEqual([
      ['a', 0],
      ['b', 0],
    ]);
  });

  it('accepts no mailbox rows', async () => {
    const [, b] = await two();
    await beats([b], 10_000);
    expect(await b.bench.backend.nodes.post('a', { kind: 'drain', withinMs: 1 })).toBe(false);
  });

  it('is not one that released its id, not even while it is being reaped', async () => {
    const [a, b] = await two();
    // There are so many links that reaping them takes more than one act.
    for (let i = 0; i < 200; i++) await linkUp(a, `tab-${i}`);
    const reap = Promise.withResolvers<void>();
    const others = Promise.withResolvers<void>();
    const { act } = a.bench.parts.store;
    let reaped = 0;
    Object.assign(a.bench.parts.store, {
      act: async (...requested: Parameters<typeof act>) => {
        if (requested[1] === 'nodes-reap' && ++reaped === 3) {
          reap.resolve();
          await others.promise;
        }
        return act(...requested);
      },
    });
    a.detach();
    await reap.promise;
    const { leases } = await lookAtNodes(b.bench.parts, b.bench.store.partitionOfUser('alice'));
    expect([[...leases.keys()].sort(), await silent(b)]).toEqual([['a', 'b'], []]);
    // Another node completes the reaping.
    await beats([b], 2_000);
    expect([await silent(b), await listed(b)]).toEqual([[], [['b', 0]]]);
    others.resolve();
    await a.bench.close();
    benches.splice(0, 1);
    expect([await silent(b), await listed(b)]).toEqual([[], [['b', 0]]]);
  });
});
