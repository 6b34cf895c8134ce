/** A clock that moves only when a test moves it. */
import type { Cancel, Clock } from '../core/ports.ts';

type Timer = { at: number; readonly every: number | null; readonly run: () => void; readonly order: number };

/**
 * A clock that moves only when a test moves it. `advance` runs all due timers in order of time, and lets the promises
 * that each timer settles run before the next timer. `stepWall` moves the wall clock alone, as an administrator does.
 */
export class TestClock implements Clock {
  /** The time that elapsed, in milliseconds. Timers run by it. */
  #elapsed = 0;
  /** The wall time at which nothing had elapsed. */
  #start: number;
  #order = 0;
  readonly #timers = new Set<Timer>();
  #awaited: () => Promise<void> = turns;

  /** `start`: the time that the clock shows, in epoch milliseconds. */
  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#start = start;
  }

  /** Returns the wall time, in epoch milliseconds. */
  now(): number {
    return this.#start + this.#elapsed;
  }

  /** Returns the time that elapsed, in milliseconds. */
  monotonic(): number {
    return this.#elapsed;
  }

  /** Sets the wall clock forward (or back, if `ms` is negative). No time elapses and no timer runs. */
  stepWall(ms: number): void {
    this.#start += ms;
  }

  /** Lets time elapse in which nothing runs, as in a busy script: due timers wait for the next `advance`. */
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
   * Makes `advance` and `leap` wait after each timer until `quiet` resolves, for tests that wait for work outside this
   * process.
   */
  alsoAwaits(quiet: () => Promise<void>): void {
    this.#awaited = quiet;
  }

  /** Lets `ms` milliseconds elapse. Resolves when all timers that were due have run, and what they caused. */
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

  /** Like `advance`, but as if the process had been suspended: each due timer runs once, at the end. */
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

/** Lets all ready work of this process run: some rounds of promise jobs and immediates. */
export async function turns(rounds = 4): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise((done) => setImmediate(done));
}
