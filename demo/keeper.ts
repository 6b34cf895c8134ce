/** Supervises a program: starts it again whenever it ends. */
import { setTimeout as sleep } from 'node:timers/promises';

/** One run of a supervised program. `end`: asks the program to stop, and kills it if it does not. Never rejects. */
export type SupervisedRun = { readonly ended: Promise<void>; end(): Promise<void> };

/** The clock of a Keeper, in milliseconds. `sleep` rejects when the signal is aborted. */
export type KeeperClock = { now(): number; sleep(ms: number, signal: AbortSignal): Promise<void> };

const systemClock: KeeperClock = {
  now: () => Date.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
};

/** The delay before the restart after a long run, in milliseconds. Each further short run doubles it. */
const BACKOFF_BASE_MS = 500;
/** The longest delay before a restart, in milliseconds. */
const BACKOFF_CAP_MS = 30_000;
/** After a run of at least this time, in milliseconds, the backoff begins again. */
const STABLE_MS = 10_000;

/** Keeps one run going. If a run ends by itself, another one is started, with exponential backoff after short runs. */
export class Keeper<R extends SupervisedRun> implements AsyncDisposable {
  readonly #start: () => R;
  readonly #clock: KeeperClock;
  readonly #live = new Set<R>();
  readonly #closing = new AbortController();
  /** The run that `replace` is ending. Its end causes no restart, because `replace` starts the next run. */
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

  /** A signal that is aborted when the keeper is closed. From then on it starts no more runs. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Ends the current run, and starts another one after its end. If a run shuts down gracefully, the next run gets its
   * queued commands. Resolves when the new run has started. Does nothing if no run is live, or after disposal.
   */
  async replace(): Promise<void> {
    const old = this.#current;
    if (this.#closing.signal.aborted || !this.#live.has(old)) return;
    this.#leaving = old;
    await old.end();
    await old.ended;
    if (!this.#closing.signal.aborted) this.#current = this.#launch();
  }

  /** Ends every run and starts no more. */
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
