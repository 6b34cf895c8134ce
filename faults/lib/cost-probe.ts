/**
 * Measures the cost of one request on the main thread of a process, from before it is sent until the process is idle.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { z } from 'zod';

/** The form of a measurement. Times are CPU times of the main thread in milliseconds. */
export const PROBED = z.object({
  /** The most expensive turn of the event loop. */
  turnMs: z.number(),
  cpuMs: z.number(),
  /** Whether the thread was idle at the end. False: it was still working after `withinMs`. */
  idle: z.boolean(),
});
export type Probed = z.infer<typeof PROBED>;

/**
 * The length of a window in milliseconds. A window in which the thread uses at most IDLE_CPU_MS of CPU time is idle.
 */
const WINDOW_MS = 8;
const IDLE_CPU_MS = 0.4;
/**
 * The number of consecutive idle windows after which the thread counts as idle. One is not enough, because the thread
 * may be waiting for an answer of the store.
 */
const IDLE_WINDOWS = 2;

type CostProbe = {
  begin(): void;
  /** Waits until the thread is idle, at most `withinMs`, and returns its cost since `begin`. */
  end(withinMs: number): Promise<Probed>;
};

export function createCostProbe(meter: TurnMeter = createTurnMeter()): CostProbe {
  let from = threadMicros();
  return {
    begin() {
      meter.take();
      from = threadMicros();
    },
    async end(withinMs) {
      const late = performance.now() + withinMs;
      let last = threadMicros();
      // The CPU time used up to the start of the first idle window, so that the windows' own cost is left out.
      let used = last - from;
      let idle = 0;
      while (idle < IDLE_WINDOWS && performance.now() < late) {
        await new Promise((done) => setTimeout(done, WINDOW_MS));
        const now = threadMicros();
        idle = now - last <= IDLE_CPU_MS * 1000 ? idle + 1 : 0;
        if (idle === 0) used = now - from;
        last = now;
      }
      return { turnMs: meter.take().worstMs, cpuMs: used / 1000, idle: idle === IDLE_WINDOWS };
    },
  };
}

// Measures the CPU time of single turns of the event loop.

/** The activity of the event loop since the last `take`. */
export type Turns = {
  /** The CPU time of the main thread in the most expensive turn, in milliseconds. */
  readonly worstMs: number;
  readonly turns: number;
  /** The longest time in which no timer ran, in milliseconds. It also grows if the machine does not run the process. */
  readonly stalledMs: number;
};

type TurnMeter = {
  /** Returns the measurements since the last call, and resets them. */
  take(): Turns;
};

/** The interval at which the delay of the event loop is sampled, in milliseconds. */
const DELAY_RESOLUTION_MS = 10;

/**
 * Measures the CPU time of the main thread (`process.threadCpuUsage`) in each turn of the event loop, which other
 * processes do not affect. It uses an immediate, which runs once in each turn and is unreferenced, so that it does not
 * keep the process alive. A turn may include several inputs that arrived together, and garbage collections.
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
