import { monitorEventLoopDelay } from 'node:perf_hooks';

/** What the event loop did since the last `take`. */
export type Turns = {
  /** CPU of the main thread in the most expensive turn, milliseconds. */
  readonly worstMs: number;
  readonly turns: number;
  /** The longest time for which no timer ran, milliseconds. It also grows when the machine does not run the process. */
  readonly stalledMs: number;
};

export type TurnMeter = {
  /** Answers what was measured and begins anew. */
  take(): Turns;
};

const DELAY_RESOLUTION_MS = 10;

/**
 * Measures CPU of the main thread (`process.threadCpuUsage`, so what other processes do does not count) for each turn of the event loop. An unref'd
 * immediate runs once in each turn and keeps nothing awake. A turn may hold several inputs that arrived together, and collections of the heap.
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

function threadMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}
