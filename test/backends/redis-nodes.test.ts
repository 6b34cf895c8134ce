/** Tests two nodes over one Redis: what they post to each other's mailboxes. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Client } from '../../src/backends/redis/client.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import type { NodeRow } from '../../src/core/commands/node-store.ts';
import { toJson } from '../../src/core/json.ts';
import { CALLER, admission, ALICE, ending, keyFor } from '../contract/kit/bench.ts';
import { systemClock } from '../../src/platform/system.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { beats, LEASE, TestNode, REPORT } from './kit/test-node.ts';

const WAIT = { caller: CALLER, waitFor: 'completed', withinMs: null } as const;
const kick = (epoch: number): NodeRow => ({ kind: 'kick', client: ALICE, epoch, cause: 'operator', instanceId: null });

describe('two nodes over one Redis', () => {
  const benches: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of benches.splice(0).reverse()) await bench.close();
  });
  const two = async (): Promise<{ a: TestNode; b: TestNode }> => {
    const one = await redisBench(LEASE);
    const other = await redisBench({ ...LEASE, beside: one });
    benches.push(one, other);
    return { a: await new TestNode(one, 'a').attach(), b: await new TestNode(other, 'b').attach() };
  };
  const bind = (node: TestNode, epoch = 1) =>
    node.bench.backend.commands.rebind(ALICE, { nodeId: node.id, instanceId: 'i1', epoch }, 'up');
  const waits = async ({ bench }: TestNode): Promise<string[]> =>
    (await bench.backend.waiters.list(ANY_WAIT, { first: 10, after: null })).rows.map(({ row }) => row.waiter.rpcId);

  it('reach each other: a command for a link of one node, and its reply for a caller of the other, unchanged', async () => {
    const { a, b } = await two();
    await bind(b);
    const big = toJson('x'.repeat(100_000));
    for (const [id, payload] of [
      ['c1', toJson({ ok: true })],
      ['c2', big],
      ['c3', null],
    ] as const) {
      await a.bench.backend.commands.admit(admission(id, { waiter: { ...WAIT, rpcId: `r-${id}`, callerNodeId: 'a' } }));
      await b.until(() => b.rows.some((row) => row.kind === 'command' && row.key.commandId === id));
      const binding = { nodeId: 'b', instanceId: 'i1', epoch: 1 };
      expect(await b.bench.backend.commands.dispatch(keyFor(id), binding)).toMatchObject({ kind: 'dispatch' });
      await b.bench.backend.commands.finish(keyFor(id), ending({ payload }));
    }
    await a.until(() => a.rows.length === 3);
    const [record] = await a.bench.backend.commands.get([keyFor('c1')]);
    expect(a.rows).toMatchObject([
      { kind: 'reply', reply: { rpcId: 'r-c1', result: '{"ok":true}' } },
      { kind: 'reply', reply: { rpcId: 'r-c2', result: big } },
      { kind: 'reply', reply: { rpcId: 'r-c3', result: null } },
    ]);
    expect(a.rows[0]).toEqual({ kind: 'reply', reply: { rpcId: 'r-c1', command: record, result: '{"ok":true}' } });
    expect(await waits(b)).toEqual([]);
  });

  it('deliver every kind of row as it was posted', async () => {
    const { a, b } = await two();
    const rows: NodeRow[] = [kick(7), { kind: 'kick', client: ALICE, epoch: 8, cause: 'replaced', instanceId: 'i2' }];
    for (const row of rows) expect(await a.bench.backend.nodes.post('b', row)).toBe(true);
    await b.until(() => b.rows.length === rows.length);
    expect(b.rows).toEqual(rows);
    b.rows.splice(0);
    await a.bench.backend.nodes.post('b', { kind: 'drain', withinMs: 5 });
    await b.until(() => b.rows.length === 1);
    expect(b.rows).toEqual([{ kind: 'drain', withinMs: 5 }]);
  });

  it('lose and repeat no row when the connections of their mailboxes break repeatedly', async () => {
    const readers: Client[] = [];
    const one = await redisBench(LEASE);
    const connect = (purpose?: string): Client => {
      const client = one.connect();
      if (purpose === 'mailbox') readers.push(client);
      return client;
    };
    const other = await redisBench({ ...LEASE, connect, beside: one, timers: systemClock });
    benches.push(one, other);
    const b = await new TestNode(other, 'b').attach();
    const epochs = Array.from({ length: 60 }, (_, i) => i);
    for (const i of epochs) {
      await one.backend.nodes.post('b', kick(i));
      if (i % 20 !== 9) continue;
      await b.until(() => b.rows.length > i - 5);
      for (const reader of readers.splice(0)) reader.disconnect();
    }
    await b.until(() => b.rows.length === epochs.length);
    expect(b.rows.map((row) => row.kind === 'kick' && row.epoch)).toEqual(epochs);
    expect(readers.length).toBeGreaterThan(0);
  });

  it('answer a repeated act as they did the first time', async () => {
    const { a, b } = await two();
    await bind(a);
    await a.bench.backend.commands.admit(admission('c1'));
    const wait = { ...WAIT, rpcId: 'r1', callerNodeId: 'b' };
    const first = await b.bench.backend.waiters.attach(keyFor('c1'), wait);
    await b.bench.clock.advance(1);
    expect(await b.bench.backend.waiters.attach(keyFor('c1'), wait)).toEqual(first);
    expect([await waits(a), await waits(b)]).toEqual([['rpc-c1'], ['r1']]);
    a.detach();
    a.detach();
    await a.attach();
    expect(await b.bench.backend.nodes.post('a', { kind: 'drain', withinMs: 1 })).toBe(true);
    expect(await a.bench.backend.commands.get([keyFor('c1')])).toMatchObject([{ stage: 'admitted' }]);
  });

  it('trim the rows that they delivered', async () => {
    const { a, b } = await two();
    for (let i = 0; i < 300; i++) await a.bench.backend.nodes.post('b', kick(i));
    await b.until(() => b.rows.length === 300);
    await b.bench.advance(0);
    const { store } = b.bench;
    const at = store.partitionOfUser(ALICE.userId);
    const [epoch] = await store.read([['HGET', store.key(at, 'node', 'b'), 'epoch']]);
    const mailbox = store.key(at, 'mailbox', `b:${String(epoch)}`);
    // The last rows stay in the stream until the next read removes them.
    const [left] = await store.read([['XLEN', mailbox]]);
    expect(Number(left)).toBeLessThan(150);
  });

  it('do not share an id: the second waits for a lease, and is refused if the first lives', async () => {
    const { a, b } = await two();
    const second = new TestNode(b.bench, 'a');
    const refused = expect(second.attach()).rejects.toMatchObject({
      code: 'invalid_argument',
      message: 'NODE_ID: another live process has the id "a"',
    });
    for (let seconds = 0; seconds < 10; seconds++) {
      await b.bench.quiet();
      if (seconds % 3 === 0) await beats([a], 2_000);
      await b.bench.system.advance(1_000);
    }
    await refused;
  });

  it('take over an id while they wait, once the lease of a process that was killed is over', async () => {
    const { a, b } = await two();
    const second = new TestNode(b.bench, 'a');
    let isIn = false;
    const attached = second.attach().then(() => (isIn = true));
    await b.bench.quiet();
    await b.bench.system.advance(1_000);
    await b.bench.quiet();
    expect(isIn).toBe(false);
    await b.bench.clock.advance(9_000);
    await b.bench.system.advance(1_000);
    await attached;
    await b.bench.backend.nodes.post('a', { kind: 'drain', withinMs: 1 });
    await second.until(() => second.rows.length === 1);
    expect(a.rows).toEqual([]);
  });

  it('reap a node that died: commands queued for its links are parked, the waits of its callers end', async () => {
    const { a, b } = await two();
    await bind(a);
    await a.bench.backend.commands.admit(
      admission('c1', { connectWithinMs: 60_000, waiter: { ...WAIT, rpcId: 'r1', callerNodeId: 'a' } }),
    );
    await b.bench.backend.waiters.attach(keyFor('c1'), { ...WAIT, rpcId: 'r2', callerNodeId: 'b' });
    await dispatchOn(a, 'c2');
    await beats([a, b], 8_000);
    await beats([b], 8_000);
    expect(await b.bench.backend.commands.get([keyFor('c1'), keyFor('c2')])).toMatchObject([
      { stage: 'admitted', nodeId: null },
      { stage: 'dispatched' },
    ]);
    expect(await waits(b)).toEqual(['r2']);
    expect(await b.bench.backend.nodes.post('a', { kind: 'drain', withinMs: 1 })).toBe(false);
    await bind(b, 2);
    await b.until(() => b.rows.length === 1);
    expect(b.rows).toEqual([{ kind: 'command', key: keyFor('c1') }]);
  });

  it('reap no node after a pause that ended every lease, before they have beaten for the length of a lease', async () => {
    const { a, b } = await two();
    await beats([a, b], 10_000);
    await a.bench.clock.advance(30_000);
    await b.bench.backend.nodes.beat('b', REPORT);
    await a.bench.backend.nodes.beat('a', REPORT);
    await beats([a, b], 10_000);
    expect([a.losses, b.losses]).toEqual([[], []]);
    expect((await b.bench.backend.nodes.list({ first: 10, after: null })).rows.length).toBe(2);
  });

  it('notify a node whose lease expired and which returns in time, so that commands parked since then reach its link', async () => {
    const { a, b } = await two();
    await bind(a);
    await beats([a, b], 4_000);
    expect(a.revivals).toBe(0);
    await a.bench.clock.advance(9_000);
    await b.bench.backend.nodes.beat('b', REPORT);
    await b.bench.backend.commands.admit(admission('c1', { connectWithinMs: 15_000 }));
    expect(await b.bench.backend.commands.get([keyFor('c1')])).toMatchObject([{ stage: 'admitted' }]);
    await a.bench.backend.nodes.beat('a', REPORT);
    expect([a.revivals, a.losses]).toEqual([1, []]);
    await bind(a);
    await a.until(() => a.rows.length === 1);
    expect(a.rows).toEqual([{ kind: 'command', key: keyFor('c1') }]);
    await a.bench.backend.nodes.beat('a', REPORT);
    expect(a.revivals).toBe(1);
  });

  it('notify a node that was reaped, when it resumes, and it continues under a new epoch', async () => {
    const { a, b } = await two();
    await bind(a);
    await beats([a, b], 8_000);
    await beats([b], 10_000);
    await expect(a.bench.backend.nodes.beat('a', REPORT)).rejects.toMatchObject({ code: 'store_unavailable' });
    await a.until(() => a.losses.length === 1);
    expect(a.losses).toEqual(['fenced']);
    await b.bench.backend.nodes.post('a', { kind: 'drain', withinMs: 1 });
    await a.until(() => a.rows.length === 1);
    await a.bench.backend.nodes.beat('a', REPORT);
    expect(await b.bench.backend.nodes.get('a')).toMatchObject({ updatedAt: a.bench.now() });
  });

  it('notify a node that the store forgot, and it continues', async () => {
    const { a, b } = await two();
    const { store, connect } = a.bench;
    const client = connect();
    await client.connect();
    for (let partition = 0; partition < store.partitions; partition++) {
      await client.del(store.key(partition, 'node', 'a'), store.key(partition, 'nodes'));
      await client.hdel(store.key(partition, 'meta'), 'calls:a');
    }
    client.disconnect();
    await expect(a.bench.backend.nodes.beat('a', REPORT)).rejects.toMatchObject({ code: 'store_unavailable' });
    await a.until(() => a.losses.length === 1);
    expect(a.losses).toEqual(['store_lost']);
    await b.bench.backend.nodes.post('a', { kind: 'drain', withinMs: 1 });
    await a.until(() => a.rows.length === 1);
  });

  it('leave nothing of a node that left except its epoch', async () => {
    const { a, b } = await two();
    await bind(a);
    await a.bench.backend.commands.admit(
      admission('c1', { connectWithinMs: 60_000, waiter: { ...WAIT, rpcId: 'r1', callerNodeId: 'a' } }),
    );
    a.detach();
    await a.bench.close();
    benches.splice(0, 1);
    const { store } = b.bench;
    const client = b.bench.connect();
    await client.connect();
    const keys = await client.keys(`*{cb:${store.namespace}:*`);
    const ofA = keys.filter((key) => /:(node|mailbox|bound):a/.test(key));
    expect(ofA.every((key) => key.includes(':node:'))).toBe(true);
    for (const key of ofA) expect(await client.pttl(key)).toBeGreaterThan(0);
    client.disconnect();
    expect(keys.filter((key) => /:(waits|userwaits)(:|$)/.test(key))).toEqual([]);
    expect(await b.bench.backend.waiters.ofCommands([keyFor('c1')])).toEqual([[]]);
    expect(await b.bench.backend.commands.get([keyFor('c1')])).toMatchObject([{ stage: 'admitted' }]);
  });
});

async function dispatchOn({ bench, id }: TestNode, commandId: string): Promise<void> {
  await bench.backend.commands.admit(
    admission(commandId, { waiter: { ...WAIT, rpcId: `r-${commandId}`, callerNodeId: id } }),
  );
  await bench.backend.commands.dispatch(keyFor(commandId), { nodeId: id, instanceId: 'i1', epoch: 1 });
}
