/** Tests commands over Redis with several processes: repeated acts, concurrent acts and limits. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedisCommands } from '../../src/backends/redis/commands/store.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import type { Command } from '../../src/core/commands/command.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import { toJson } from '../../src/core/json.ts';
import { admission, ALICE, BOUND, dispatched, ending, keyFor, kinds, openNode } from '../contract/kit/bench.ts';
import { commandModel } from '../contract/commands-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const ALL = { first: 100, after: null };

/**
 * Opens a backend that sends each act on a command twice, as after a lost answer. The second act must change nothing.
 */
async function resending(): Promise<RedisBench> {
  const bench = await redisBench();
  const act: Store['act'] = async (...requested) => {
    const answer = await bench.store.act(...requested);
    await bench.store.act(...requested);
    return answer;
  };
  const commands = createRedisCommands({ ...bench.parts, store: { ...bench.store, act } });
  return { ...bench, backend: { ...bench.backend, commands } };
}

commandModel('redis where each act is sent twice', resending, 20);

describe('an act that is sent again because its answer was lost', () => {
  /** Returns a command without the members that change with each request and are not part of its state. */
  const state = (command: Command | null) => {
    const { version: _version, sightings, ...rest } = command ?? { version: 0, sightings: [] };
    return { ...rest, seen: sightings.map(({ messageId }) => messageId) };
  };
  const play = async (bench: RedisBench): Promise<unknown> => {
    const { commands, waiters, inspector } = bench.backend;
    const node = await openNode(bench);
    await commands.rebind(ALICE, BOUND, 'up');
    for (const id of ['acked', 'failed', 'asked', 'late']) await dispatched(bench, id);
    await commands.admit(admission('queued'));
    await commands.admit(admission('dropped'));
    await commands.report(keyFor('acked'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
    const kept = { payload: toJson(1), spill: null };
    await commands.report(keyFor('acked'), { instanceId: 'i1', kind: 'progress', payload: kept.payload, kept });
    const error = { code: 'handler_failed', message: 'no/way' };
    await commands.finish(keyFor('failed'), ending({ kind: 'error', payload: null, error }));
    await commands.finish(keyFor('late'), ending());
    await commands.finish(keyFor('late'), ending({ instanceId: 'i0' }));
    await commands.settle(keyFor('asked'), { kind: 'cancel', reason: 'enough', by: 'test' });
    await commands.settle(keyFor('dropped'), { kind: 'cancel', reason: null, by: 'test' });
    await commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up');
    const ids = ['acked', 'failed', 'asked', 'late', 'queued', 'dropped'];
    const replies = (await node.take()).filter(({ kind }) => kind === 'reply');
    const rows = [];
    for (const id of ids) rows.push(await kinds(bench, id));
    const stats = await bench.backend.dedup.stats(300);
    return {
      records: (await commands.get(ids.map((id) => keyFor(id)))).map(state),
      rows,
      results: [await commands.result(keyFor('late')), await commands.result(keyFor('failed'))],
      replied: replies.map((row) => row.kind === 'reply' && row.reply.rpcId),
      waits: (await waiters.list(ANY_WAIT, ALL)).rows.map(({ row }) => row.waiter.rpcId),
      scopes: (await inspector.scopes(ALL)).rows.map(({ row }) => row),
      dedup: [stats.seen, stats.unique],
    };
  };

  it('leaves the same state as one that was sent once', async () => {
    const once = await redisBench();
    const twice = await resending();
    const left = await play(once);
    expect(await play(twice)).toEqual(left);
    expect(left).toMatchObject({
      rows: [
        ['command', 'progress'],
        ['command', 'error'],
        ['command', 'cancel'],
        ['command', 'result', 'late_result'],
        ['command'],
        ['command', 'cancel'],
      ],
      waits: ['rpc-acked', 'rpc-asked', 'rpc-queued'],
    });
    await once.close();
    await twice.close();
  });
});

describe('commands of several processes over one Redis', () => {
  let here: RedisBench;
  let there: RedisBench;
  beforeEach(async () => {
    here = await redisBench({ leaseMs: 8_000 });
    there = await redisBench({ leaseMs: 8_000, beside: here });
  });
  afterEach(async () => {
    await there.close();
    await here.close();
  });
  const both = () => [here.backend.commands, there.backend.commands] as const;
  const often = <T>(run: (i: number) => T | Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: 20 }, (_, i) => run(i)));
  const count = (answers: readonly { readonly kind: string }[], kind: string): number =>
    answers.filter((answer) => answer.kind === kind).length;

  it('dispatches once, ends once and replies once, for any number of concurrent requests', async () => {
    const nodes = [await openNode(here), await openNode(there, 'n2')];
    await here.backend.commands.rebind(ALICE, BOUND, 'up');
    const waiter = (i: number) =>
      ({ ...admission('c1').waiter, rpcId: `r${i % 4}`, callerNodeId: `n${1 + (i % 2)}` }) as const;
    const admitted = await often((i) => both()[i % 2]!.admit(admission('c1', { waiter: waiter(i) })));
    expect([count(admitted, 'admitted'), count(admitted, 'attached')]).toEqual([1, 19]);
    const written = await often((i) => both()[i % 2]!.dispatch(keyFor('c1'), BOUND));
    expect(count(written, 'dispatch')).toBe(1);
    const ended = await often((i) => both()[i % 2]!.finish(keyFor('c1'), ending()));
    expect([count(ended, 'finished'), count(ended, 'duplicate')]).toEqual([1, 19]);
    const rows = (await Promise.all(nodes.map((node) => node.take()))).flat();
    expect(rows.filter(({ kind }) => kind === 'command')).toHaveLength(1);
    const replies = rows.flatMap((row) => (row.kind === 'reply' ? [row.reply.rpcId] : []));
    expect(replies.sort()).toEqual(['r0', 'r1', 'r2', 'r3']);
  });

  it('never reserve more than the limit of a scope', async () => {
    await here.backend.commands.rebind(ALICE, BOUND, 'up');
    const answers = await often((i) => both()[i % 2]!.admit(admission(`c${i}`, { scopeLimit: 7 })));
    expect([count(answers, 'admitted'), count(answers, 'refused')]).toEqual([7, 13]);
  });

  it('notify the node that holds the link when another node admits, cancels or ends', async () => {
    const holder = await openNode(there, 'n2');
    await there.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'n2' }, 'up');
    await here.backend.commands.admit(admission('c1'));
    expect(await holder.take()).toEqual([{ kind: 'command', key: keyFor('c1') }]);
    await there.backend.commands.dispatch(keyFor('c1'), { ...BOUND, nodeId: 'n2' });
    await here.backend.commands.settle(keyFor('c1'), { kind: 'cancel', reason: null, by: 'test' });
    await here.backend.commands.settle(keyFor('c1'), { kind: 'give_up', code: 'node_lost', instanceId: null });
    expect(await holder.take()).toEqual([
      { kind: 'cancel', key: keyFor('c1'), reason: null },
      { kind: 'ended', key: keyFor('c1') },
    ]);
  });

  it('count a client as connected only while the node that holds its link is alive', async () => {
    await openNode(there, 'n2');
    await there.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'n2' }, 'up');
    expect(await here.backend.commands.admit(admission('c1'))).toMatchObject({ kind: 'admitted' });
    // Moving the clock does not wait for the dead node, because nothing reads its mailbox.
    await here.clock.advance(9_000);
    expect(await here.backend.commands.admit(admission('c2'))).toEqual({ kind: 'refused', code: 'not_connected' });
    expect(await here.backend.commands.admit(admission('c3', { connectWithinMs: 1_000 }))).toMatchObject({
      kind: 'admitted',
      command: { stage: 'admitted', nodeId: null },
    });
  });
});
