/**
 * Lets nothing leave the process before what it depends on is recorded. A gate knows numbers that grow, and no log: what
 * a turn of the event loop has decided has the turn's number.
 */

/** Something that holds bytes until the gate opens, such as a socket. */
export type Holder = { destroy(): void };

/** What waits until everything up to a number is recorded. */
type Waiting = { readonly after: number; readonly run: () => void; readonly holder: Holder | null };

/**
 * `open`: lets through what is recorded. `closed`: the log was closed in order, and nothing is decided any more: all may
 * leave. `failed`: nothing leaves any more.
 */
type GateState = 'open' | 'closed' | 'failed';

export class Gate {
  #waiting: Waiting[] = [];
  #recorded = 0;
  #state: GateState = 'open';
  /** Whether `open` runs what has waited: what comes meanwhile is run after it. */
  #opening = false;

  /** The greatest number up to which everything is recorded. */
  get recorded(): number {
    return this.#recorded;
  }

  /**
   * Calls `run` once everything up to this number is recorded, at once if it is. Keeps the order of calls. `holder`: is
   * destroyed if what `run` waits for turns out to be lost.
   */
  pass(after: number, run: () => void, holder: Holder | null = null): void {
    if (this.#state === 'failed') return;
    const isFirst = this.#waiting.length === 0 && !this.#opening;
    if (this.#state === 'closed' || (isFirst && after <= this.#recorded)) return run();
    this.#waiting.push({ after, run, holder });
  }

  /** Everything up to this number is recorded. */
  open(upTo: number): void {
    if (this.#state !== 'open') return;
    this.#recorded = Math.max(this.#recorded, upTo);
    if (this.#opening) return;
    this.#opening = true;
    try {
      for (let ready = this.#takeReady(); ready.length > 0; ready = this.#takeReady())
        for (const { run } of ready) run();
    } finally {
      this.#opening = false;
    }
  }

  /**
   * A part of what was decided here is lost. What waits now may depend on it and never leaves; what is decided from now
   * on may.
   */
  lose(): void {
    const lost = this.#waiting;
    this.#waiting = [];
    for (const { holder } of lost) holder?.destroy();
  }

  /** Everything is recorded, and nothing more will be decided. */
  close(): void {
    if (this.#state !== 'open') return;
    this.open(Infinity);
    this.#state = 'closed';
  }

  /** Nothing can be recorded any more. */
  fail(): void {
    this.#state = 'failed';
    this.#waiting = [];
  }

  #takeReady(): readonly Waiting[] {
    const first = this.#waiting.findIndex(({ after }) => after > this.#recorded);
    return this.#waiting.splice(0, first < 0 ? this.#waiting.length : first);
  }
}
