/** Leaves out events beyond a rate, and counts them. */
import { COMMAND_EVENTS_PER_SECOND } from '../limits.ts';

const SECOND_MS = 1000;

/** Lets the first COMMAND_EVENTS_PER_SECOND events of each second pass, and counts the others. */
export class EventSampler {
  #since = -Infinity;
  #passed = 0;
  #missed = 0;

  /** Counts one event as left out: events may have been lost, and nobody knows how many. */
  lost(): void {
    this.#missed = Math.max(1, this.#missed);
  }

  /**
   * Decides whether an event passes. Returns null if it is left out; otherwise the number of events that were left out
   * since the last one that passed. `missed`: the number of events that were left out on their way to this sampler;
   * they are counted too.
   */
  take(now: number, missed = 0): number | null {
    if (now >= this.#since + SECOND_MS || now < this.#since) {
      this.#since = now;
      this.#passed = 0;
    }
    if (this.#passed === COMMAND_EVENTS_PER_SECOND) {
      this.#missed += missed + 1;
      return null;
    }
    this.#passed++;
    const before = this.#missed + missed;
    this.#missed = 0;
    return before;
  }
}
