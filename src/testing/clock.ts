/** A clock that moves only when a test moves it. */
import type { Cancel, Clock } from '../core/ports.ts';

type Timer = { at: number; readonly every: number | null; readonly run: () => void; readonly order: number };

/**
 * A clock that moves only when a test moves it. `advance` runs all due timers in the order of their times. After each
 * timer, it lets the promises run that the timer settles. `stepWall` moves only the wall clock, as an administrator
 * would.
 */
export class TestClock implements Clock {
  /** The elapsed time, in milliseconds. Timers use it. */
  #elapsed = 0;
  /** The wall time at the start, before any time elapsed, in epoch milliseconds. */
  #start: number;
  #order = 0;
  readonly #timers = new Set<Timer>();
  #awaited: () => Promise<void> = turns;

  /** `start`: the initial wall time, in epoch milliseconds. */
  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#start = start;
  }

  /** Returns the wall time, in epoch milliseconds. */
  now(): number {
    return this.#start + this.#elapsed;
  }

  /** Returns the elapsed time, in milliseconds. */
  monotonic(): number {
    return this.#elapsed;
  }

  /** Steps the wall clock forward, or back if `ms` is negative. No time elapses, and no timer runs. */
  stepWall(ms: number): void {
    this.#start += ms;
  }

  /** Lets time elapse without running anything, like a busy script. Due timers run at the next `advance`. */
  stall(ms: number): void {
    this.#elapsed += ms;
  }

  /** Runs a function once, `ms` milliseconds later. */
  after(ms: number, run: () => void): Cancel {
    return this.#add({ at: this.#elapsed + ms, every: null, run, order: this.#order++ });
  }

  /** Runs a function every `ms` milliseconds. */
  every(ms: number, run: () => void): Cancel {
    return this.#add({ at: this.#elapsed + ms, every: ms, run, order: this.#order++ });
  }

  /**
   * Makes `advance` and `leap` wait for `quiet` after each timer. For tests that wait for work outside of this process.
   */
  alsoAwaits(quiet: () => Promise<void>): void {
    this.#awaited = quiet;
  }

  /** Lets `ms` milliseconds elapse. Resolves when all due timers and the work that they caused have run. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await this.#awaited();
    for (let timer = this.#next(end); timer; timer = this.#next(end)) {
      this.#elapsed = Math.max(this.#elapsed, timer.at);
      if (timer.every === null) this.#timers.delete(timer);
      else timer.at += timer.every;
      timer.run();
      await this.#awaited();
    }
    this.#elapsed = end;
    await this.#awaited();
  }

  /** Lets `ms` milliseconds elapse as if the process had been suspended: each due timer runs once, at the end. */
  async leap(ms: number): Promise<void> {
    await this.#awaited();
    this.#elapsed += ms;
    for (const timer of [...this.#timers].filter(({ at }) => at <= this.#elapsed)) {
      if (timer.every === null) this.#timers.delete(timer);
      else timer.at = this.#elapsed + timer.every;
      timer.run();
      await this.#awaited();
    }
  }

  #next(end: number): Timer | undefined {
    return [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
  }

  #add(timer: Timer): Cancel {
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }
}

/** Lets all work of this process run that is ready: several rounds of promise jobs and immediates. */
export async function turns(rounds = 4): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise((done) => setImmediate(done));
}
