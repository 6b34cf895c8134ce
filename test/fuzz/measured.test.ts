/**
 * Tests two tools of hostile runs: the clock that controls a relay, and the meter that measures turns of its event
 * loop.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { SteppedClock } from '../../faults/lib/stepped-clock.ts';
import { createTurnMeter } from '../../faults/lib/cost-probe.ts';

/** Uses this much CPU time on this thread. */
function burn(ms: number): void {
  const spent = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  for (const from = spent(); spent() - from < ms;);
}

test('the turn meter records the longest turn, and resets when it is read', async () => {
  const meter = createTurnMeter();
  meter.take();
  setTimeout(() => burn(150), 1);
  await new Promise((done) => setTimeout(done, 20));
  await turn();
  expect(meter.take().worstMs).toBeGreaterThanOrEqual(150);
  await turn();
  expect(meter.take().worstMs).toBeLessThan(150);
});

test('the stepped clock does not advance by itself, and runs due timers in order of time', async () => {
  const clock = new SteppedClock(1_000);
  const seen: string[] = [];
  const note = (name: string) => () => void seen.push(`${name} ${clock.now()}`);
  clock.after(30, note('third'));
  clock.after(10, note('first'));
  clock.after(10, note('second'));
  clock.after(5, note('cancelled'))();
  const stop = clock.every(20, note('every'));
  await clock.advance(9);
  expect(seen).toEqual([]);
  await clock.advance(31);
  stop();
  await clock.advance(100);
  expect(seen).toEqual(['first 1010', 'second 1010', 'every 1020', 'third 1030', 'every 1040']);
  expect(clock.now()).toBe(1_140);
});

test('each timer of the stepped clock runs in a turn of its own', async () => {
  const meter = createTurnMeter();
  const clock = new SteppedClock(0);
  for (let i = 0; i < 5; i++) clock.after(1, () => burn(30));
  meter.take();
  await clock.advance(1);
  expect(meter.take().worstMs).toBeLessThan(100);
});
