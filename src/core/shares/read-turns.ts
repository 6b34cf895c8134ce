/** Lets users take turns with expensive reads, so that none of them waits behind all reads of another. */
import type { EventLoop } from '../event-loop.ts';
import type { MaybePromise } from '../maybe-promise.ts';

export type ReadTurnsOptions = {
  /** The most reads of all holders together that may be in progress at the same time. */
  readonly atOnce: number;
  /** The most reads of one holder that may be in progress at the same time. */
  readonly perHolder: number;
  /** Bounds what begins in one turn of the event loop. Absent: a read that answers in the same tick takes no turn. */
  readonly paced?: Pacing;
};

export type Pacing = {
  readonly loop: EventLoop;
  /** The most that the reads which begin in one turn of the event loop cost together. A dearer read begins alone. */
  readonly costPerTurn: number;
  /** A read up to this cost does not count in `atOnce` and `perHolder`. */
  readonly small: number;
};

type Waiting = { readonly cost: number; readonly start: () => void };
/** The reads of one holder, in progress and waiting. The entry is removed when the holder has none. */
type Line = { running: number; readonly waiting: Waiting[] };

/**
 * Bounds how many large reads are in progress at once, and serves holders in turn. A user who asks for much at once
 * therefore delays only their own reads. The reads of one holder begin in the order of their requests. With `paced`, a
 * read that answers in the same tick takes a turn too: once the reads of a turn of the event loop have cost enough, the
 * next one begins after the loop did other work, and holders that were served in this turn come after the others.
 */
export class ReadTurns {
  readonly #options: ReadTurnsOptions;
  /** The reads of each holder, in the order in which holders are served next. */
  readonly #lines = new Map<string, Line>();
  #running = 0;
  /** What the reads cost that began since `#turnIsOver`. */
  #spent = 0;
  /** Whether `#turnIsOver` will be called. A turn of cheap reads alone is not worth that call. */
  #awaitsTurn = false;
  /** The holders that were served in this turn of the event loop. */
  readonly #served = new Set<string>();

  constructor(options: ReadTurnsOptions) {
    this.#options = options;
  }

  /** The number of reads that wait. */
  get waiting(): number {
    return this.#lines.values().reduce((sum, line) => sum + line.waiting.length, 0);
  }

  /**
   * Runs `read`, at once if the bounds allow it. Its value and its error are passed on. `cost` is only used by `paced`
   * turns, in the unit of `costPerTurn`; absent: the read is as dear as a whole turn.
   */
  run<T>(holder: string, read: () => MaybePromise<T>, cost = this.#options.paced?.costPerTurn ?? 1): MaybePromise<T> {
    const line = this.#lines.get(holder) ?? { running: 0, waiting: [] };
    if (line.waiting.length === 0 && this.#mayRun(line, cost)) return this.#begin(holder, line, { read, cost });
    this.#lines.set(holder, line);
    const { paced } = this.#options;
    if (paced && this.#spent > 0) this.#awaitTurn(paced);
    return new Promise<T>((resolve, reject) => {
      const start = (): void => {
        try {
          resolve(this.#begin(holder, line, { read, cost }));
        } catch (error) {
          reject(error);
        }
      };
      line.waiting.push({ cost, start });
    });
  }

  #mayRun({ running }: Line, cost: number): boolean {
    const { paced, perHolder, atOnce } = this.#options;
    if (paced && this.#spent > 0 && this.#spent + cost > paced.costPerTurn) return false;
    return this.#isSmall(cost) || (running < perHolder && this.#running < atOnce);
  }

  #isSmall(cost: number): boolean {
    return this.#options.paced !== undefined && cost <= this.#options.paced.small;
  }

  #begin<T>(
    holder: string,
    line: Line,
    { read, cost }: { read: () => MaybePromise<T>; cost: number },
  ): MaybePromise<T> {
    this.#spend(holder, cost);
    const value = read();
    if (!(value instanceof Promise) || this.#isSmall(cost)) return value;
    this.#lines.set(holder, line);
    line.running++;
    this.#running++;
    return value.finally(() => {
      line.running--;
      this.#running--;
      this.#next();
    });
  }

  #spend(holder: string, cost: number): void {
    const { paced } = this.#options;
    if (!paced) return;
    this.#spent += Math.max(1, cost);
    this.#served.add(holder);
    if (this.#spent > paced.costPerTurn / 2) this.#awaitTurn(paced);
  }

  #awaitTurn({ loop }: Pacing): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    loop.afterOthers(() => this.#turnIsOver());
  }

  #turnIsOver(): void {
    this.#awaitsTurn = false;
    this.#spent = 0;
    for (const holder of this.#served) this.#toTheEnd(holder);
    this.#served.clear();
    this.#next();
  }

  #toTheEnd(holder: string): void {
    const line = this.#lines.get(holder);
    if (!line) return;
    this.#lines.delete(holder);
    this.#lines.set(holder, line);
  }

  /** Starts the reads that may begin now. If one waits for the next turn of the event loop, that turn is awaited. */
  #next(): void {
    while (this.#startOne());
    const { paced } = this.#options;
    if (paced && this.#spent > 0 && this.waiting > 0) this.#awaitTurn(paced);
  }

  /** Starts the next read. Its holder then goes to the end of the order. Forgets holders without reads on its way. */
  #startOne(): boolean {
    for (const [holder, line] of this.#lines) {
      const [first] = line.waiting;
      if (!first && line.running === 0) this.#lines.delete(holder);
      if (!first || !this.#mayRun(line, first.cost)) continue;
      this.#toTheEnd(holder);
      line.waiting.shift();
      first.start();
      return true;
    }
    return false;
  }
}
