/** Lets users take turns with expensive reads, so that none of them waits behind all reads of another. */
import type { MaybePromise } from '../maybe-promise.ts';

export type ReadTurnsOptions = {
  /** The most reads of all holders together that may be in progress at the same time. */
  readonly atOnce: number;
  /** The most reads of one holder that may be in progress at the same time. */
  readonly perHolder: number;
};

/** The reads of one holder, in progress and waiting. The entry is removed when the holder has none. */
type Line = { running: number; readonly waiting: (() => void)[] };

/**
 * Bounds how many large reads of a store are in progress at once, and serves holders in turn. A user who asks for many
 * pages at once therefore delays only their own pages. The reads of one holder begin in the order of their requests. A
 * read that answers in the same tick takes no turn.
 */
export class ReadTurns {
  readonly #options: ReadTurnsOptions;
  /** The reads of each holder, in the order in which holders are served next. */
  readonly #lines = new Map<string, Line>();
  #running = 0;

  constructor(options: ReadTurnsOptions) {
    this.#options = options;
  }

  /** The number of reads that wait. */
  get waiting(): number {
    return this.#lines.values().reduce((sum, line) => sum + line.waiting.length, 0);
  }

  /** Runs `read`, at once if the bounds allow it. Its value and its error are passed on. */
  run<T>(holder: string, read: () => MaybePromise<T>): MaybePromise<T> {
    const line = this.#lines.get(holder) ?? { running: 0, waiting: [] };
    if (line.waiting.length === 0 && this.#mayRun(line)) return this.#begin(holder, line, read);
    this.#lines.set(holder, line);
    return new Promise<T>((resolve, reject) => {
      line.waiting.push(() => {
        try {
          const value = this.#begin(holder, line, read);
          resolve(value);
          if (!(value instanceof Promise)) this.#next();
        } catch (error) {
          reject(error);
          this.#next();
        }
      });
    });
  }

  #mayRun({ running }: Line): boolean {
    return running < this.#options.perHolder && this.#running < this.#options.atOnce;
  }

  #begin<T>(holder: string, line: Line, read: () => MaybePromise<T>): MaybePromise<T> {
    const value = read();
    if (!(value instanceof Promise)) return value;
    this.#lines.set(holder, line);
    line.running++;
    this.#running++;
    return value.finally(() => {
      line.running--;
      this.#running--;
      this.#next();
    });
  }

  /** Starts the next read. Its holder then goes to the end of the order. Forgets holders without reads on its way. */
  #next(): void {
    for (const [holder, line] of this.#lines) {
      if (line.waiting.length === 0 && line.running === 0) this.#lines.delete(holder);
      if (line.waiting.length === 0 || !this.#mayRun(line)) continue;
      this.#lines.delete(holder);
      this.#lines.set(holder, line);
      line.waiting.shift()?.();
      return;
    }
  }
}
