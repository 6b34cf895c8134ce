/**
 * Holds back whatever leaves the process until the records that it depends on are written.
 *
 * A gate compares growing numbers and knows no log. Everything that one turn of the event loop decides has the number
 * of that turn.
 */

/** Holds bytes until the gate opens, for example a socket. */
export type Holder = { destroy(): void };

/** A call that waits until everything up to a number is recorded. */
type Waiting = { readonly after: number; readonly run: () => void; readonly holder: Holder | null };

/**
 * `open`: calls pass once their records are written. `closed`: the log was closed in order and nothing more is decided,
 * so every call passes. `failed`: no call passes any more.
 */
type GateState = 'open' | 'closed' | 'failed';

export class Gate {
  #waiting: Waiting[] = [];
  #recorded = 0;
  #state: GateState = 'open';
  /** True while `open` runs calls that waited. A call that arrives then must wait its turn. */
  #opening = false;

  /** The greatest number up to which everything is recorded. */
  get recorded(): number {
    return this.#recorded;
  }

  /**
   * Calls `run` once everything up to the number `after` is recorded; at once if it already is. Runs calls in the order
   * of arrival. `holder` is destroyed if the records that `run` waits for are lost.
   */
  pass(after: number, run: () => void, holder: Holder | null = null): void {
    if (this.#state === 'failed') return;
    const isFirst = this.#waiting.length === 0 && !this.#opening;
    if (this.#state === 'closed' || (isFirst && after <= this.#recorded)) return run();
    this.#waiting.push({ after, run, holder });
  }

  /** Lets calls pass up to a number: everything up to it is recorded. */
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
   * Drops the calls that wait now and destroys their holders, because some records were lost and these calls may depend
   * on them. Later calls may still pass.
   */
  lose(): void {
    const lost = this.#waiting;
    this.#waiting = [];
    for (const { holder } of lost) holder?.destroy();
  }

  /** Lets everything pass: all is recorded, and nothing more will be decided. */
  close(): void {
    if (this.#state !== 'open') return;
    this.open(Infinity);
    this.#state = 'closed';
  }

  /** Lets nothing pass any more: nothing can be recorded. */
  fail(): void {
    this.#state = 'failed';
    this.#waiting = [];
  }

  #takeReady(): readonly Waiting[] {
    const first = this.#waiting.findIndex(({ after }) => after > this.#recorded);
    return this.#waiting.splice(0, first < 0 ? this.#waiting.length : first);
  }
}
