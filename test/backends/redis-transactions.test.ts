/** Tests transactions over Redis beyond their contracts: lost answers, clocks that differ, and their order in a call. */
import { afterEach, describe, expect, it } from 'vitest';
import { createRedisCommands } from '../../src/backends/redis/commands/store.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import { createRedisWaiters } from '../../src/backends/redis/waiters.ts';
import type { Backend } from '../../src/core/backend.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { CALLER, admission, ALICE, BOUND, ending, keyFor, openNode, read } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench, type RedisBenchOptions } from '../contract/kit/redis-bench.ts';
import { REPORT } from './kit/test-node.ts';

const HOUR = 3600_000;
const KEY = keyFor('c1');
const WAIT = { rpcId: 'more', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;

type Ports = Pick<Backend, 'commands' | 'waiters'>;
type Act = (ports: Ports) => unknown;
/** The life of a command: each act, and what a repetition of it answers if the first one got no answer. */
const LIFE: readonly (readonly [name: string, act: Act, again: object])[] = [
  [
    'an admission',
    ({ commands }) => commands.admit(admission('c1', { chosenId: true })),
    { kind: 'attached', command: { version: 1 } },
  ],
  ['a dispatch', ({ commands }) => commands.dispatch(KEY, BOUND, 'a'), { kind: 'dispatch', command: { attempts: 1 } }],
  [
    'an acknowledgement',
    ({ commands }) => commands.report(KEY, { instanceId: 'i1', kind: 'ack', payload: null, kept: null }),
    { kind: 'ignored', command: { stage: 'acknowledged' } },
  ],
  ['a wait', ({ waiters }) => waiters.attach(KEY, WAIT), { kind: 'waiting', waiter: { rpcId: 'more' } }],
  [
    'a cancel',
    ({ commands }) => commands.settle(KEY, { kind: 'cancel', reason: null, by: 'test' }),
    { kind: 'requested', command: { version: 4 } },
  ],
  ['an end', ({ commands }) => commands.finish(KEY, ending()), { kind: 'duplicate', command: { version: 6 } }],
];

describe('transactions over Redis', () => {
  const opened: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of opened.splice(0)) await bench.close();
  });
  const open = async (options: RedisBenchOptions = {}): Promise<RedisBench> => {
    const bench = await redisBench({ partitions: 1, ...options });
    opened.push(bench);
    await openNode(bench);
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    return bench;
  };

  it('register what a command needs, although an earlier call that registered it was not applied', async () => {
    const bench = await open();
    const held = Promise.withResolvers<void>();
    let [holdsNext, isHeld] = [false, false];
    const transact: Store['transact'] = async (...call) => {
      if (!holdsNext) return bench.store.transact(...call);
      [holdsNext, isHeld] = [false, true];
      // As if the relay's time had been too far behind.
      await held.promise;
      return ['CLOCK', String(bench.clock.now())];
    };
    const commands = createRedisCommands({ ...bench.parts, store: { ...bench.store, transact } });
    // The stream is open, but the spans of the next hour are not.
    await bench.advance(HOUR - 100);
    expect(await commands.admit(admission('c0', { connectWithinMs: 5_000 }))).toMatchObject({ kind: 'admitted' });
    await bench.advance(200);
    holdsNext = true;
    const first = commands.admit(admission('c1', { chosenId: true, connectWithinMs: 5_000 }));
    await expect.poll(() => isHeld).toBe(true);
    const second = admission('c2', { chosenId: true, connectWithinMs: 5_000 });
    expect(await commands.admit(second)).toMatchObject({ kind: 'admitted' });
    expect(await bench.audit()).toEqual([]);
    held.resolve();
    expect(await first).toMatchObject({ kind: 'admitted' });
    expect(await bench.audit()).toEqual([]);
  });

  it('give the first answer again, or say that the act was done, if the first answer was lost', async () => {
    const bench = await open();
    const transact: Store['transact'] = async (...call) => {
      const answer = await bench.store.transact(...call);
      // An act that did not pass is sent again.
      if (answer.length > 4) return answer;
      throw new CallboardError('store_unavailable', 'No answer.');
    };
    const parts = { ...bench.parts, store: { ...bench.store, transact } };
    const unanswered = { commands: createRedisCommands(parts), waiters: createRedisWaiters(parts) };
    for (const [name, act, again] of LIFE) {
      await expect(act(unanswered), name).rejects.toThrow('No answer');
      expect(await act(bench.backend), name).toMatchObject(again);
    }
    expect(await read(bench, 'c1')).toMatchObject({ stage: 'terminal', outcome: 'completed', attempts: 1 });
    expect((await bench.backend.inspector.scopes({ first: 10, after: null })).rows).toEqual([]);
  });

  it.each([
    ['far behind', -400, 0],
    ['a little behind', -200, -200],
    ['a little ahead', 900, 900],
    ['far ahead', 5_000, 0],
  ])('write the time of the relay if its clock is near that of Redis (%s)', async (_how, aheadMs, written) => {
    const bench = await open({ aheadMs });
    await bench.backend.commands.admit(admission('c1'));
    expect((await read(bench, 'c1')).admittedAt).toBe(bench.now() + written);
  });

  it('decide deadlines by the time of Redis', async () => {
    const bench = await open({ aheadMs: 900 });
    const { commands } = bench.backend;
    await commands.admit(admission('c1', { connectWithinMs: 0, respondWithinMs: 5_000 }));
    const { deadline } = await read(bench, 'c1');
    await bench.advance(deadline - bench.now() - 1);
    expect(await commands.settle(KEY, { kind: 'expire' })).toMatchObject({ kind: 'unchanged' });
    await bench.advance(1);
    expect(await commands.settle(KEY, { kind: 'expire' })).toMatchObject({ kind: 'settled' });
  });

  it('decide leases by the time of Redis, also just before they end by the clock of the relay', async () => {
    const leaseMs = 10_000;
    const bench = await open({ aheadMs: -200, leaseMs });
    await bench.advance(leaseMs + 100);
    const request = admission('c1', { connectWithinMs: 0 });
    expect(await bench.backend.commands.admit(request)).toEqual({ kind: 'refused', code: 'not_connected' });
  });

  it('queue a command on a link whose node renewed its lease while the command was being admitted', async () => {
    const leaseMs = 10_000;
    const bench = await open({ leaseMs });
    await bench.advance(leaseMs);
    const isDecided = Promise.withResolvers<void>();
    const isRenewed = Promise.withResolvers<void>();
    const transact: Store['transact'] = async (...call) => {
      isDecided.resolve();
      await isRenewed.promise;
      return bench.store.transact(...call);
    };
    const commands = createRedisCommands({ ...bench.parts, store: { ...bench.store, transact } });
    const admitted = commands.admit(admission('c1', { connectWithinMs: 5_000 }));
    await isDecided.promise;
    await bench.backend.nodes.beat('n1', REPORT);
    await bench.backend.commands.rebind(ALICE, BOUND, 'again');
    isRenewed.resolve();
    expect(await admitted).toMatchObject({ kind: 'admitted', command: { stage: 'queued' } });
    expect(await bench.backend.commands.dispatch(KEY, BOUND)).toMatchObject({ kind: 'dispatch' });
  });

  it('decide leases by the time of Redis, also just after they end by the clock of the relay', async () => {
    const leaseMs = 10_000;
    const bench = await open({ aheadMs: 200, leaseMs });
    await bench.advance(leaseMs - 100);
    const request = admission('c1', { connectWithinMs: 5_000 });
    expect(await bench.backend.commands.admit(request)).toMatchObject({ command: { stage: 'queued' } });
  });

  it('pass in the order of their requests, as far as a limit allows', async () => {
    const bench = await open();
    const ids = Array.from({ length: 9 }, (_, i) => `c${i}`);
    const answers = await Promise.all(ids.map((id) => bench.backend.commands.admit(admission(id, { scopeLimit: 4 }))));
    expect(answers.map(({ kind }) => kind)).toEqual([...Array(4).fill('admitted'), ...Array(5).fill('refused')]);
  });
});
