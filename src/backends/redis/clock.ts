import type { Cancel, Clock } from '../../core/clock.ts';
import { CallboardError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';

const MEASURE_MS = 2_000;

export type StoreClockOptions = {
  /** Asks the store for its time, epoch milliseconds. */
  readonly read: () => Promise<number>;
  /** Timers, and what is measured against. */
  readonly system: Clock;
  /** Milliseconds that no step of the wall clock touches. */
  readonly monotonic?: () => number;
  readonly log: Log;
};

export type StoreClock = Clock & {
  /** How far the store's clock was ahead of this machine's when last asked, milliseconds. */
  readonly ahead: () => number;
  /** Ends the measuring; `now` goes on from what was measured last. */
  stop(): void;
};

/**
 * The clock of a deployment: the time of its store, which all nodes share, read through an offset that is measured every 2 s. It never goes
 * back, and stands off the store's by at most half a round trip. Timers are the machine's own. Throws what the first reading throws.
 */
export async function createStoreClock(options: StoreClockOptions): Promise<StoreClock> {
  const { read, system, monotonic = () => performance.now(), log } = options;
  const measure = async (): Promise<{ readonly middle: number; readonly error: number }> => {
    const before = monotonic();
    const time = await read();
    const after = monotonic();
    // What is not a time would be remembered for ever: every later one is measured against it.
    if (!Number.isFinite(time)) throw new CallboardError('internal', 'The store told no time.');
    return { middle: time - (before + after) / 2, error: (after - before) / 2 };
  };
  let offset = (await measure()).middle;
  let last = -Infinity;
  const now = (): number => (last = Math.max(last, Math.floor(monotonic() + offset)));
  const turn = (): void => {
    measure().then(
      // A slow answer proves little: the offset moves only as far as the answer makes it.
      ({ middle, error }) => (offset = Math.min(middle + error, Math.max(middle - error, offset))),
      (error: unknown) => log.debug({ err: error }, 'the time of the store is not known anew'),
    );
  };
  const stop: Cancel = system.every(MEASURE_MS, turn);
  return {
    now,
    after: (ms, run) => system.after(ms, run),
    every: (ms, run) => system.every(ms, run),
    ahead: () => now() - system.now(),
    stop,
  };
}
