/** Tests that the links of a dead node are each closed once. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Connection } from '../../src/core/connections/connection.ts';
import { admission, ALICE, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { beats, LEASE, linkUp, TestNode, REPORT } from './kit/test-node.ts';

describe('the reaper', () => {
  const benches: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of benches.splice(0).reverse()) await bench.close();
  });
  const nodes = async (...ids: readonly string[]): Promise<TestNode[]> => {
    const first = benches[0] ?? (await redisBench(LEASE));
    if (benches.length === 0) benches.push(first);
    const found: TestNode[] = [];
    for (const id of ids) {
      const bench = await redisBench({ ...LEASE, beside: first });
      benches.push(bench);
      found.push(await new TestNode(bench, id).attach());
    }
    return found;
  };
  const names = (found: readonly Connection[]): string[] => found.map(({ clientId }) => clientId).sort();

  it('notifies one node, once, of each link of a dead node, with the row as it then was', async () => {
    const [a, b, c] = await nodes('a', 'b', 'c');
    if (!a || !b || !c) throw new Error('no nodes');
    const clients = Array.from({ length: 100 }, (_, i) => `tab-${String(i).padStart(3, '0')}`);
    for (const clientId of clients) await linkUp(a, clientId);
    await beats([a, b, c], 8_000);
    await beats([b, c], 12_000);
    const lost = [...b.linksLost, ...c.linksLost];
    expect(names(lost)).toEqual(clients);
    expect(lost[0]).toMatchObject({ nodeId: 'a', disconnectCause: 'node_lost', disconnectedAt: expect.any(Number) });
    const [row] = await b.bench.backend.connections.get([{ userId: 'alice', clientId: 'tab-000' }]);
    expect(lost.find(({ clientId }) => clientId === 'tab-000')).toEqual(row);
    expect(a.linksLost).toEqual([]);
  });

  it('leaves links that closed earlier to their own close, and closes later ones itself', async () => {
    const [a, b] = await nodes('a', 'b');
    if (!a || !b) throw new Error('no nodes');
    const closed = await linkUp(a, 'closed');
    const left = await linkUp(a, 'left');
    const at = (clientId: string) => ({ userId: 'alice', clientId });
    expect(await a.bench.backend.connections.disconnect(at('closed'), closed, 'client_closed')).toMatchObject({
      disconnectCause: 'client_closed',
    });
    await beats([a, b], 8_000);
    await beats([b], 8_000);
    expect(names(b.linksLost)).toEqual(['left']);
    // A fenced node sends this when it resumes. It changes nothing, because the reaper has already ended the
    // connection.
    expect(await b.bench.backend.connections.disconnect(at('left'), left, 'node_lost')).toBe(null);
    expect(await b.bench.backend.connections.disconnect(at('closed'), closed, 'client_closed')).toMatchObject({
      disconnectCause: 'client_closed',
    });
  });

  it('parks hundreds of commands of one client in parts, and all of them', async () => {
    const [a, b] = await nodes('a', 'b');
    if (!a || !b) throw new Error('no nodes');
    await linkUp(a, ALICE.clientId);
    const ids = Array.from({ length: 350 }, (_, i) => `c${i}`);
    await Promise.all(
      ids.map((id) => a.bench.backend.commands.admit(admission(id, { connectWithinMs: 60_000, scopeLimit: 1_000 }))),
    );
    await beats([a, b], 8_000);
    const before = b.bench.store.roundTrips;
    await beats([b], 8_000);
    expect(b.bench.store.roundTrips - before).toBeGreaterThan(8);
    const states = async (): Promise<ReadonlySet<string>> => {
      const records = await b.bench.backend.commands.get(ids.map((id) => keyFor(id)));
      return new Set(records.map((record) => `${record?.stage} ${record?.nodeId}`));
    };
    // The cleanup goes on beside the beats.
    await expect.poll(states).toEqual(new Set(['admitted null']));
    expect(names(b.linksLost)).toEqual([ALICE.clientId]);
  });

  it('does not delay any beat, however long it takes', async () => {
    const [a, b] = await nodes('a', 'b');
    if (!a || !b) throw new Error('no nodes');
    await linkUp(a, 'tab');
    await beats([a, b], 8_000);
    const slow = Promise.withResolvers<void>();
    const { act } = b.bench.parts.store;
    Object.assign(b.bench.parts.store, {
      act: async (...requested: Parameters<typeof act>) => {
        if (requested[1] === 'nodes-reap') await slow.promise;
        return act(...requested);
      },
    });
    for (let turn = 0; turn < 4; turn++) {
      await b.bench.clock.advance(2_000);
      await b.bench.backend.nodes.beat('b', REPORT);
    }
    expect(await b.bench.backend.nodes.get('b')).toMatchObject({ updatedAt: b.bench.now() });
    expect(b.linksLost).toEqual([]);
    slow.resolve();
    await b.until(() => b.linksLost.length === 1);
  });
});
