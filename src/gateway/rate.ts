/** Token buckets that count the frames of one link. */
import type { Clock } from '../core/clock.ts';
import { BAD_FRAMES, BAD_FRAMES_MS } from '../core/limits.ts';

export type Allowance = { readonly perSecond: number; readonly burst: number };

/**
 * The answer of a bucket to a request. `over`: refused. `flood`: refused, and at least `burst` requests were refused
 * since the bucket was last full.
 */
export type Taken = 'ok' | 'over' | 'flood';

/** A token bucket that starts full. */
export class Bucket {
  readonly #clock: Clock;
  readonly #allowance: Allowance;
  #tokens: number;
  #at: number;
  #refused = 0;

  constructor(clock: Clock, allowance: Allowance) {
    this.#clock = clock;
    this.#allowance = allowance;
    this.#tokens = allowance.burst;
    this.#at = clock.now();
  }

  take(): Taken {
    this.#refill();
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return 'ok';
    }
    return ++this.#refused >= this.#allowance.burst ? 'flood' : 'over';
  }

  /** The time until the next token, in milliseconds. */
  get retryAfterMs(): number {
    return Math.max(1, Math.ceil(((1 - this.#tokens) * 1000) / this.#allowance.perSecond));
  }

  #refill(): void {
    const { perSecond, burst } = this.#allowance;
    const now = this.#clock.now();
    // When the wall clock is set back, the bucket neither gains nor loses tokens.
    const elapsed = Math.max(0, now - this.#at);
    this.#at = now;
    this.#tokens = Math.min(burst, this.#tokens + (elapsed * perSecond) / 1000);
    if (this.#tokens === burst) this.#refused = 0;
  }
}

/** Counts bad frames in a sliding window. */
export class BadFrames {
  readonly #clock: Clock;
  #times: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a bad frame. Returns true if there are now at least BAD_FRAMES within BAD_FRAMES_MS. */
  add(): boolean {
    const now = this.#clock.now();
    this.#times = [...this.#times.filter((at) => now - at < BAD_FRAMES_MS), now];
    return this.#times.length >= BAD_FRAMES;
  }
}
