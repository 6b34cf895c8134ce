/** Finds out when a pulse has come through the mailboxes of all partitions. */

/** The most pulses that are under way at once. */
const MOST = 64;

/** The pulses of a node whose rows did not arrive from all partitions yet. */
export class Pulses {
  readonly #partitions: number;
  readonly #arrived = new Map<string, number>();

  constructor(partitions: number) {
    this.#partitions = partitions;
  }

  /** Counts a row. True for the last one of its pulse, which proves that all mailboxes are read. */
  arrived(token: string): boolean {
    const seen = (this.#arrived.get(token) ?? 0) + 1;
    if (seen === this.#partitions) {
      this.#arrived.delete(token);
      return true;
    }
    this.#arrived.set(token, seen);
    const oldest = this.#arrived.keys().next();
    if (this.#arrived.size > MOST && !oldest.done) this.#arrived.delete(oldest.value);
    return false;
  }
}
