/** Tests that a relay predicts the records of commands exactly as Lua computes them, for any sequence of acts. */
import { afterEach, describe, expect, it } from 'vitest';
import { createHeldCommands, heldCommand } from '../../src/backends/redis/commands/held.ts';
import { createRedisCommands } from '../../src/backends/redis/commands/store.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import type { End, Report } from '../../src/core/commands/stores.ts';
import { toJson } from '../../src/core/json.ts';
import { DEDUP_TTL_MS } from '../../src/core/limits.ts';
import { admission, ALICE, BOUND, ending, keyFor, openNode } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { everything } from './kit/redis-everything.ts';

const SEEDS = [1, 2];
const STEPS = 30;
const ACK = { kind: 'ack', payload: null, kept: null } as const;

/** Returns a generator of random numbers below `most`. The same seed gives the same numbers. */
function numbers(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % most;
  };
}

type Step = (bench: RedisBench) => unknown;

/**
 * Returns one act on a command. `pick` chooses the act and its details. `since` is the number of steps that came
 * before.
 */
function stepOf(pick: (most: number) => number, link: { epoch: number }, since: number): Step {
  // The acts choose between two commands. Every sixth step, a new command replaces the older of the two.
  const key = keyFor(`c${Math.floor(since / 6) + pick(2)}`);
  const { commandId } = key;
  const rpc = `rpc-${commandId}-${pick(3)}`;
  const waitFor = pick(3) === 0 ? 'acknowledged' : 'completed';
  const waiter = { rpcId: rpc, callerNodeId: 'n1', waitFor, withinMs: pick(2) === 0 ? null : 5_000 } as const;
  const instanceId = pick(8) === 0 ? 'i0' : 'i1';
  const params = pick(4) === 0 ? null : toJson({ n: pick(10) });
  const error = { code: 'no\u0001pe', message: 'a\nb' };
  const ends: readonly Partial<End>[] = [
    {},
    { payload: null },
    { kind: 'error', payload: null, error },
    { kind: 'cancelled', payload: null },
    { kind: 'error', payload: null, error: { ...error, code: 'refused' }, refused: true },
  ];
  const end = ending({ ...ends[pick(ends.length)], instanceId });
  const ack: Report = { instanceId, kind: pick(2) === 0 ? 'ack' : 'progress', payload: null, kept: null };
  const epoch = link.epoch;
  const attempt = String(pick(4));
  const acts: readonly (readonly [weight: number, step: Step])[] = [
    [6, ({ backend }) => backend.commands.admit(admission(commandId, { params, waiter, connectWithinMs: 9_000 }))],
    [6, ({ backend }) => backend.commands.dispatch(key, { ...BOUND, epoch }, attempt)],
    [5, ({ backend }) => backend.commands.finish(key, end)],
    [2, ({ backend }) => backend.commands.report(key, ack)],
    [1, ({ backend }) => backend.commands.settle(key, { kind: 'cancel', reason: 'enough', by: 'test' })],
    [1, ({ backend }) => backend.waiters.attach(key, { ...waiter, rpcId: `${rpc}-more` })],
    [1, ({ backend }) => backend.waiters.remove(key, rpc)],
    [1, (bench) => bench.advance(700)],
  ];
  if (pick(20) === 0) {
    link.epoch++;
    return ({ backend }) => backend.commands.rebind(ALICE, { ...BOUND, epoch: epoch + 1 }, 'up');
  }
  const bag = acts.flatMap(([weight, step]) => Array.from({ length: weight }, () => step));
  return bag[pick(bag.length)] ?? (() => null);
}

type Watched = { readonly bench: RedisBench; readonly predicted: Map<string, number> };

/** Opens a backend. `knows`: whether its command store keeps the records that arrive through the mailbox. */
async function opened(knows: boolean): Promise<Watched> {
  const predicted = new Map<string, number>();
  const held = createHeldCommands(knows ? undefined : 0);
  const bench = await redisBench({ partitions: 1, held });
  const act: Store['act'] = async (partition, name, args) => {
    const answer = await bench.store.act(partition, name, args);
    if (answer !== null) predicted.set(name, (predicted.get(name) ?? 0) + 1);
    return answer;
  };
  const commands = createRedisCommands({ ...bench.parts, held, store: { ...bench.store, act } });
  const watched = { ...bench, backend: { ...bench.backend, commands } };
  await openNode(watched);
  await commands.rebind(ALICE, BOUND, 'up');
  return { bench: watched, predicted };
}

