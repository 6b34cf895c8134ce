/** Bounds how many tokens are verified at the same time. */
import { fail } from '../core/errors.ts';

/** The greatest number of addresses that are remembered. Beyond it, the least recently used is forgotten. */
export const ADDRESSES = 10_000;

/** The number of concurrent verifications for addresses over their rate. Half of Node's four threads stay free. */
const RUNNING = 2;
/** The most verifications that wait for one address: 0.1 s of work at 10 000 verifications per second. */
const WAITING_PER_ADDRESS = 1_000;

/**
 * Verifies tokens from addresses that sent too many invalid ones: a few at a time, round-robin by address. Other
 * addresses never wait. A valid token of such an address waits too, and is refused only if the queue is full.
 */
export class VerifyQueue {
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  /** Runs `work` in its turn. Throws `rate_limited` if too many jobs of this address, or too many addresses, wait. */
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

  /** Starts the next job of the address whose last turn is longest ago, or frees the slot. */
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
