/** Cancels what it was returned for; calling it again does nothing. */
export type Cancel = () => void;

/**
 * Time as a port. `now` is wall time in epoch milliseconds; timers run on a monotonic source, so a step of the wall clock neither
 * fires nor delays them. A callback runs at most once and never before `after` returned.
 */
export interface Clock {
  now(): number;
  after(ms: number, run: () => void): Cancel;
  every(ms: number, run: () => void): Cancel;
}
