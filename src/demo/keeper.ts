import { setTimeout as sleep } from 'node:timers/promises';

/** One run of a program that is kept alive. `end` asks it to stop, sees to it that it does, and never rejects. */
export type Run = { readonly ended: Promise<void>; end(): Promise<void> };

/** Milliseconds; `sleep` rejects when the signal is aborted. */
export type KeeperClock = { now(): number; sleep(ms: number, signal: AbortSignal): Promise<void> };

const systemClock: KeeperClock = {
  now: () => Date.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
};

const BACKOFF_BASE_MS = 500;
const BACKOFF_CAP_MS = 30_000;
/** A run that lasted this long was no failure to start. */
const STABLE_MS = 10_000;

/** Keeps one run going: one that ends by itself is started again, after longer and longer waits while runs stay short. */
export class Keeper<R extends Run> implements AsyncDisposable {
  readonly #start: () => R;
  readonly #clock: KeeperClock;
  readonly #live = new Set<R>();
  readonly #closing = new AbortController();
  /** A run that is ended on purpose: another one takes its place anyway. */
  #leaving: R | null = null;
  #short = 0;
  #current: R;

  constructor(start: () => R, clock: KeeperClock = systemClock) {
    this.#start = start;
    this.#clock = clock;
    this.#current = this.#launch();
  }

  get current(): R {
    return this.#current;
  }

  /** Aborted once no run is started any more. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Ends the present run, and starts another one in its place as soon as it is over: a run that leaves in good order hands over all that it has not
   * begun. Resolves when the new run is started.
   */
  async replace(): Promise<void> {
    const old = this.#current;
    if (this.#closing.signal.aborted || !this.#live.has(old)) return;
    this.#leaving = old;
    await old.end();
    await old.ended;
    if (!this.#closing.signal.aborted) this.#current = this.#launch();
  }

  /** Ends every run; none is started any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#live].map((run) => run.end()));
  }

  #launch(): R {
    const run = this.#start();
    const began = this.#clock.now();
    this.#live.add(run);
    void run.ended.then(() => {
      this.#live.delete(run);
      if (run === this.#current && run !== this.#leaving && !this.closing.aborted)
        void this.#again(this.#clock.now() - began);
    });
    return run;
  }

  async #again(lastedMs: number): Promise<void> {
    this.#short = lastedMs < STABLE_MS ? this.#short + 1 : 0;
    const waitMs = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** this.#short);
    const { signal } = this.#closing;
    await this.#clock.sleep(waitMs, signal).catch(() => {});
    if (!signal.aborted) this.#current = this.#launch();
  }
}
