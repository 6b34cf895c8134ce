/** Implements a clock for a relay under test, which can be stopped, advanced, or run faster than real time. */
import type { Cancel, Clock } from '../../src/core/ports.ts';

type Timer = { at: number; readonly every: number | null; readonly run: () => void; cancelled: boolean };

/**
 * A clock for a relay under test. Its time stands still until `advance`, or runs at a multiple of real time after
 * `run`. Timers fire in order of time, each in a separate turn of the event loop, so that their costs can be measured
 * separately.
 */
export class SteppedClock implements Clock {
  #now: number;
  /** The timers, sorted by their time. A cancelled timer is dropped when its time comes. */
  readonly #timers: Timer[] = [];
  #advancing: Promise<void> = Promise.resolve();
  #ticker: NodeJS.Timeout | null = null;

  constructor(start: number) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  /** Equal to the wall clock, which is never set back for a relay under test. */
  monotonic(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): Cancel {
    return this.#add({ at: this.#now + ms, every: null, run, cancelled: false });
  }

  every(ms: number, run: () => void): Cancel {
    return this.#add({ at: this.#now + ms, every: ms, run, cancelled: false });
  }

  /** Advances the time by `ms` and fires the timers that become due. Calls run one after the other. */
  advance(ms: number): Promise<void> {
    this.#advancing = this.#advancing.then(() => this.#advanceNow(ms));
    return this.#advancing;
  }

  /** Runs the clock at `factor` times real time, in steps of 20 ms of real time. 0 stops the clock. */
  run(factor: number): void {
    if (this.#ticker) clearInterval(this.#ticker);
    this.#ticker = null;
    if (factor === 0) return;
    let last = performance.now();
    let busy = false;
    this.#ticker = setInterval(() => {
      if (busy) return;
      const now = performance.now();
      // The time is rounded down to whole milliseconds, like that of a system clock.
      const ms = Math.floor((now - last) * factor);
      last += ms / factor;
      busy = true;
      void this.advance(ms).finally(() => (busy = false));
    }, STEP_MS).unref();
  }

  async #advanceNow(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const timer = this.#timers[0];
      if (!timer || timer.at > end) break;
      this.#timers.shift();
      if (timer.cancelled) continue;
      this.#now = Math.max(this.#now, timer.at);
      if (timer.every !== null) {
        timer.at += timer.every;
        this.#insert(timer);
      }
      timer.run();
      await new Promise((done) => setImmediate(done));
    }
    this.#now = end;
  }

  #add(timer: Timer): Cancel {
    this.#insert(timer);
    return () => void (timer.cancelled = true);
  }

  /** Inserts the timer after those with the same time. */
  #insert(timer: Timer): void {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#timers[middle]?.at ?? 0) <= timer.at) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
  }
}

/** The real time between two steps of the clock, in milliseconds. */
const STEP_MS = 20;
