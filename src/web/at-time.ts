/** A timer for a wall-clock time, however far away. */
import type { Cancel, Clock } from '../core/clock.ts';

/** Node's timers hold 31 bits of milliseconds; a longer one fires at once. */
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
