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

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (let timer = this.#next(end); timer; timer = this.#next(end)) {
      this.#now = Math.max(this.#now, timer.at);
      if (timer.every === null) this.#timers.delete(timer);
      else timer.at += timer.every;
      timer.run();
      await settle();
    }
    this.#now = end;
    await settle();
  }

  #next(end: number): Timer | undefined {
    return [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
  }

  #add(timer: Timer): Cancel {
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }
}

/** Lets everything that is ready run: promise jobs and immediates, a few rounds of them. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 4; round++) await new Promise((done) => setImmediate(done));
}
