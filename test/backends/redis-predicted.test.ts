/** Tests the records of live commands that a relay keeps, to decide the next act on them without a read. */
import { afterEach, describe, expect, it } from 'vitest';
import { createHeldCommands, heldCommand } from '../../src/backends/redis/commands/record.ts';
import { toJson } from '../../src/core/json.ts';
import { CALLER, admission, ALICE, BOUND, ending, keyFor, openNode, read } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

async function opened(): Promise<RedisBench> {
  const bench = await redisBench({ partitions: 1 });
  await openNode(bench);
  await bench.backend.commands.rebind(ALICE, BOUND, 'up');
  return bench;
}

describe('a record that the relay keeps', () => {
  const open: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of open.splice(0)) await bench.close();
  });

  it('hides nothing that another process has changed since', async () => {
    const bench = await opened();
    const other = await redisBench({ partitions: 1, beside: bench });
    open.push(other, bench);
    const { commands } = bench.backend;
    for (const id of ['ended', 'cancelled', 'waited', 'linked']) await commands.admit(admission(id));
    await bench.advance(1);
    const cancel = { kind: 'cancel', reason: 'enough', by: 'test' } as const;
    await other.backend.commands.settle(keyFor('ended'), cancel);
    expect(await commands.dispatch(keyFor('ended'), BOUND)).toEqual({ kind: 'skip' });

    await commands.dispatch(keyFor('cancelled'), BOUND);
    await other.backend.commands.settle(keyFor('cancelled'), cancel);
    expect(await commands.finish(keyFor('cancelled'), ending())).toMatchObject({ kind: 'finished' });
    expect((await read(bench, 'cancelled')).cancelRequestedAt).toBe(bench.now());

    await commands.dispatch(keyFor('waited'), BOUND);
    const wait = { rpcId: 'more', caller: CALLER, callerNodeId: 'n2', waitFor: 'completed', withinMs: null } as const;
    await other.backend.waiters.attach(keyFor('waited'), wait);
    expect(await commands.finish(keyFor('waited'), ending())).toMatchObject({ kind: 'finished' });
    const client = bench.store.key(0, 'client', bench.store.hash('alice', 'tab'));
    expect(await bench.store.read([['HMGET', client, 'swaited', 'wwaited']])).toEqual([[null, null]]);

    await other.backend.commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up');
    expect(await commands.dispatch(keyFor('linked'), BOUND)).toEqual({ kind: 'skip' });
  });

  it('is kept only within the bounds; a command whose record is not kept is still dispatched and ended', async () => {
    const held = createHeldCommands(2);
    const known = heldCommand({ state: 's', request: 'a', waits: '', params: 'p' });
    for (const id of ['c1', 'c2', 'c3']) held.put(keyFor(id), known);
    expect(['c1', 'c2', 'c3'].map((id) => held.get(keyFor(id)))).toEqual([undefined, known, known]);
    held.drop(keyFor('c2'));
    held.put(keyFor('c4'), { ...known, params: 'x'.repeat(40 * 1024 * 1024) });
    expect(['c3', 'c4'].map((id) => held.get(keyFor(id)))).toEqual([undefined, undefined]);

    const bench = await opened();
    open.push(bench);
    const { commands } = bench.backend;
    const params = toJson('x'.repeat(10_000));
    await commands.admit(admission('large', { params }));
    await bench.advance(1);
    expect(await commands.dispatch(keyFor('large'), BOUND)).toMatchObject({ kind: 'dispatch', params });
    expect(await commands.finish(keyFor('large'), ending())).toMatchObject({ kind: 'finished' });
  });
});
