/**
 * Counts the rows of each pulse. A pulse is one row that a node posts into its own mailbox in each partition. Once all
 * these rows were delivered, the node knows that it reads all its mailboxes.
 */
import { BoundedMap } from '../../../core/bounded-map.ts';

/** The most unfinished pulses that are remembered. */
const MOST = 64;

/** The pulses of a node that have not arrived from all partitions yet. */
export class Pulses {
  readonly #partitions: number;
  readonly #arrived = new BoundedMap<string, number>({ most: MOST });

  constructor(partitions: number) {
    this.#partitions = partitions;
  }

  /** Counts a row of a pulse. Returns true for the pulse's last row, which proves that all mailboxes are read. */
  arrived(token: string): boolean {
    const seen = (this.#arrived.get(token) ?? 0) + 1;
    if (seen === this.#partitions) {
      this.#arrived.delete(token);
      return true;
    }
    this.#arrived.set(token, seen);
    return false;
  }
}
