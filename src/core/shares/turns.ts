/** Keeps the rate of bytes per second of each user. */
import type { Clock } from '../clock.ts';
import { TokenBucket } from '../rates.ts';

/**
 * The bytes that one user may send per second: a token bucket that holds the bytes of one second. Bytes that have
 * arrived are always charged, so the balance may become negative; the sender must then wait until it is not. In any `t`
 * seconds at most `(t + 2) * perSecond` bytes pass, plus the bytes that had arrived when the balance was used up.
 */
export type ByteRate = Pick<TokenBucket, 'charge' | 'admit' | 'full'>;

/** The rate of one user, and the number of links that hold it. All links of the user use the same object. */
export class HeldRate {
  readonly rate: ByteRate;
  #links = 0;

  constructor(rate: ByteRate) {
    this.rate = rate;
  }

  get held(): boolean {
    return this.#links > 0;
  }

  hold(): void {
    this.#links++;
  }

  /** Call it once for each call of `hold`, when the link has ended. */
  release(): void {
    this.#links--;
  }
}

/** The number of rates at which idle ones are first dropped. */
const KEPT = 1_000;

/**
 * The rates of all users of this process: one per user, for all transports together. Rates of idle users without links
 * are dropped.
 */
export class ByteRates {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #rates = new Map<string, HeldRate>();
  #sweepAt = KEPT;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Returns the user's rate, for one immediate use. Do not keep it: see `hold`. */
  of(userId: string): ByteRate {
    return this.#held(userId).rate;
  }

  /** Returns the user's rate, for a link: it stays valid until it is released, so that no frame has to look it up. */
  hold(userId: string): HeldRate {
    const held = this.#held(userId);
    held.hold();
    return held;
  }

  get size(): number {
    return this.#rates.size;
  }

  #held(userId: string): HeldRate {
    const known = this.#rates.get(userId);
    if (known) return known;
    if (this.#rates.size >= this.#sweepAt) this.#sweep();
    const made = new HeldRate(new TokenBucket(this.#clock, { perSecond: this.#perSecond, burst: this.#perSecond }));
    this.#rates.set(userId, made);
    return made;
  }

  /**
   * Drops full rates without links, which equal new ones. The next sweep runs when there are twice as many rates as
   * remain now, but at least KEPT.
   */
  #sweep(): void {
    for (const [userId, { rate, held }] of this.#rates) if (!held && rate.full) this.#rates.delete(userId);
    this.#sweepAt = Math.max(KEPT, 2 * this.#rates.size);
  }
}
