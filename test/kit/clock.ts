/** Defines the clock of the tests, and functions that wait until ready work has run. */
import type { Cancel, Clock } from '../../src/core/ports.ts';

type Timer = { at: number; readonly every: number | null; readonly run: () => void; readonly order: number };

/**
 * A clock that moves only when a test moves it. `advance` runs all due timers in order of time, and lets the promises
 * that each timer settles run before the next timer. `stepWall` moves the wall clock alone, as an administrator does.
 */
export class FakeClock implements Clock {
  /** The time that elapsed, in milliseconds. Timers run by it. */
  #elapsed = 0;
  /** The wall time at which nothing had elapsed. */
  #start: number;
  #order = 0;
  readonly #timers = new Set<Timer>();
  #awaited: () => Promise<void> = turns;

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

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

  after(ms: number, run: () => void): Cancel {
    return this.#add({ at: this.#elapsed + ms, every: null, run, order: this.#order++ });
  }

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

/** Moves the clock in steps of `stepMs` until the promise settles. Tests need it for code that polls with timers. */
export async function meanwhile<T>(clock: FakeClock, awaited: Promise<T>, stepMs = 10): Promise<T> {
  let over = false;
  const done = (): void => void (over = true);
  awaited.then(done, done);
  while (!over) await clock.advance(stepMs);
  return awaited;
}

const outside = new Set<() => Promise<void>>();

/**
 * Makes `settle` also wait for `quiet`, until the returned function is called, for tests that wait for work outside
 * this process.
 */
export function alsoSettles(quiet: () => Promise<void>): Cancel {
  outside.add(quiet);
  return () => void outside.delete(quiet);
}

/** Lets all ready work run, in this process and in the stores that tests of this process have opened. */
export async function settle(): Promise<void> {
  await turns();
  for (const quiet of [...outside]) await quiet();
}

/** Lets all ready work of this process run: four rounds of promise jobs and immediates. */
export async function turns(): Promise<void> {
  for (let round = 0; round < 4; round++) await new Promise((done) => setImmediate(done));
}
