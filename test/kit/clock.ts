import type { Cancel, Clock } from '../../src/core/clock.ts';

type Timer = { at: number; readonly every: number | null; readonly run: () => void; readonly order: number };

/**
 * A clock that stands still until it is told to go on. `advance` runs every timer that falls due, in order of time, and lets the promises
 * that each one settles run before the next.
 */
export class FakeClock implements Clock {
  #now: number;
  #order = 0;
  readonly #timers = new Set<Timer>();
  #awaited: () => Promise<void> = turns;

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): Cancel {
    return this.#add({ at: this.#now + ms, every: null, run, order: this.#order++ });
  }

  every(ms: number, run: () => void): Cancel {
    return this.#add({ at: this.#now + ms, every: ms, run, order: this.#order++ });
  }

  /** From now on `advance` waits after each timer until this resolves too: for what goes on outside this process. */
  alsoAwaits(quiet: () => Promise<void>): void {
    this.#awaited = quiet;
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.#awaited();
    for (let timer = this.#next(end); timer; timer = this.#next(end)) {
      this.#now = Math.max(this.#now, timer.at);
      if (timer.every === null) this.#timers.delete(timer);
      else timer.at += timer.every;
      timer.run();
      await this.#awaited();
    }
    this.#now = end;
    await this.#awaited();
  }

  /** As `advance`, but as if the process had slept through it: what fell due many times runs once, at the end. */
  async leap(ms: number): Promise<void> {
    await this.#awaited();
    this.#now += ms;
    for (const timer of [...this.#timers].filter(({ at }) => at <= this.#now)) {
      if (timer.every === null) this.#timers.delete(timer);
      else timer.at = this.#now + timer.every;
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

/** Moves the clock on, a little at a time, until this is there: for what looks again after a while. */
export async function meanwhile<T>(clock: FakeClock, awaited: Promise<T>, stepMs = 10): Promise<T> {
  let over = false;
  const done = (): void => void (over = true);
  awaited.then(done, done);
  while (!over) await clock.advance(stepMs);
  return awaited;
}

const outside = new Set<() => Promise<void>>();

/** From now on `settle` waits for this too: for what goes on outside this process. */
export function alsoSettles(quiet: () => Promise<void>): Cancel {
  outside.add(quiet);
  return () => void outside.delete(quiet);
}

/** Lets everything that is ready run, here and in the stores that tests of this process have open. */
export async function settle(): Promise<void> {
  await turns();
  for (const quiet of [...outside]) await quiet();
}

/** Lets everything that is ready in this process run: promise jobs and immediates, a few rounds of them. */
export async function turns(): Promise<void> {
  for (let round = 0; round < 4; round++) await new Promise((done) => setImmediate(done));
}
