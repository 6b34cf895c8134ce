/** Tests the limits of rates: what they grant, how long they refuse, and what steps of the wall clock change (nothing). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateTable, SlidingWindow, TokenBucket } from '../../src/core/rates.ts';
import { FakeClock } from '../kit/clock.ts';

/** One thing that happens to a rate: a take, elapsed time, or a step of the wall clock by up to two hours. */
type Act = { readonly kind: 'take' } | { readonly kind: 'advance' | 'step'; readonly ms: number };

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant('take' as const) }),
  fc.record({ kind: fc.constant('take' as const) }),
  fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 700 }) }),
  fc.record({ kind: fc.constant('step' as const), ms: fc.integer({ min: -7_200_000, max: 7_200_000 }) }),
);

/** Runs the acts. Returns when each take was granted, in elapsed milliseconds, and how long each refusal was to last. */
async function run(acts: readonly Act[], clock: FakeClock, take: () => number) {
  const granted: number[] = [];
  const waits: number[] = [];
  for (const one of acts) {
    if (one.kind === 'advance') await clock.advance(one.ms);
    else if (one.kind === 'step') clock.stepWall(one.ms);
    else {
      const wait = take();
      if (wait === 0) granted.push(clock.monotonic());
      else waits.push(wait);
    }
  }
  return { granted, waits };
}

function quickClock(): FakeClock {
  const clock = new FakeClock();
  clock.alsoAwaits(async () => {});
  return clock;
}

/** Returns the most of these times that lie within any span of `ms` milliseconds. */
function mostWithin(times: readonly number[], ms: number): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + ms).length));
}

describe('a token bucket', () => {
  const rate = { perSecond: 4, burst: 3 };

  it('grants its burst, then its rate, and says how long to wait', async () => {
    const clock = quickClock();
    const bucket = new TokenBucket(clock, rate);
    expect([bucket.take(), bucket.take(), bucket.take(), bucket.take()]).toEqual([0, 0, 0, 250]);
    await clock.advance(249);
    expect(bucket.take()).toBe(1);
    await clock.advance(1);
    expect(bucket.take()).toBe(0);
    expect([bucket.take(), bucket.refused]).toEqual([250, 3]);
    await clock.advance(750);
    expect([bucket.full, bucket.refused]).toEqual([true, 0]);
  });

  it('keeps to its rate and never refuses for longer than a token takes, after any steps of the wall clock', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 80 }), async (acts) => {
        const clock = quickClock();
        const bucket = new TokenBucket(clock, rate);
        const { granted, waits } = await run(acts, clock, () => bucket.take());
        expect(Math.max(0, ...waits)).toBeLessThanOrEqual(250);
        for (const ms of [250, 1_000, 2_000])
          expect(mostWithin(granted, ms)).toBeLessThanOrEqual(rate.burst + (ms * rate.perSecond) / 1000);
        await clock.advance(bucket.take());
        expect(bucket.take()).toBeLessThanOrEqual(250);
        await clock.advance(750);
        expect(bucket.full).toBe(true);
      }),
    );
  });

  it('names the exact wait: a token is granted then, and not a millisecond before', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
        const clock = quickClock();
        const bucket = new TokenBucket(clock, rate);
        await run(acts, clock, () => bucket.take());
        const wait = bucket.take();
        fc.pre(wait > 0);
        clock.stepWall(-3_600_000);
        await clock.advance(wait - 1);
        expect(bucket.take()).toBe(1);
        await clock.advance(1);
        expect(bucket.take()).toBe(0);
      }),
    );
  });

  it('lets a debt grow and be paid', async () => {
    const clock = quickClock();
    const bucket = new TokenBucket(clock, rate);
    expect([bucket.charge(3), bucket.admit(4), bucket.admit(1)]).toEqual([0, 0, 1_000]);
    clock.stepWall(3_600_000);
    expect(bucket.admit(1)).toBe(1_000);
    await clock.advance(1_000);
    expect(bucket.admit(1)).toBe(0);
    expect(bucket.charge(-1)).toBe(0);
  });
});

describe('a sliding window', () => {
  const rate = { most: 3, ms: 1_000 };

  it('grants as many as it may in any span, and then says when the oldest leaves it', async () => {
    const clock = quickClock();
    const window = new SlidingWindow(clock, rate);
    expect([window.take(), window.take()]).toEqual([0, 0]);
    await clock.advance(400);
    expect([window.take(), window.waitMs, window.take()]).toEqual([0, 600, 600]);
    await clock.advance(600);
    expect([window.waitMs, window.take(), window.take(), window.take()]).toEqual([0, 0, 0, 400]);
  });

  it('keeps to that, and never refuses for longer than its span, after any steps of the wall clock', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 80 }), async (acts) => {
        const clock = quickClock();
        const window = new SlidingWindow(clock, rate);
        const { granted, waits } = await run(acts, clock, () => window.take());
        expect(mostWithin(granted, rate.ms)).toBeLessThanOrEqual(rate.most);
        expect(Math.max(0, ...waits)).toBeLessThanOrEqual(rate.ms);
        const wait = window.waitMs;
        if (wait > 1) await clock.advance(wait - 1);
        if (wait > 1) expect(window.take()).toBe(1);
        await clock.advance(1);
        expect(window.take()).toBe(0);
      }),
    );
  });
});

describe('a table of rates', () => {
  it('has one for each name, and forgets the one that was not used for longest', () => {
    const clock = quickClock();
    const table = new RateTable(2, () => new TokenBucket(clock, { perSecond: 1, burst: 1 }));
    const names = ['a', 'b', 'a', 'c', 'a', 'b'];
    expect(names.map((name) => table.of(name).take() === 0)).toEqual([true, true, false, true, false, true]);
    expect([table.find('c'), table.find('b')?.take()]).toEqual([undefined, 1_000]);
  });
});
