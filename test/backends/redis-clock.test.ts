/** Tests a relay's estimate of the time of the store, and how exact the estimate is. */
import { describe, expect, it } from 'vitest';
import { createStoreClock } from '../../src/backends/redis/store-clock.ts';
import { silentLog } from '../../src/core/ports.ts';
import { FakeClock } from '../kit/clock.ts';

/**
 * Opens the clock of a store. Requests to the store take `there` ms, and its answers take `back` ms. The relay's own
 * monotonic clock starts at 0.
 */
async function bench(over: { ahead?: number; there?: number; back?: number } = {}) {
  const system = new FakeClock();
  const world = { ahead: 5_000, there: 10, back: 10, ticks: 0, away: false, ...over };
  const store = (): number => system.now() + world.ahead;
  const clock = await createStoreClock({
    system,
    log: silentLog,
    monotonic: () => system.now() - Date.UTC(2026, 0, 1) + world.ticks,
    async read() {
      if (world.away) throw new Error('away');
      world.ticks += world.there;
      const time = store() + world.ticks;
      world.ticks += world.back;
      return time;
    },
  });
  return { clock, system, world, now: () => store() + world.ticks };
}

describe('the clock of the store', () => {
  it('follows the store, whatever the local clock shows', async () => {
    const { clock, now, system } = await bench({ ahead: -3_600_000 });
    expect(clock.now()).toBe(now());
    expect(clock.ahead()).toBe(-3_600_000 + 20);
    await system.advance(1_234);
    expect(clock.now()).toBe(now());
  });

  it('is off by at most half a round trip', async () => {
    const { clock, now } = await bench({ there: 400, back: 0 });
    expect(Math.abs(clock.now() - now())).toBe(200);
  });

  it('is measured every 2 s, as precisely as the round trip allows', async () => {
    const { clock, system, world, now } = await bench({ there: 0, back: 0 });
    world.ahead += 300;
    expect(clock.now()).toBe(now() - 300);
    await system.advance(2_000);
    expect(clock.now()).toBe(now());
    Object.assign(world, { there: 0, back: 1_000 });
    await system.advance(2_000);
    // From the slow answer alone, the difference could be any value from 0 to 500 ms.
    expect(clock.now()).toBe(now());
  });

  it('continues from the last measurement when the store returns no time', async () => {
    const { clock, system, world, now } = await bench();
    world.ahead = Number.NaN;
    await system.advance(2_000);
    world.ahead = 5_000;
    expect(clock.now()).toBe(now());
  });

  it('never goes backwards', async () => {
    const { clock, system, world, now } = await bench({ there: 0, back: 0 });
    const before = clock.now();
    world.ahead -= 60_000;
    await system.advance(2_000);
    expect(now()).toBeLessThan(before);
    expect(clock.now()).toBeGreaterThanOrEqual(before);
    await system.advance(60_000);
    expect(clock.now()).toBe(now());
  });

  it('continues while the store is unavailable, and uses the local timers', async () => {
    const { clock, system, world, now } = await bench({ there: 0, back: 0 });
    world.away = true;
    let fired = 0;
    clock.every(1_000, () => fired++);
    await system.advance(10_000);
    expect(clock.now()).toBe(now());
    expect(fired).toBe(10);
    clock.stop();
    world.away = false;
    world.ahead += 1_000;
    await system.advance(10_000);
    expect(clock.now()).toBe(now() - 1_000);
  });

  it('is not available before the first answer of the store', async () => {
    const system = new FakeClock();
    const read = () => Promise.reject(new Error('away'));
    await expect(createStoreClock({ system, log: silentLog, read })).rejects.toThrow('away');
  });
});
