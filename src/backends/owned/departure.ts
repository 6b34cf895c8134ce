/**
 * Hands over the partitions of a process that shuts down: each next owner reads the log first, so that calls hardly
 * wait.
 */
import type { Clock } from '../../core/ports.ts';

/**
 * How many leases a departing process waits for next owners to read the logs. After that it gives away the rest at
 * once.
 */
const WAIT_LEASES = 4;
/** How many times per lease a next owner is asked. */
const ASKS = 4;

type DepartureOptions = {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly leaseMs: number;
  /** The partitions that this process still owns. */
  readonly owned: () => readonly { readonly number: number }[];
  /** Returns the process that should own a partition after this process has ended; null if there is none. */
  readonly nextOf: (partition: number) => string | null;
  /** Whether this process can still give partitions away. */
  readonly mayGive: () => boolean;
  /** Tells all processes that this one is shutting down. */
  readonly announce: () => void;
  /** Asks a process to follow the log of a partition. It may answer late or not at all. */
  readonly ask: (process: string, partition: number) => void;
};

export class Departure {
  readonly #options: DepartureOptions;
  /** How often a process was asked to follow each partition. */
  readonly #asks = new Map<number, number>();
  #onChange: () => void = () => {};

  constructor(options: DepartureOptions) {
    this.#options = options;
  }

  /**
   * Resolves when no partition is left, when none can be given any more, or after WAIT_LEASES leases. Never rejects.
   */
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
      // Only one process is asked at a time. While a process reads a log, it delays the calls to a partition that it
      // has just taken over.
      if (asked === undefined || !left.includes(asked)) asked = this.#ask(left);
      await this.#change(leaseMs / ASKS);
    }
  }

  /** Call it when a partition was given away, or when the set of living processes has changed. */
  changed(): void {
    this.#onChange();
  }

  /** Returns the partitions that can be given, those with the fewest requests first. */
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