describe('a record that the relay predicts', () => {
  const open: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of open.splice(0)) await bench.close();
  });

  it.each(SEEDS)('is the one that Lua computes, after each step of any sequence of acts (seed %i)', async (seed) => {
    const [known, unknown] = [await opened(true), await opened(false)];
    open.push(known.bench, unknown.bench);
    const pick = numbers(seed);
    const link = { epoch: BOUND.epoch };
    const random = Array.from({ length: STEPS }, (_, i) => stepOf(pick, link, i));
    const life: readonly Step[] = [
      ({ backend }) => backend.commands.admit(admission('life')),
      ({ backend }) => backend.commands.dispatch(keyFor('life'), { ...BOUND, epoch: link.epoch }, 'x'),
      ({ backend }) => backend.commands.report(keyFor('life'), { ...ACK, instanceId: 'i1' }),
      ({ backend }) => backend.commands.finish(keyFor('life'), ending()),
      ({ backend }) => backend.commands.finish(keyFor('life'), ending()),
    ];
    for (const step of [...random, ...life]) {
      expect(await step(known.bench)).toEqual(await step(unknown.bench));
      await known.bench.advance(1);
      await unknown.bench.advance(1);
      expect(await everything(known.bench)).toEqual(await everything(unknown.bench));
    }
    expect(unknown.predicted.get('commands-mark') ?? 0).toBe(0);
    expect(unknown.predicted.get('commands-end') ?? 0).toBe(0);
    expect(known.predicted.get('commands-mark')).toBeGreaterThan(0);
    expect(known.predicted.get('commands-end')).toBeGreaterThan(0);
  });

  it('changes nothing if the record has changed, another link is bound, or the command is due', async () => {
    const { bench, predicted } = await opened(true);
    open.push(bench);
    const { commands, waiters } = bench.backend;
    for (const id of ['moved', 'waited', 'linked', 'due']) await commands.admit(admission(id));
    await bench.advance(1);
    await commands.settle(keyFor('moved'), { kind: 'cancel', reason: null, by: 'test' });
    expect(await commands.dispatch(keyFor('moved'), BOUND)).toEqual({ kind: 'skip' });
    expect(await commands.dispatch(keyFor('linked'), { ...BOUND, epoch: 2 })).toEqual({ kind: 'skip' });
    expect(predicted.get('commands-mark') ?? 0).toBe(0);

    expect(await commands.dispatch(keyFor('waited'), BOUND)).toMatchObject({ kind: 'dispatch' });
    expect(predicted.get('commands-mark')).toBe(1);
    const more = { rpcId: 'more', callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;
    await waiters.attach(keyFor('waited'), more);
    expect(await commands.finish(keyFor('waited'), ending())).toMatchObject({ kind: 'finished' });
    expect(predicted.get('commands-end') ?? 0).toBe(0);
    expect(await waiters.ofCommands([keyFor('waited')])).toEqual([[]]);

    await bench.advance(30_000);
    expect(await commands.dispatch(keyFor('due'), BOUND)).toEqual({ kind: 'skip' });
    expect(predicted.get('commands-mark')).toBe(1);
  });

  it('counts a repeated end as a duplicate while the message is known, although it left no mark', async () => {
    const { bench } = await opened(true);
    open.push(bench);
    const { commands, dedup } = bench.backend;
    const counted = async () => {
      const { unique, duplicates } = await dedup.stats(3600);
      return [unique, duplicates];
    };
    await commands.admit(admission('c1'));
    await bench.advance(1);
    await commands.dispatch(keyFor('c1'), BOUND);
    await commands.finish(keyFor('c1'), ending());
    expect(await counted()).toEqual([1, 0]);
    await bench.advance(DEDUP_TTL_MS - 1);
    for (let i = 0; i < 2; i++) await commands.finish(keyFor('c1'), ending());
    expect(await counted()).toEqual([1, 2]);
    await bench.advance(1);
    await commands.finish(keyFor('c1'), ending());
    expect(await counted()).toEqual([2, 2]);
  });

  it('is kept only within the bounds; a command whose record is not kept is still dispatched and ended', async () => {
    const held = createHeldCommands(2);
    const known = heldCommand({ state: 's', request: 'a', waits: '', params: 'p' });
    for (const id of ['c1', 'c2', 'c3']) held.put(keyFor(id), known);
    expect(['c1', 'c2', 'c3'].map((id) => held.get(keyFor(id)))).toEqual([undefined, known, known]);
    held.drop(keyFor('c2'));
    held.put(keyFor('c4'), { ...known, params: 'x'.repeat(40 * 1024 * 1024) });
    expect(['c3', 'c4'].map((id) => held.get(keyFor(id)))).toEqual([undefined, undefined]);

    const { bench } = await opened(true);
    open.push(bench);
    const { commands } = bench.backend;
    const params = toJson('x'.repeat(10_000));
    await commands.admit(admission('large', { params }));
    await bench.advance(1);
    expect(await commands.dispatch(keyFor('large'), BOUND)).toMatchObject({ kind: 'dispatch', params });
    expect(await commands.finish(keyFor('large'), ending())).toMatchObject({ kind: 'finished' });
  });
});
