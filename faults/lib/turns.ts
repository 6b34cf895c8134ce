/** Measures the CPU that single turns of the event loop take. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** What the event loop did since the last `take`. */
export type Turns = {
  /** The CPU time of the main thread in the most expensive turn, in milliseconds. */
  readonly worstMs: number;
  readonly turns: number;
  /**
   * The longest time for which no timer ran, in milliseconds. It also grows when the machine does not run the process.
   */
  readonly stalledMs: number;
};

export type TurnMeter = {
  /** Returns what was measured since the last call, and starts again at zero. */
  take(): Turns;
};

/** The interval at which the delay of the event loop is sampled, in milliseconds. */
const DELAY_RESOLUTION_MS = 10;

/**
 * Measures the CPU time of the main thread (`process.threadCpuUsage`) in each turn of the event loop. Other processes
 * do not affect it. An immediate runs once in each turn; it is unreferenced, so it does not keep the process alive. A
 * turn may contain several inputs that arrived together, and garbage collections.
 */
export function createTurnMeter(): TurnMeter {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delay.enable();
  let worst = 0;
  let turns = 0;
  let last = threadMicros();
  const look = (): void => {
    const now = threadMicros();
    worst = Math.max(worst, now - last);
    last = now;
    turns++;
    setImmediate(look).unref();
  };
  look();
  return {
    take() {
      const now = threadMicros();
      const taken = { worstMs: Math.max(worst, now - last) / 1000, turns, stalledMs: delay.max / 1e6 };
      delay.reset();
      worst = 0;
      turns = 0;
      last = now;
      return taken;
    },
  };
}

/** Returns the CPU time that the main thread has used, in microseconds. */
export function threadMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}
