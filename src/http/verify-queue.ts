/** Limits how many tokens are verified at the same time for addresses that sent too many invalid ones. */
import { fail } from '../core/errors.ts';

/**
 * The maximum number of addresses that a table by address holds. Beyond it, the rate tables forget the least recently
 * used address, and the queue below refuses a new one.
 */
export const ADDRESSES = 10_000;

/** The maximum number of concurrent verifications in this queue. Half of Node's four threads stay free. */
const RUNNING = 2;
/** The maximum number of waiting verifications of one address: 0.1 s of work at 10 000 verifications per second. */
const WAITING_PER_ADDRESS = 1_000;

/**
 * Verifies tokens from addresses that have sent too many invalid ones: RUNNING at a time, round-robin by address.
 * Tokens of other addresses do not pass through this queue. A valid token in the queue waits too, and is refused only
 * if the queue is full.
 */
export class VerifyQueue {
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  /**
   * Runs `work` when its turn comes. Throws `rate_limited` if too many jobs of this address, or jobs of too many
   * addresses, wait.
   */
  async run<T>(address: string, work: () => Promise<T>): Promise<T> {
    if (this.#running >= RUNNING) await this.#turn(address);
    else this.#running++;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  /** The number of verifications that wait. */
  get size(): number {
    return this.#waiting.values().reduce((sum, jobs) => sum + jobs.length, 0);
  }

  #turn(address: string): Promise<void> {
    const jobs = this.#waiting.get(address) ?? [];
    if (jobs.length >= WAITING_PER_ADDRESS || (jobs.length === 0 && this.#waiting.size >= ADDRESSES))
      fail('rate_limited', 'Too many invalid tokens from this address.', { retryAfterMs: 1_000 });
    this.#waiting.set(address, jobs);
    return new Promise((start) => void jobs.push(start));
  }

  /** Starts the next job of the address whose last turn is longest ago. If no job waits, frees the slot. */
  #next(): void {
    const [first] = this.#waiting;
    if (!first) return void this.#running--;
    const [address, jobs] = first;
    const [start, ...rest] = jobs;
    this.#waiting.delete(address);
    if (rest.length > 0) this.#waiting.set(address, rest);
    start?.();
  }
}
