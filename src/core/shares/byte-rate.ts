/** Limits the bytes per second that each user may send. */
import type { Clock } from '../clock.ts';

/**
 * Limits the bytes that one user may send per second, with a token bucket that holds the bytes of one second. Bytes
 * that have arrived are always charged, so the balance may become negative. The sender must then wait until it is not.
 * The clock is read only when the balance is used up. In any `t` seconds at most `(t + 2) * perSecond` bytes pass, plus
 * the bytes that had arrived when the balance was used up.
 */
export class ByteRate {
  readonly #clock: Clock;
  readonly #perSecond: number;
  #balance: number;
  #refilledAt: number;

  /** `perSecond`: the bytes that may be sent per second, at least 1. */
  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#balance = perSecond;
    this.#refilledAt = clock.now();
  }

  /** Charges bytes that have arrived. Returns the milliseconds until the balance is no longer negative; 0: continue. */
  charge(bytes: number): number {
    this.#balance -= bytes;
    return this.#balance >= 0 ? 0 : this.#wait();
  }

  /**
   * Charges announced bytes and returns 0. If the balance is negative, charges nothing and returns the milliseconds
   * until it is no longer negative.
   */
  admit(bytes: number): number {
    const wait = this.#balance >= 0 ? 0 : this.#wait();
    if (wait === 0) this.#balance -= bytes;
    return wait;
  }

  /** Whether the bucket is full, as a new one is. */
  get full(): boolean {
    this.#refill();
    return this.#balance === this.#perSecond;
  }

  #wait(): number {
    this.#refill();
    return this.#balance >= 0 ? 0 : Math.ceil((-this.#balance * 1000) / this.#perSecond);
  }

  #refill(): void {
    const now = this.#clock.now();
    // If the wall clock was set back, the balance neither grows nor shrinks.
    const elapsed = Math.max(0, now - this.#refilledAt);
    this.#refilledAt = now;
    this.#balance = Math.min(this.#perSecond, this.#balance + (elapsed * this.#perSecond) / 1000);
  }
}

/** The rate of one user, held while a link lives. */
export type HeldRate = {
  readonly rate: ByteRate;
  /** Releases the rate. Call it once, when the link has ended. */
  release(): void;
};

/** The number of rates at which idle ones are first dropped. */
const KEPT = 1_000;

/**
 * The rates of all users of this process: one per user, for all transports together. Rates of idle users without links
 * are dropped.
 */
export class ByteRates {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #rates = new Map<string, { readonly rate: ByteRate; links: number }>();
  #sweepAt = KEPT;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Returns the user's rate, for one immediate use. Do not keep it: see `hold`. */
  of(userId: string): ByteRate {
    return this.#entry(userId).rate;
  }

  /** Returns the user's rate, for a link: it stays valid until it is released, so that no frame has to look it up. */
  hold(userId: string): HeldRate {
    const entry = this.#entry(userId);
    entry.links++;
    return { rate: entry.rate, release: () => void entry.links-- };
  }

  get size(): number {
    return this.#rates.size;
  }

  #entry(userId: string): { readonly rate: ByteRate; links: number } {
    const known = this.#rates.get(userId);
    if (known) return known;
    if (this.#rates.size >= this.#sweepAt) this.#sweep();
    const entry = { rate: new ByteRate(this.#clock, this.#perSecond), links: 0 };
    this.#rates.set(userId, entry);
    return entry;
  }

  /**
   * Drops full rates without links, which equal new ones. The next sweep runs when there are twice as many rates as
   * remain now, but at least KEPT.
   */
  #sweep(): void {
    for (const [userId, { rate, links }] of this.#rates) if (links === 0 && rate.full) this.#rates.delete(userId);
    this.#sweepAt = Math.max(KEPT, 2 * this.#rates.size);
  }
}
