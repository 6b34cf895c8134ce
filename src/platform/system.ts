/** Implements core's Clock with Node's timers. */
import type { Cancel, Clock } from '../core/clock.ts';

/** The longest delay that a Node timer accepts, in milliseconds. A timer with a longer delay fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** The clocks of the process, with timers that do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after,
  every(ms, run) {
    const timer = setInterval(run, Math.min(ms, LONGEST_MS));
    timer.unref();
    return () => clearInterval(timer);
  },
};

function after(ms: number, run: () => void): Cancel {
  if (ms > LONGEST_MS) {
    let cancel = after(LONGEST_MS, () => (cancel = after(ms - LONGEST_MS, run)));
    return () => cancel();
  }
  const timer = setTimeout(run, ms);
  timer.unref();
  return () => clearTimeout(timer);
}
