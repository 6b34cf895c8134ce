/**
 * The last batches of a log, which its owner appends again if Redis loses them: those that Redis has not confirmed, and
 * those that a failover may still lose.
 */

/** The facts of one turn of the event loop. `turn`: the number of the turn. `at`: its time, in elapsed milliseconds. */
export type Batch = { readonly number: number; readonly text: string; readonly turn: number; readonly at: number };

/**
 * How long a confirmed batch is kept, in milliseconds. A replica that is further behind should not become the primary.
 */
export const KEPT_MS = 10_000;
/**
 * The interval at which old batches are removed, in milliseconds. Removing moves all later batches in the array, so
 * many are removed at once.
 */
export const FORGET_EVERY_MS = 1_000;
/** The most characters of confirmed batches that are kept. */
export const KEPT_CHARS = 16 * 1024 * 1024;

export class Tail {
  /** The kept batches, with consecutive numbers. */
  readonly #batches: Batch[] = [];
  #confirmed: number;
  /** The number of the last batch that is no longer kept. */
  #forgotten: number;
  #confirmedChars = 0;
  #unconfirmedChars = 0;

  /** `number`: the number of the last batch in the log. */
  constructor(number: number) {
    this.#confirmed = this.#forgotten = number;
  }

  /** The number of the last batch that Redis has confirmed. */
  get confirmed(): number {
    return this.#confirmed;
  }

  /** The number of characters in the batches that Redis has not confirmed. */
  get unconfirmedChars(): number {
    return this.#unconfirmedChars;
  }

  /** The turn of the first batch that Redis has not confirmed; Infinity if all are confirmed. */
  get unconfirmedTurn(): number {
    return this.#batches[this.#after(this.#confirmed)]?.turn ?? Infinity;
  }

  /** Adds the batch that follows the last one. */
  add(batch: Batch): void {
    this.#batches.push(batch);
    this.#unconfirmedChars += batch.text.length;
  }

  /** Notes that Redis has all batches up to this number. Forgets batches that are too old or too many to be kept. */
  confirm(number: number, now: number): void {
    if (number <= this.#confirmed) return;
    const chars = charsOf(this.#batches.slice(this.#after(this.#confirmed), this.#after(number)));
    this.#unconfirmedChars -= chars;
    this.#confirmedChars += chars;
    this.#confirmed = number;
    const oldest = this.#batches[0]?.at ?? now;
    if (now - oldest > KEPT_MS + FORGET_EVERY_MS || this.#confirmedChars > KEPT_CHARS)
      this.#forget(({ at }) => now - at > KEPT_MS || this.#confirmedChars > KEPT_CHARS);
  }

  /** Notes that Redis has lost the batches after this number. */
  lose(number: number): void {
    const lost = charsOf(this.#batches.slice(this.#after(number), this.#after(this.#confirmed)));
    this.#unconfirmedChars += lost;
    this.#confirmedChars -= lost;
    this.#confirmed = Math.min(this.#confirmed, number);
  }

  /**
   * Forgets the batches up to this number, because a snapshot has replaced them. Redis must have confirmed
   * these batches.
   */
  replace(number: number): void {
    this.#forget((batch) => batch.number <= number);
  }

  /** Returns the batches after this number; null if some of them are no longer kept. */
  after(number: number): readonly Batch[] | null {
    return number < this.#forgotten ? null : this.#batches.slice(this.#after(number));
  }

  /** Returns the index of the batch after this number. */
  #after(number: number): number {
    const first = this.#batches[0]?.number ?? number + 1;
    return Math.max(0, number + 1 - first);
  }

  #forget(isOver: (batch: Batch) => boolean): void {
    let count = 0;
    for (const batch of this.#batches) {
      if (batch.number > this.#confirmed || !isOver(batch)) break;
      this.#confirmedChars -= batch.text.length;
      this.#forgotten = batch.number;
      count++;
    }
    if (count > 0) this.#batches.splice(0, count);
  }
}

function charsOf(batches: readonly Batch[]): number {
  return batches.reduce((sum, { text }) => sum + text.length, 0);
}
