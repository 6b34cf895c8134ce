/** Tests acts that must reach each part of the store, some of which do not answer. */
import { describe, expect, it } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { silentLog } from '../../src/core/ports.ts';
import { inEachPart, type PartsAct } from '../../src/core/store-parts.ts';
import { FakeClock } from '../kit/clock.ts';
import { testCore, user } from '../kit/core.ts';

/** An act in two parts, of which the second is silent until a test lets it answer. */
async function bench() {
  await using core = await testCore();
  const { backend } = core;
  const clock = new FakeClock();
  const closing = new AbortController();
  const world = { isSilent: true, isOver: false };
  const reached: number[] = [];
  const pauses = { ...backend.pauses, parts: () => [0, 1], deciderOf: (part: number) => `node-${part}` };
  const deps = { backend: { pauses }, clock, log: silentLog, closed: closing.signal };
  const run = (more: Pick<PartsAct, 'missing'> = {}) =>
    inEachPart(deps, {
      ...more,
      userId: null,
      isOver: () => world.isOver,
      failure: 'the act failed',
      async act(part) {
        reached.push(part);
        if (part === 1 && world.isSilent) throw new CallboardError('store_unavailable', 'The owner does not answer.');
      },
    });
  return { clock, closing, world, reached, run };
}

describe('an act in each part of the store', () => {
  it('names who does not answer, and is tried there again until there is an answer', async () => {
    const { clock, world, reached, run } = await bench();
    expect(await run()).toEqual({ partial: true, silent: ['node-1'] });
    await clock.advance(2_500);
    expect(reached).toEqual([0, 1, 1, 1]);
    world.isSilent = false;
    await clock.advance(60_000);
    expect(reached).toEqual([0, 1, 1, 1, 1]);
  });

  it('is not waited for where an earlier one had no answer, and is tried there afterwards', async () => {
    const { clock, world, reached, run } = await bench();
    const missing = new Set<number>();
    await run({ missing });
    expect([...missing]).toEqual([1]);
    world.isOver = true;
    await clock.advance(1_000);
    world.isOver = false;
    reached.length = 0;
    expect(await run({ missing })).toEqual({ partial: true, silent: ['node-1'] });
    expect(reached).toEqual([0]);
    await clock.advance(1_500);
    expect(reached).toEqual([0, 1]);
  });

  it('is tried no more once it is over', async () => {
    const { clock, world, reached, run } = await bench();
    await run();
    world.isOver = true;
    await clock.advance(60_000);
    expect(reached).toEqual([0, 1]);
  });

  it('is tried no more once core is closed', async () => {
    const { clock, closing, reached, run } = await bench();
    await run();
    closing.abort();
    await clock.advance(60_000);
    expect(reached).toEqual([0, 1]);
  });
});

describe('core', () => {
  it('tries no pause again after it was closed', async () => {
    let tries = 0;
    const test = await testCore({
      wrap: ({ pauses, ...backend }) => ({
        ...backend,
        pauses: {
          ...pauses,
          keep() {
            tries++;
            throw new CallboardError('store_unavailable', 'The store does not answer.');
          },
        },
      }),
    });
    expect(await test.core.pauses.pause(user('alice'), { all: true, reason: 'stop' })).toMatchObject({ partial: true });
    await test.clock.advance(2_500);
    const before = tries;
    expect(before).toBeGreaterThan(1);
    await test.core.close();
    await test.clock.advance(60_000);
    expect(tries).toBe(before);
  });

  it('takes a pause without room back where nothing was answered yet, and does not keep it there any more', async () => {
    const acts: string[] = [];
    let isSilent = true;
    const of = (name: string, part: number): void => {
      if (part === 1 && isSilent) throw new CallboardError('store_unavailable', 'The owner does not answer.');
      acts.push(`${name} ${part}`);
    };
    await using test = await testCore({
      wrap: ({ pauses, ...backend }) => ({
        ...backend,
        pauses: {
          ...pauses,
          parts: () => [0, 1],
          keep(part) {
            of('keep', part);
            return 'full';
          },
          lift(part) {
            of('lift', part);
            return null;
          },
        },
      }),
    });
    const refused = test.core.pauses.pause(user('alice'), { all: true, reason: 'stop' });
    await expect(refused).rejects.toThrow('There are too many pauses');
    expect(acts).toEqual(['keep 0', 'lift 0']);
    isSilent = false;
    await test.clock.advance(60_000);
    expect(acts).toEqual(['keep 0', 'lift 0', 'lift 1']);
  });
});
