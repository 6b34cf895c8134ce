/** Measures what one request costs the main thread of a process, from before it is sent until the process is idle. */
import { z } from 'zod';
import { createTurnMeter, threadMicros, type TurnMeter } from './turns.ts';

/** The form of a measurement. Times are CPU time of the main thread, in milliseconds. */
export const PROBED = z.object({
  /** The most expensive turn of the event loop. */
  turnMs: z.number(),
  cpuMs: z.number(),
  /** Whether the thread was idle at the end. False: it still worked after `withinMs`. */
  idle: z.boolean(),
});
export type Probed = z.infer<typeof PROBED>;

/** A window of this length in which the thread used at most IDLE_CPU_MS of CPU counts as idle, in milliseconds. */
const WINDOW_MS = 8;
const IDLE_CPU_MS = 0.4;
/** The number of idle windows in a row after which the thread counts as idle: an answer of a store may be on its way. */
const IDLE_WINDOWS = 2;

export type CostProbe = {
  begin(): void;
  /** Waits until the thread is idle, at most `withinMs`, and returns what it did since `begin`. */
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
      // What was used up to the start of the first idle window: the windows themselves cost little, but not nothing.
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
