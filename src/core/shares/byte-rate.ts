import type { Clock } from '../clock.ts';

/**
 * How many bytes one user may send in a second: a token bucket that holds one second's worth. Bytes that have arrived are always charged,
 * so the balance may be negative; whoever sends must then wait until it is not. The clock is read only when the balance is used up, so in
 * any `t` seconds at most `(t + 2) * perSecond` bytes pass, and what had arrived by then.
 */
export class ByteRate {
  readonly #clock: Clock;
  readonly #perSecond: number;
  #balance: number;
  #refilledAt: number;

  /** `perSecond`: bytes, at least 1. */
  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#balance = perSecond;
    this.#refilledAt = clock.now();
  }

  /** Charges bytes that have arrived. Milliseconds until the balance is not negative any more; 0: go on. */
  charge(bytes: number): number {
    this.#balance -= bytes;
    return this.#balance >= 0 ? 0 : this.#wait();
  }

  /** Charges bytes that are announced, unless the balance is negative: then nothing, and milliseconds until it is not. 0: charged. */
  admit(bytes: number): number {
    const wait = this.#balance >= 0 ? 0 : this.#wait();
    if (wait === 0) this.#balance -= bytes;
    return wait;
  }

  /** Whether it holds a whole second's worth, as a new one does. */
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
    // A wall clock that was set back gives nothing, and takes nothing either.
    const elapsed = Math.max(0, now - this.#refilledAt);
    this.#refilledAt = now;
    this.#balance = Math.min(this.#perSecond, this.#balance + (elapsed * this.#perSecond) / 1000);
  }
}

/** The rate of one user, held as long as a link lives. */
export type HeldRate = {
  readonly rate: ByteRate;
  /** Call it once, when the link is over. */
  release(): void;
};

/** Users whose rates are kept without a link before idle ones are looked for. */
const KEPT = 1_000;

/** The rates of all users of this process: one for each, whatever it comes over. Rates of idle users without links are forgotten. */
export class ByteRates {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #rates = new Map<string, { readonly rate: ByteRate; links: number }>();
  #sweepAt = KEPT;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** For what is over at once. */
  of(userId: string): ByteRate {
    return this.#entry(userId).rate;
  }

  /** For a link: the rate is the user's until it is released, so no frame looks it up. */
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

  /** A full rate without links is as good as a new one. The next sweep waits until there are twice as many as stay. */
  #sweep(): void {
    for (const [userId, { rate, links }] of this.#rates) if (links === 0 && rate.full) this.#rates.delete(userId);
    this.#sweepAt = Math.max(KEPT, 2 * this.#rates.size);
  }
}
