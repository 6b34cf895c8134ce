/** Functions that move the clock of the tests, and wait until ready work has run. */
import type { Cancel } from '../../src/core/ports.ts';
import { TestClock as FakeClock, turns } from '../../src/testing/clock.ts';

export { FakeClock, turns };

/** Moves the clock in steps of `stepMs` until the promise settles. Tests need it for code that polls with timers. */
export async function meanwhile<T>(clock: FakeClock, awaited: Promise<T>, stepMs = 10): Promise<T> {
  let over = false;
  const done = (): void => void (over = true);
  awaited.then(done, done);
  while (!over) await clock.advance(stepMs);
  return awaited;
}

const outside = new Set<() => Promise<void>>();

/**
 * Makes `settle` also wait for `quiet`, until the returned function is called, for tests that wait for work outside
 * this process.
 */
export function alsoSettles(quiet: () => Promise<void>): Cancel {
  outside.add(quiet);
  return () => void outside.delete(quiet);
}

/** Lets all ready work run, in this process and in the stores that tests of this process have opened. */
export async function settle(): Promise<void> {
  await turns();
  for (const quiet of [...outside]) await quiet();
}
