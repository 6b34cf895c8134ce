/** Tests what Redis keeps of callers that wait on several nodes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import { WAITERS_PER_COMMAND } from '../../src/core/limits.ts';
import { CALLER, admission, ALICE, BOUND, countWaits, ending, keyFor } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { beats, LEASE, TestNode } from './kit/test-node.ts';

const WAIT = { caller: CALLER, waitFor: 'completed', withinMs: null } as const;

describe('callers that wait on two nodes', () => {
  const benches: RedisBench[] = [];
  let a: TestNode;
  let b: TestNode;
  const node = async (id: string): Promise<TestNode> => {
    const bench = await redisBench({ ...LEASE, partitions: 1, ...(benches[0] && { beside: benches[0] }) });
    benches.push(bench);
    return new TestNode(bench, id).attach();
  };
  beforeEach(async () => {
    a = await node('a');
    b = await node('b');
    await a.bench.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'a' }, 'up');
    await a.bench.backend.commands.admit(admission('c1', { waiter: { ...WAIT, rpcId: 'rpc-c1', callerNodeId: 'a' } }));
    await a.bench.backend.commands.dispatch(keyFor('c1'), { ...BOUND, nodeId: 'a' });
  });
  afterEach(async () => {
    for (const bench of benches.splice(0).reverse()) await bench.close();
  });

  const attach = ({ bench, id }: TestNode, rpcId: string) =>
    bench.backend.waiters.attach(keyFor('c1'), { ...WAIT, rpcId, callerNodeId: id });
  const kept = async (): Promise<string> => {
    const { store } = b.bench;
    const key = store.key(0, 'client', store.hash(ALICE.userId, ALICE.clientId));
    return String((await store.read([['HGET', key, 'wc1']]))[0]);
  };
  const replies = ({ rows }: TestNode) => rows.flatMap((row) => (row.kind === 'reply' ? [row.reply.rpcId] : []));

  it('are at most eight for a command, and a caller that leaves or repeats its request takes no further place', async () => {
    for (let i = 1; i < WAITERS_PER_COMMAND - 1; i++) await attach(i % 2 ? a : b, `r${i}`);
    const answers = await Promise.all([attach(b, 'r7'), attach(a, 'r8'), attach(b, 'r9')]);
    expect(answers.map(({ kind }) => kind).sort()).toEqual(['full', 'full', 'waiting']);
    for (const again of ['r1', 'r3']) expect((await attach(a, again)).kind).toBe('waiting');
    await a.bench.backend.waiters.remove(keyFor('c1'), 'r1');
    expect((await attach(b, 'r10')).kind).toBe('waiting');
    expect((await attach(a, 'r11')).kind).toBe('full');
  });

  it('have no row in Redis: it names their nodes, and how many wait there', async () => {
    await attach(b, 'rpc-of-b');
    const text = await kept();
    expect(text).not.toContain('rpc-');
    expect(text.split('\0').filter((_, i) => i % 3 === 0)).toEqual(['a', 'b', '']);
    await b.bench.backend.waiters.remove(keyFor('c1'), 'rpc-of-b');
    expect((await kept()).split('\0').filter((_, i) => i % 3 === 0)).toEqual(['a', '']);
  });

  it('keep the waits for the end when those for the acknowledgement are removed, whatever their numbers are', async () => {
    const { commands, waiters } = b.bench.backend;
    // A wait is stored as a letter (`a` or `c`) and a number in base 36. After 360 waits, the numbers begin with `a`
    // too.
    for (let i = 0; i < 360; i++) {
      await attach(b, `early-${i}`);
      await waiters.remove(keyFor('c1'), `early-${i}`);
    }
    await attach(b, 'end');
    await waiters.attach(keyFor('c1'), { ...WAIT, rpcId: 'ack', callerNodeId: 'b', waitFor: 'acknowledged' });
    const before = (await kept()).split('\0').at(-2);
    expect(before).toBe('ca1,aa2,');
    await commands.report(keyFor('c1'), { instanceId: BOUND.instanceId, kind: 'ack', payload: null, kept: null });
    await b.until(() => replies(b).length === 1);
    expect(replies(b)).toEqual(['ack']);
    expect((await kept()).split('\0').at(-2)).toBe('ca1,');
  });

  it('get one reply each, although each node gets one row', async () => {
    for (const rpcId of ['b1', 'b2']) await attach(b, rpcId);
    await attach(a, 'a2');
    await a.bench.backend.commands.finish(keyFor('c1'), ending());
    await b.until(() => replies(b).length === 2);
    await a.until(() => replies(a).length === 2);
    expect([replies(a), replies(b)]).toEqual([
      ['rpc-c1', 'a2'],
      ['b1', 'b2'],
    ]);
    for (const { bench } of [a, b])
      expect(await countWaits(bench.backend.waiters, ANY_WAIT)).toEqual({ count: 0, complete: true });
  });

  it('take no place once their node is dead, and get no reply when another process has its id', async () => {
    for (let i = 1; i < WAITERS_PER_COMMAND; i++) await attach(b, `b${i}`);
    expect((await attach(a, 'a2')).kind).toBe('full');
    await beats([a, b], 8_000);
    await beats([a], 10_000);
    expect((await attach(a, 'a2')).kind).toBe('waiting');
    const next = await node('b');
    expect((await attach(next, 'next')).kind).toBe('waiting');
    expect((await kept()).split('\0').filter((_, i) => i % 3 === 0)).toEqual(['a', 'b', '']);
    await a.bench.backend.commands.finish(keyFor('c1'), ending());
    await next.until(() => replies(next).length > 0);
    expect(replies(next)).toEqual(['next']);
    await a.until(() => replies(a).length === 2);
    expect(replies(a)).toEqual(['rpc-c1', 'a2']);
    expect(replies(b)).toEqual([]);
  });

  it('are not counted among those of the next process with the id of their node', async () => {
    for (const rpcId of ['b1', 'b2', 'b3']) await attach(b, rpcId);
    await beats([a, b], 8_000);
    await beats([a], 10_000);
    const next = await node('b');
    await attach(next, 'next');
    const [, , , id, epoch, waits] = (await kept()).split('\0');
    const [current] = await b.bench.store.read([['HGET', b.bench.store.key(0, 'node', 'b'), 'epoch']]);
    expect([id, epoch, waits?.split(',').length]).toEqual(['b', current, 2]);
  });
});
