/**
 * Rate limits: a token bucket, a sliding window, a bounded table of rates by name, and a limit for log lines. All use
 * elapsed time (`Clock.monotonic`), so a step of the wall clock has no effect on them.
 */
import { BoundedMap } from './collections.ts';
import type { Clock } from './ports.ts';

type Elapsed = Pick<Clock, 'monotonic'>;

/** Rounding of fractions causes errors up to this size, in tokens and in milliseconds. They are ignored. */
const ROUNDING = 1e-6;

/** The rate of a token bucket. `burst`: its capacity. A new bucket is full. */
export type BucketRate = { readonly perSecond: number; readonly burst: number };

/** The bucket of one caller for a rate rule of the policy. `caller`: the holder (see `holderOf` in shares.ts). */
export type CallerRate = BucketRate & { readonly rule: string; readonly caller: string };

/**
 * A token bucket. A token stands for a request, a frame, a line or a byte. In any `t` seconds, `take` grants at most
 * `burst + t * perSecond` tokens.
 */
export class TokenBucket {
  readonly #clock: Elapsed;
  readonly #rate: BucketRate;
  #tokens: number;
  #refilledAt: number;
  #refused = 0;

  constructor(clock: Elapsed, rate: BucketRate) {
    this.#clock = clock;
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#refilledAt = clock.monotonic();
  }

  /** Takes one token and returns 0. If there is none, takes nothing and returns the milliseconds until there is one. */
  take(): number {
    const wait = this.waitMs;
    if (wait === 0) this.#tokens = Math.max(0, this.#tokens - 1);
    else this.#refused++;
    return wait;
  }

  /** What `take` would return now. */
  get waitMs(): number {
    this.#refill();
    return this.#tokens >= 1 - ROUNDING ? 0 : this.#msUntil(1);
  }

  /**
   * Takes tokens for something that has already happened. If there are too few, the balance becomes negative. Returns
   * the milliseconds until the balance is no longer negative; 0 if it is not. A negative number of tokens gives tokens
   * back. The bucket is refilled only while the balance is negative. So up to `2 * burst + t * perSecond` tokens pass
   * in `t` seconds without a wait.
   */
  charge(tokens: number): number {
    this.#tokens -= tokens;
    return this.#tokens >= 0 ? 0 : this.#debtMs();
  }

  /**
   * Takes tokens like `charge` and returns 0, if the balance is not negative. Otherwise takes nothing and returns the
   * milliseconds until it is no longer negative.
   */
  admit(tokens: number): number {
    const wait = this.#tokens >= 0 ? 0 : this.#debtMs();
    if (wait === 0) this.#tokens -= tokens;
    return wait;
  }

  /** How often `take` refused since the bucket was last full. */
  get refused(): number {
    return this.#refused;
  }

  /** Whether the bucket is full, as a new one is. */
  get full(): boolean {
    this.#refill();
    return this.#tokens >= this.#rate.burst;
  }

  #debtMs(): number {
    this.#refill();
    return this.#tokens >= 0 ? 0 : this.#msUntil(0);
  }

  /** Returns the whole number of milliseconds, at least 1, until the bucket has this many tokens. */
  #msUntil(tokens: number): number {
    return msToRefill(tokens - this.#tokens, this.#rate);
  }

  #refill(): void {
    const { perSecond, burst } = this.#rate;
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#refilledAt) * perSecond) / 1000);
    this.#refilledAt = now;
    if (this.#tokens === burst) this.#refused = 0;
  }
}

/** Returns the whole number of milliseconds, at least 1, in which a bucket is refilled by this many tokens. */
function msToRefill(tokens: number, { perSecond }: BucketRate): number {
  return Math.max(1, Math.ceil((tokens * 1000) / perSecond - ROUNDING));
}

/**
 * Returns the result of `TokenBucket.waitMs` for a bucket in a store. `taken`: how many tokens were missing `elapsedMs`
 * ago. `backends/redis/program/transaction.lua` has the same rule.
 */
export function waitOfBucket(rate: BucketRate, taken: number, elapsedMs: number): number {
  const missing = Math.max(0, taken - (Math.max(0, elapsedMs) * rate.perSecond) / 1000);
  return missing + 1 <= rate.burst + ROUNDING ? 0 : msToRefill(missing + 1 - rate.burst, rate);
}

/** At most `most` events within any `ms` milliseconds. */
export type WindowRate = { readonly most: number; readonly ms: number };

/** Grants at most `most` events within any `ms` milliseconds. It remembers the times of at most `most` events. */
export class SlidingWindow {
  readonly #clock: Elapsed;
  readonly #rate: WindowRate;
  /** The times of granted events, oldest first. Times before the window are removed only when the list is full. */
  #times: number[] = [];

  constructor(clock: Elapsed, rate: WindowRate) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /**
   * Counts an event and returns 0. If the window is full, counts nothing and returns the milliseconds until it has
   * room.
   */
  take(): number {
    const wait = this.waitMs;
    if (wait === 0) this.#times.push(this.#clock.monotonic());
    return wait;
  }

  /** Takes back the newest counted event. */
  giveBack(): void {
    this.#times.pop();
  }

  /** What `take` would return now. */
  get waitMs(): number {
    const { most, ms } = this.#rate;
    const since = this.#clock.monotonic() - ms;
    const [oldest] = this.#times;
    if (oldest === undefined || this.#times.length < most) return 0;
    if (oldest > since) return Math.max(1, Math.ceil(oldest - since));
    this.#times = this.#times.filter((at) => at > since);
    return 0;
  }
}

/**
 * The rates of at most `most` names, such as addresses. If there are more names, the least recently used one is
 * forgotten with everything that was counted for it.
 */
export class RateTable<R> {
  readonly #create: () => R;
  readonly #rates: BoundedMap<string, R>;

  constructor(most: number, create: () => R) {
    this.#create = create;
    this.#rates = new BoundedMap({ most, order: 'used' });
  }

  /** Returns the rate of a name. Creates it if the table does not have it. */
  of(name: string): R {
    const known = this.#rates.get(name);
    if (known !== undefined) return known;
    const made = this.#create();
    this.#rates.set(name, made);
    return made;
  }

  /** Returns the rate of a name; undefined if the table does not have it. */
  find(name: string): R | undefined {
    return this.#rates.get(name);
  }
}

/** Limits the rate of log lines. */
export class LineLimit {
  readonly #bucket: TokenBucket;
  #suppressed = 0;

  constructor(clock: Elapsed, rate: BucketRate) {
    this.#bucket = new TokenBucket(clock, rate);
  }

  /**
   * Calls `write` with the fields and the number of lines that were suppressed before. If this line exceeds the rate,
   * suppresses it instead.
   */
  pass(fields: Readonly<Record<string, unknown>>, write: (fields: Record<string, unknown>) => void): void {
    if (this.#bucket.take() > 0) return void this.#suppressed++;
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    write({ ...fields, ...(suppressed > 0 && { suppressed }) });
  }
}
