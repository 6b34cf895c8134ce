import { fail } from '../core/errors.ts';

/** Verifications of addresses over their rate that run at once: of the four threads that Node verifies with, half. */
const RUNNING = 2;
/** Verifications that one address may have waiting, and addresses that may have some. At 10 000 verified a second this is 0.1 s. */
const WAITING_PER_ADDRESS = 1_000;
const ADDRESSES = 10_000;

type Job = { readonly start: () => void };

/**
 * Verifies tokens of addresses that showed too many bad ones, a few at a time and address by address in turn. So their load is bounded, others
 * never wait, and a good token among them is delayed and not refused.
 */
export class VerifyQueue {
  readonly #waiting = new Map<string, Job[]>();
  #running = 0;

  /** Runs `work` when its turn comes. Throws `rate_limited` where the queue of this address is full. */
  async run<T>(address: string, work: () => Promise<T>): Promise<T> {
    if (this.#running >= RUNNING) await this.#turn(address);
    else this.#running++;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  /** Verifications that wait. */
  get size(): number {
    return this.#waiting.values().reduce((sum, jobs) => sum + jobs.length, 0);
  }

  #turn(address: string): Promise<void> {
    const jobs = this.#waiting.get(address) ?? [];
    if (jobs.length >= WAITING_PER_ADDRESS || (jobs.length === 0 && this.#waiting.size >= ADDRESSES))
      fail('rate_limited', 'Too many bad tokens came from this address.', { retryAfterMs: 1_000 });
    this.#waiting.set(address, jobs);
    return new Promise((start) => void jobs.push({ start }));
  }

  /** Gives the place that became free to the address whose last turn is longest ago. */
  #next(): void {
    const [first] = this.#waiting;
    if (!first) return void this.#running--;
    const [address, jobs] = first;
    const [job, ...rest] = jobs;
    this.#waiting.delete(address);
    if (rest.length > 0) this.#waiting.set(address, rest);
    job?.start();
  }
}
