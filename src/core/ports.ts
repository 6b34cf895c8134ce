/** The port for time: the clock and timers. Tests implement it to control time. */

/** Cancels the timer or the listener that it was returned for. Idempotent. */
export type Cancel = () => void;

/**
 * Time as a port. `now` is wall time in epoch milliseconds; it may be set forward or back by any amount. `monotonic` is
 * the time that elapsed since an arbitrary start, in milliseconds with fractions: it never goes back, and a step of the
 * wall clock does not change it. Rates, cooldowns and lifetimes of cached values are measured by `monotonic`; what
 * other processes or people read has times of `now`. Timers run on the monotonic source too. A callback of `after` runs
 * at most once and never before `after` has returned.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  after(ms: number, run: () => void): Cancel;
  every(ms: number, run: () => void): Cancel;
}
