/** The clock of a deployment over Redis, which follows the time of Redis so that all nodes share one time. */
import { CallboardError } from '../../core/errors.ts';
import type { Cancel, Clock, Log } from '../../core/ports.ts';

const MEASURE_MS = 2_000;

type StoreClockOptions = {
  /** Reads the time of the store, in epoch milliseconds. */
  readonly read: () => Promise<number>;
  /** The clock of this machine. Its timers are used, and its time is compared with the store's. */
  readonly system: Clock;
  /** A time in milliseconds that never goes back, even if the wall clock is changed. */
  readonly monotonic?: () => number;
  readonly log: Log;
};

type StoreClock = Clock & {
  /** How far the store's clock is ahead of this machine's clock, according to the last measurement, in milliseconds. */
  readonly ahead: () => number;
  /** Stops measuring; `now` continues with the last offset. */
  stop(): void;
};

/**
 * Creates the clock of a deployment, which shows the time of the store on all nodes. It adds an offset to this
 * machine's monotonic time, and measures the offset every 2 s. It never goes back, and differs from the store's time by
 * at most half a round trip. Its timers are those of this machine. Throws the error of the first measurement.
 */
export async function createStoreClock(options: StoreClockOptions): Promise<StoreClock> {
  const { read, system, monotonic = () => performance.now(), log } = options;
  const measure = async (): Promise<{ readonly middle: number; readonly error: number }> => {
    const before = monotonic();
    const time = await read();
    const after = monotonic();
    // A wrong offset would stay for ever, because `now` and every later offset are computed from it.
    if (!Number.isFinite(time)) throw new CallboardError('internal', 'The store did not return a time.');
    return { middle: time - (before + after) / 2, error: (after - before) / 2 };
  };
  let offset = (await measure()).middle;
  let last = -Infinity;
  const now = (): number => (last = Math.max(last, Math.floor(monotonic() + offset)));
  const turn = (): void => {
    measure().then(
      // A slow answer is imprecise, so the offset moves only as far as needed to be within the error of the answer.
      ({ middle, error }) => (offset = Math.min(middle + error, Math.max(middle - error, offset))),
      (error: unknown) => log.debug({ err: error }, 'the time of the store could not be read'),
    );
  };
  const stop: Cancel = system.every(MEASURE_MS, turn);
  return {
    now,
    monotonic: () => system.monotonic(),
    after: (ms, run) => system.after(ms, run),
    every: (ms, run) => system.every(ms, run),
    ahead: () => now() - system.now(),
    stop,
  };
}
