/** The port for time: the clock and timers. Tests implement it to control time. */

/** Cancels the timer or the listener that it was returned for. Idempotent. */
export type Cancel = () => void;

/**
 * Time as a port. `now` is wall time in epoch milliseconds. Timers run on a monotonic source, so a step of the wall
 * clock neither fires nor delays them. A callback of `after` runs at most once and never before `after` has returned.
 */
export interface Clock {
  now(): number;
  after(ms: number, run: () => void): Cancel;
  every(ms: number, run: () => void): Cancel;
}
