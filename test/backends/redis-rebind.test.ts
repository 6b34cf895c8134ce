/** Tests that long queues in Redis are moved in parts when a link opens or closes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MOVED_AT_ONCE } from '../../src/backends/redis/commands/link-transaction.ts';
import { createRedisCommands } from '../../src/backends/redis/commands/store.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import type { CommandStore } from '../../src/core/commands/command-store.ts';
import { admission, ALICE, BOUND, keyFor, openNode, read } from '../contract/kit/bench.ts';
import { hello } from '../contract/kit/connections-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const WAITING = 250;
const ids = Array.from({ length: WAITING }, (_, i) => `c${i}`);

describe('a link that opens or closes before a long queue', () => {
  let bench: RedisBench;
  /**
   * A command store that calls `between` each time before it reads the link of a client whose queue moves, except the
   * first time: before each part of a long queue. It calls `before` each time before it writes.
   */
  let slow: CommandStore;
  let between: (part: number) => Promise<void>;
  let before: () => Promise<void>;
  let parts: number;
  beforeEach(async () => {
    bench = await redisBench();
    between = async () => {};
    before = async () => {};
    parts = 0;
    const read: Store['read'] = async (commands) => {
      if (commands[0]?.[0] === 'HGET' && commands[0][2] === 'b' && parts++ > 0) await between(parts);
      return bench.store.read(commands);
    };
    const transact: Store['transact'] = async (...call) => {
      await before();
      return bench.store.transact(...call);
    };
    slow = createRedisCommands({ ...bench.parts, store: { ...bench.store, read, transact } });
  });
  afterEach(() => bench.close());
  const admit = (id: string) =>
    bench.backend.commands.admit(admission(id, { scopeLimit: 5_000, connectWithinMs: 60_000 }));
  /** The first command opens the stream: acts that wait for that would be overtaken by those of later calls. */
  const admitAll = async (): Promise<void> => {
    await admit('c0');
    await Promise.all(ids.slice(1).map(admit));
  };
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
    between = async (part) => {
      // The first act binds the client, and the second one moves the first part.
      if (part !== 3) return;
      expect(await bench.backend.commands.rebind(ALICE, binding, 'up')).toMatchObject({ requeued: MOVED_AT_ONCE });
    };
    await slow.rebind(ALICE, BOUND, 'up');
    expect(await reported(old)).toEqual(ids.slice(0, MOVED_AT_ONCE));
    expect(await reported(newer)).toEqual(ids);
    expect(await bench.backend.commands.dispatch(keyFor('c249'), binding)).toMatchObject({ kind: 'dispatch' });
  });

  it('queues for a newer link what a closing link has parked already, and what it has not', async () => {
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    await admitAll();
    const node = await openNode(bench, 'n2');
    between = async (part) => {
      if (part !== 3) return;
      expect(await stages()).toEqual(new Set(['admitted', 'queued']));
      await bench.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'n2', epoch: 2 }, 'up');
    };
    await slow.rebind(ALICE, BOUND, 'down');
    expect(await reported(node)).toEqual(ids);
    expect(await stages()).toEqual(new Set(['queued']));
  });

  it.each([1, MOVED_AT_ONCE + 1])('loses no command that is admitted while %i commands are moved', async (waiting) => {
    const node = await openNode(bench);
    const all = ids.slice(0, waiting);
    await Promise.all(all.map(admit));
    let admitted = 0;
    before = async () => {
      if (admitted < 3) await admit(`later-${admitted++}`);
    };
    await slow.rebind(ALICE, BOUND, 'up');
    expect(await reported(node)).toEqual([...all, 'later-0', 'later-1', 'later-2']);
    for (const id of ['c0', 'later-0', 'later-2']) expect(await read(bench, id)).toMatchObject({ stage: 'queued' });
  });

  it('moves no command that ended, and none that another link has dispatched, after the queue was read', async () => {
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    for (const id of ['c0', 'c1', 'c2']) await admit(id);
    const node = await openNode(bench, 'n2');
    before = async () => {
      before = async () => {};
      await bench.backend.commands.dispatch(keyFor('c0'), BOUND, 'a');
      await bench.backend.commands.settle(keyFor('c1'), { kind: 'cancel', reason: null, by: 'test' });
    };
    const moved = await slow.rebind(ALICE, { ...BOUND, nodeId: 'n2', epoch: 2 }, 'up');
    expect(moved).toMatchObject({ requeued: 1, unfinished: [{ commandId: 'c0', stage: 'dispatched' }], orphaned: [] });
    expect(await reported(node)).toEqual(['c2']);
    expect(await read(bench, 'c1')).toMatchObject({ stage: 'terminal', outcome: 'cancelled' });
  });

  it('moves the others of a part in which a command ended after the part was read', async () => {
    const node = await openNode(bench);
    await admitAll();
    before = async () => {
      // The first act binds the client.
      if (parts < 2) return;
      before = async () => {};
      await bench.backend.commands.settle(keyFor('c1'), { kind: 'cancel', reason: null, by: 'test' });
    };
    await slow.rebind(ALICE, BOUND, 'up');
    expect(await reported(node)).toEqual(ids.filter((id) => id !== 'c1'));
  });

  it('ends all commands of a long queue that were queued for an instance that was replaced', async () => {
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    const named = (id: string) =>
      bench.backend.commands.admit(admission(id, { scopeLimit: 5_000, namedInstanceId: 'i1' }));
    await Promise.all(ids.map(named));
    await slow.rebind(ALICE, { ...BOUND, instanceId: 'i2', epoch: 2 }, 'up');
    expect(parts).toBeGreaterThan(2);
    expect(await stages()).toEqual(new Set(['terminal']));
    expect(await read(bench, 'c249')).toMatchObject({ outcome: 'expired', error: { code: 'instance_replaced' } });
    expect(await bench.backend.commands.loads([ALICE])).toEqual([{ inFlight: 0, queued: 0 }]);
    expect(await bench.audit()).toEqual([]);
  });

  it('leaves a client to a newer link that came up after the queue was read', async () => {
    before = async () => {
      before = async () => {};
      await bench.backend.commands.rebind(ALICE, { ...BOUND, nodeId: 'n2', epoch: 2 }, 'up');
    };
    await slow.rebind(ALICE, BOUND, 'up');
    await admit('c0');
    expect(await read(bench, 'c0')).toMatchObject({ stage: 'queued', nodeId: 'n2' });
  });

  it('sends no act on a client in one call with a move of its queue', async () => {
    const node = await openNode(bench);
    // The stream of the client's messages is open, so no act is repeated. And both acts below read in one round trip, so
    // they are decided in the same tick.
    await admit('before');
    await bench.backend.commands.settle(keyFor('before'), { kind: 'cancel', reason: null, by: 'test' });
    const { commands } = bench.backend;
    const request = admission('c0', { connectWithinMs: 60_000, chosenId: false });
    await Promise.all([commands.rebind(ALICE, BOUND, 'up'), commands.admit(request)]);
    expect(await read(bench, 'c0')).toMatchObject({ stage: 'queued', nodeId: 'n1' });
    expect(await reported(node)).toEqual(['c0']);
  });

  it('takes one round trip after the connection, if no command waits', async () => {
    const { commands, connections } = bench.backend;
    const tripsOf = async (move: () => unknown): Promise<number> => {
      const before = bench.store.roundTrips;
      await move();
      return bench.store.roundTrips - before;
    };
    const { connection } = await connections.connect(hello('alice', 'tab'));
    const { nodeId, instanceId, epoch } = connection;
    const binding = { nodeId, instanceId, epoch };
    expect(await tripsOf(() => commands.rebind(connection, binding, 'up'))).toBe(1);
    expect(await commands.admit(admission('c0', { seen: connection }))).toMatchObject({ kind: 'admitted' });
    await commands.settle(keyFor('c0'), { kind: 'cancel', reason: null, by: 'test' });
    await connections.disconnect(connection, epoch, 'client_closed');
    expect(await tripsOf(() => commands.rebind(connection, binding, 'down'))).toBe(1);
    expect(await commands.admit(admission('c1'))).toMatchObject({ kind: 'refused', code: 'not_connected' });
  });

  it('parks the whole queue if no new link opens', async () => {
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    await admitAll();
    await slow.rebind(ALICE, BOUND, 'down');
    expect(parts).toBeGreaterThan(2);
    expect(await stages()).toEqual(new Set(['admitted']));
  });
});
