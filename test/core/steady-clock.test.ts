/** Tests the clock of a store in memory: a step of the wall clock makes no duration longer or shorter. */
import { describe, expect, test } from 'vitest';
import { steadyClock } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';

const HOUR = 3_600_000;

describe('a steady clock', () => {
  test('shows the wall clock as long as that is not stepped', async () => {
    const system = new FakeClock();
    const clock = steadyClock(system);
    for (let i = 0; i < 100; i++) {
      await system.advance(997);
      // Small corrections, such as those of a time server, are followed at once.
      if (i % 10 === 0) system.stepWall(40);
      expect(clock.now()).toBe(system.now());
    }
  });

  test.each([HOUR, -HOUR])('goes on through a step of %i ms, and approaches it slowly', async (step) => {
    const system = new FakeClock();
    const clock = steadyClock(system);
    const before = clock.now();
    system.stepWall(step);
    expect(clock.now()).toBe(before);
    let last = before;
    for (let second = 1; second <= 60; second++) {
      await system.advance(1_000);
      const now = clock.now();
      expect(now).toBeGreaterThan(last);
      expect(Math.abs(now - before - second * 1_000)).toBeLessThanOrEqual(second * 10 + 1);
      last = now;
    }
    expect(Math.sign(last - before - 60_000)).toBe(Math.sign(step));
    for (let hour = 0; hour < 110; hour++) {
      await system.advance(HOUR);
      clock.now();
    }
    expect(clock.now()).toBe(system.now());
  });

  test('never goes back, whatever the wall clock does', async () => {
    const system = new FakeClock();
    const clock = steadyClock(system);
    let last = clock.now();
    for (let i = 0; i < 1_000; i++) {
      await system.advance(i % 7);
      system.stepWall(((i * 7919) % 301) - 150);
      const now = clock.now();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });
});
