/** Tests timers for times that are too far away for one timer of Node. */
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/core/ports.ts';
import { atTime } from '../../src/web/sse.ts';
import { FakeClock } from '../kit/clock.ts';

const DAY_MS = 24 * 3600_000;

describe('a deadline', () => {
  it('runs at its time, however far away, with timers that Node can represent', async () => {
    const clock = new FakeClock();
    const waits: number[] = [];
    const watched: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      every: (ms, run) => clock.every(ms, run),
      after: (ms, run) => (waits.push(ms), clock.after(ms, run)),
    };
    let fired = 0;
    atTime(watched, clock.now() + 60 * DAY_MS, () => fired++);
    await clock.advance(60 * DAY_MS - 1);
    expect(fired).toBe(0);
    await clock.advance(1);
    expect(fired).toBe(1);
    expect(waits.length).toBeGreaterThan(1);
    expect(Math.max(...waits)).toBeLessThan(2 ** 31);
  });

  it('that has passed runs at once, and a cancelled one never', async () => {
    const clock = new FakeClock();
    const fired: string[] = [];
    atTime(clock, clock.now() - 5, () => void fired.push('past'));
    const cancel = atTime(clock, clock.now() + 60 * DAY_MS, () => void fired.push('cancelled'));
    await clock.advance(40 * DAY_MS);
    cancel();
    await clock.advance(40 * DAY_MS);
    expect(fired).toEqual(['past']);
  });
});
