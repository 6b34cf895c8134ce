/** Tests that acts which Redis runs in one script call leave the same state as acts with a call each. */
import { describe, expect, it } from 'vitest';
import { QUEUE_PER_CLIENT } from '../../src/core/limits.ts';
import { encodeRequest } from '../../src/backends/redis/commands/record.ts';
import { CALLER, admission, ALICE, BOUND, ending, keyFor, openNode, read } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const TAB = { userId: 'alice', clientId: 'other' };
const ALL = { first: 100, after: null };
const IDS = Array.from({ length: 12 }, (_, i) => `c${i}`);
const clientOf = (id: string) => (Number(id.slice(1)) % 2 === 0 ? ALICE : TAB);
const keyOf = (id: string) => keyFor(id, clientOf(id));

type Act = (bench: RedisBench) => unknown;
/**
 * The acts of the test, in groups. The acts of a group are sent in one tick. After each group, the states are compared.
 */
const WAVES: readonly (readonly Act[])[] = [
  IDS.map((id) => ({ backend }) => {
    const waitFor = id === 'c3' ? 'acknowledged' : 'completed';
    const waiter = { rpcId: `rpc-${id}`, caller: CALLER, callerNodeId: 'n1', waitFor, withinMs: null } as const;
    return backend.commands.admit(admission(id, { ...clientOf(id), waiter }));
  }),
  [
    ({ backend }) => backend.commands.admit(admission('c0', { ...ALICE, digest: 'another' })),
    ({ backend }) => backend.commands.admit(admission('c12', { ...ALICE, scopeLimit: 12 })),
  ],
  IDS.slice(0, 10).flatMap((id): Act[] => [
    ({ backend }) => backend.commands.dispatch(keyOf(id), { ...BOUND, epoch: 1 }, 'a'),
    ({ backend }) => backend.commands.report(keyOf(id), { instanceId: 'i1', kind: 'ack', payload: null, kept: null }),
    ...(id === 'c8' ? [] : [({ backend }: RedisBench) => backend.commands.finish(keyOf(id), ending())]),
    ...(id === 'c4' ? [({ backend }: RedisBench) => backend.commands.finish(keyOf(id), ending())] : []),
  ]),
  [
    ({ backend }) => backend.commands.settle(keyOf('c10'), { kind: 'cancel', reason: 'enough', by: 'test' }),
    ({ backend }) => backend.commands.dispatch(keyOf('c10'), BOUND, 'a'),
    ({ backend }) => backend.commands.finish(keyOf('c9'), ending({ instanceId: 'i0' })),
    ({ backend }) => backend.commands.settle(keyOf('c11'), { kind: 'cancel', reason: null, by: 'test' }),
  ],
];

async function records({ backend }: RedisBench): Promise<unknown> {
  const found = await backend.commands.get(IDS.map(keyOf));
  return [found, await backend.commands.loads([ALICE, TAB]), (await backend.inspector.scopes(ALL)).rows];
}

async function started(): Promise<RedisBench> {
  const bench = await redisBench({ partitions: 1 });
  await openNode(bench);
  for (const client of [ALICE, TAB]) await bench.backend.commands.rebind(client, BOUND, 'up');
  return bench;
}

describe('acts that travel in one call', () => {
  it('answer and leave the records and counts that they leave one by one', async () => {
    const [apart, together] = [await started(), await started()];
    for (const wave of WAVES) {
      const alone: unknown[] = [];
      for (const act of wave) alone.push(await act(apart));
      expect(await Promise.all(wave.map((act) => act(together)))).toEqual(alone);
      const shown = [await records(apart), await records(together)];
      expect(shown[1]).toEqual(shown[0]);
    }
    const stats = [await apart.backend.dedup.stats(300), await together.backend.dedup.stats(300)];
    expect(stats[1]).toEqual(stats[0]);
    expect(stats[0]).toMatchObject({ seen: 11, unique: 10 });
    await Promise.all([apart.close(), together.close()]);
  });

  it('count each other against the limits of scope and queue', async () => {
    const bench = await started();
    const { commands } = bench.backend;
    const few = await Promise.all(IDS.map((id) => commands.admit(admission(id, { scopeLimit: 5 }))));
    expect(few.map(({ kind }) => kind)).toEqual([...Array(5).fill('admitted'), ...Array(7).fill('refused')]);
    const many = Array.from({ length: QUEUE_PER_CLIENT }, (_, i) => `q${i}`);
    const requested = await Promise.all(many.map((id) => commands.admit(admission(id, { scopeLimit: 1e6 }))));
    expect(requested.filter(({ kind }) => kind === 'admitted')).toHaveLength(QUEUE_PER_CLIENT - 5);
    expect(requested.at(-1)).toEqual({ kind: 'refused', code: 'queue_full' });
    expect((await bench.backend.inspector.scopes(ALL)).rows[0]?.row.reservedCommands).toBe(QUEUE_PER_CLIENT);
    await bench.close();
  });

  it('answer each waiter once, also if an acknowledgement and the end arrive together', async () => {
    const bench = await redisBench({ partitions: 1 });
    const node = await openNode(bench);
    const { commands } = bench.backend;
    await commands.rebind(ALICE, BOUND, 'up');
    const waiter = (id: string, waitFor: 'acknowledged' | 'completed') =>
      commands.admit(
        admission('c0', { waiter: { rpcId: id, caller: CALLER, callerNodeId: 'n1', waitFor, withinMs: null } }),
      );
    await waiter('first', 'acknowledged');
    await node.take();
    await Promise.all([
      commands.dispatch(keyFor('c0'), BOUND, 'a'),
      commands.report(keyFor('c0'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null }),
      commands.finish(keyFor('c0'), ending()),
    ]);
    expect(await node.take()).toMatchObject([{ kind: 'reply', reply: { rpcId: 'first' } }]);
    await bench.close();
  });

  it('read a record as the acts before them left it', async () => {
    const bench = await started();
    const { commands } = bench.backend;
    await commands.admit(admission('c0'));
    const reported = await Promise.all([
      commands.dispatch(keyFor('c0'), BOUND, 'a'),
      commands.dispatch(keyFor('c0'), BOUND, 'b'),
      commands.finish(keyFor('c0'), ending()),
      commands.finish(keyFor('c0'), ending()),
    ]);
    expect(reported.map(({ kind }) => kind)).toEqual(['dispatch', 'skip', 'finished', 'duplicate']);
    expect(await read(bench, 'c0')).toMatchObject({ stage: 'terminal', attempts: 1, sightings: [{ count: 2 }] });
    await bench.close();
  });
});

describe('the text of a record', () => {
  it('contains no NUL', async () => {
    const bench = await started();
    await bench.backend.commands.admit(admission('c0'));
    expect(() => encodeRequest({ action: 'a\0b' })).toThrow('NUL');
    await bench.backend.commands.dispatch(keyFor('c0'), BOUND, 'a');
    const error = { code: 'x\0terminal\0y', message: 'no' };
    await bench.backend.commands.finish(keyFor('c0'), ending({ kind: 'error', payload: null, error }));
    expect(await read(bench, 'c0')).toMatchObject({
      stage: 'terminal',
      outcome: 'failed',
      reason: 'xterminaly',
      error,
    });
    await bench.close();
  });
});
