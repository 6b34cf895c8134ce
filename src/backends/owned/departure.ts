/** Hands over the partitions of a process that ends: their next owners follow the logs first, so their users hardly wait. */
import type { Clock } from '../../core/ports.ts';

/** For how many leases a process that ends waits for next owners. Then it gives the rest away as it is. */
const WAIT_LEASES = 4;
/** How often next owners are asked again in a lease. */
const ASKS = 4;

type DepartureOptions = {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly leaseMs: number;
  /** The partitions that this process still owns. */
  readonly owned: () => readonly { readonly number: number }[];
  /** Returns the process that should own a partition once this one has ended; null: there is none. */
  readonly nextOf: (partition: number) => string | null;
  /** Whether this process can still give something away. */
  readonly mayGive: () => boolean;
  /** Tells all processes that this one ends. */
  readonly announce: () => void;
  /** Asks a process to follow the log of a partition. The answer may come late, or not at all. */
  readonly ask: (process: string, partition: number) => void;
};

export class Departure {
  readonly #options: DepartureOptions;
  /** How often each partition was asked for. */
  readonly #asks = new Map<number, number>();
  #onChange: () => void = () => {};

  constructor(options: DepartureOptions) {
    this.#options = options;
  }

  /** Resolves when nothing is left to give, or nothing can be given any more. Never rejects. */
  async run(): Promise<void> {
    const { clock, leaseMs, announce } = this.#options;
    const end = clock.monotonic() + WAIT_LEASES * leaseMs;
    let asked: number | undefined;
    let askedAt = -Infinity;
    for (;;) {
      const left = this.#left();
      if (left.length === 0 || clock.monotonic() >= end) return;
      if (clock.monotonic() - askedAt >= leaseMs / ASKS) {
        asked = undefined;
        askedAt = clock.monotonic();
        announce();
      }
      // One at a time: a process that reads a log keeps the users waiting whose partition it has just taken over.
      if (asked === undefined || !left.includes(asked)) asked = this.#ask(left);
      await this.#change(leaseMs / ASKS);
    }
  }

  /** Must be called when a partition was given away, or other processes are there than before. */
  changed(): void {
    this.#onChange();
  }

  /** Returns the partitions that can be given, those that were asked for least often first. */
  #left(): readonly number[] {
    const { owned, nextOf, mayGive } = this.#options;
    if (!mayGive()) return [];
    const left = owned().map(({ number }) => number);
    const asks = (partition: number): number => this.#asks.get(partition) ?? 0;
    return left.filter((partition) => nextOf(partition) !== null).toSorted((a, b) => asks(a) - asks(b));
  }

  #ask([partition]: readonly number[]): number | undefined {
    const to = partition === undefined ? null : this.#options.nextOf(partition);
    if (partition === undefined || to === null) return undefined;
    this.#asks.set(partition, (this.#asks.get(partition) ?? 0) + 1);
    this.#options.ask(to, partition);
    return partition;
  }

  #change(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(withinMs, () => this.#onChange());
      this.#onChange = () => {
        cancel();
        this.#onChange = () => {};
        resolve();
      };
    });
  }
}
