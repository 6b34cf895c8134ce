/** The most expensive turn of the event loop since the last `take`, and how many turns there were. */
export type Turns = { readonly worstMs: number; readonly turns: number };

export type TurnMeter = {
  /** Answers what was measured and begins anew. */
  take(): Turns;
};

/**
 * Measures CPU of the main thread (`process.threadCpuUsage`, so what other processes do does not count) for each turn of the event loop. An unref'd
 * immediate runs once in each turn and keeps nothing awake. A turn may hold several inputs that arrived together, and collections of the heap.
 */
export function createTurnMeter(): TurnMeter {
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
      const taken = { worstMs: Math.max(worst, now - last) / 1000, turns };
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
