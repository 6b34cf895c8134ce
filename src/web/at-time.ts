/** Runs a function at a wall-clock time, which may be further away than the longest delay of a Node timer. */
import type { Cancel, Clock } from '../core/clock.ts';

/** The longest delay that a Node timer accepts, in milliseconds. A timer with a longer delay fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls `run` at this wall time (epoch milliseconds), however far away, or as soon as possible if it has passed. */
export function atTime(clock: Clock, epochMs: number, run: () => void): Cancel {
  let cancel: Cancel = () => {};
  const arm = (): void => {
    const left = Math.max(0, epochMs - clock.now());
    cancel = left > LONGEST_MS ? clock.after(LONGEST_MS, arm) : clock.after(left, run);
  };
  arm();
  return () => cancel();
}
