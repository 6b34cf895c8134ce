/** Tests that long queues in Redis are moved in parts when a link opens or closes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedisCommands } from '../../src/backends/redis/commands/store.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import type { CommandStore } from '../../src/core/commands/stores.ts';
import { admission, ALICE, BOUND, keyFor, openNode, read } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const WAITING = 250;
const ids = Array.from({ length: WAITING }, (_, i) => `c${i}`);

describe('a link that opens or closes before a long queue', () => {
  let bench: RedisBench;
  /** A command store that calls `between` before each part of a rebind except the first. */
  let slow: CommandStore;
  let between: (part: number) => Promise<void>;
  let parts: number;
  beforeEach(async () => {
    bench = await redisBench();
    between = async () => {};
    parts = 0;
    const act: Store['act'] = async (...requested) => {
      if (requested[1] === 'commands-rebind' && parts++ > 0) await between(parts);
      return bench.store.act(...requested);
    };
    slow = createRedisCommands({ ...bench.parts, store: { ...bench.store, act } });
  });
  afterEach(() => bench.close());
  const admit = (id: string) =>
    bench.backend.commands.admit(admission(id, { scopeLimit: 5_000, connectWithinMs: 60_000 }));
  const admitAll = () => Promise.all(ids.map(admit));
  const reported = async (node: Awaited<ReturnType<typeof openNode>>): Promise<string[]> =>
    (await node.take()).flatMap((row) => (row.kind === 'command' ? [row.key.commandId] : []));
  const stages = async (): Promise<Set<string | undefined>> =>
    new Set((await bench.backend.commands.get(ids.map((id) => keyFor(id)))).map((command) => command?.stage));

  it('moves the queue in parts, and posts commands admitted in between in order, each once', async () => {
    const node = await openNode(bench);
    await admitAll();
    const meanwhile: string[] = [];
    between = async (part) => {
      for (const id of [`m${part}a`, `m${part}b`]) {
        expect(await admit(id)).toMatchObject({ kind: 'admitted', command: { stage: 'queued', nodeId: 'n1' } });
        meanwhile.push(id);
      }
    };
    expect(await slow.rebind(ALICE, BOUND, 'up')).toEqual({ requeued: 0, unfinished: [], orphaned: [] });
    expect(parts).toBeGreaterThan(2);
    await admit('after');
    expect(await reported(node)).toEqual([...ids, ...meanwhile, 'after']);
    expect(await read(bench, 'm2a')).toMatchObject({ version: 1, recoveredFromNodeId: null });
  });

  it('posts newly admitted commands while all earlier ones are cancelled', async () => {
    const node = await openNode(bench);
    await admitAll();
    between = async (part) => {
      if (part > 2) return;
      for (const id of ids)
        await bench.backend.commands.settle(keyFor(id), { kind: 'cancel', reason: null, by: 'test' });
      await admit('next');
    };
    await slow.rebind(ALICE, BOUND, 'up');
    expect((await reported(node)).at(-1)).toBe('next');
    expect(await bench.backend.commands.dispatch(keyFor('next'), BOUND)).toMatchObject({ kind: 'dispatch' });
  });

  it('leaves the rest to a newer link that opens in between', async () => {
    const [old, newer] = [await openNode(bench), await openNode(bench, 'n2')];
    await admitAll();
    const binding = { ...BOUND, nodeId: 'n2', epoch: 2 };
    between = async () => {
      between = async () => {};
      expect(await bench.backend.commands.rebind(ALICE, binding, 'up')).toMatchObject({ requeued: 100 });
    };
    await slow.rebind(ALICE, BOUND, 'up');
    expect(await reported(old)).toEqual(ids.slice(0, 100));
    expect(await reported(newer)).toEqual(ids);
    expect(await bench.backend.commands.dispatch(keyFor('c249'), binding)).toMatchObject({ kind: 'dispatch' });
  });

  it('queues for a newer link what a closing link has parked already, and what it has not', async () => {
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    await admitAll();
    const node = await openNode(bench, 'n2');
    between = async () => {
      between = async () => {};
      await bench.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'n2', epoch: 2 }, 'up');
    };
    await slow.rebind(ALICE, BOUND, 'down');
    expect(await reported(node)).toEqual(ids);
    expect(await stages()).toEqual(new Set(['queued']));
  });

  it('parks the whole queue if no new link opens', async () => {
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    await admitAll();
    await slow.rebind(ALICE, BOUND, 'down');
    expect(parts).toBeGreaterThan(2);
    expect(await stages()).toEqual(new Set(['admitted']));
  });
});
