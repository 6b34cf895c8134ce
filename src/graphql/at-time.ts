import type { Cancel, Clock } from '../core/clock.ts';

/** Timers of Node hold 31 bits of milliseconds and fire at once beyond. */
const LONGEST_MS = 2 ** 31 - 1;

/** Runs at this wall time (epoch milliseconds), or now when it has passed; however far away it is. */
export function atTime(clock: Clock, epochMs: number, run: () => void): Cancel {
  let cancel: Cancel = () => {};
  const arm = (): void => {
    const left = Math.max(0, epochMs - clock.now());
    cancel = left > LONGEST_MS ? clock.after(LONGEST_MS, arm) : clock.after(left, run);
  };
  arm();
  return () => cancel();
}
