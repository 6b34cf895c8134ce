/**
 * The store reads of one GraphQL document: remembers what was read, limits concurrent loads, and stops when no
 * requester waits.
 */
import { CallboardError } from './errors.ts';
import { READING_BYTES, ROWS_LOADED_TOGETHER, SCANNED_TOGETHER } from './limits.ts';

/** A value that was read, and its approximate size in memory, in bytes. */
export type Sized<T> = { readonly value: T; readonly bytes: number };

/** The member of AbortSignal that a read uses. */
type GivenUp = { readonly aborted: boolean };

/**
 * The reads of one document, or of one event of a subscription. A store remembers here what it has read, so that other
 * fields, aliases and pages of the same document do not read it again. At most READING_BYTES are remembered; a value
 * beyond this limit is read again. A reading is never shared between requesters or documents.
 */
export class DocumentReading {
  readonly #signal: GivenUp | undefined;
  // Both are created at their first use, because the memory backend never uses them.
  #loads: Loads | null;
  #known: Map<string, Promise<unknown>> | null = null;
  #bytes = 0;
  #scanned = 0;
  #ended = false;

  /** `signal`: aborted when the requester hangs up; absent if the reader cannot hang up. */
  constructor(signal?: GivenUp, loads: Loads | null = null) {
    this.#signal = signal;
    this.#loads = loads;
  }

  /** Whether the requester no longer waits for the answer. */
  get aborted(): boolean {
    return this.#ended || this.#signal?.aborted === true;
  }

  /** Throws `store_unavailable` if the requester no longer waits for the answer. Stores call this before each read. */
  check(): void {
    if (this.aborted) throw new CallboardError('store_unavailable', 'The answer is no longer awaited.');
  }

  /**
   * Returns a reading that ends with this one and shares its limit of concurrent loads, but has a memory of its own.
   */
  unremembered(): DocumentReading {
    return new DocumentReading(this, (this.#loads ??= new Loads()));
  }

  /**
   * Calls `load`, which reads about `rows` rows of the store. Loads that run at the same time have at most
   * ROWS_LOADED_TOGETHER rows in total, so that not too many rows are decoded in one turn of the event loop. A larger
   * load runs alone. If there is room, `load` is called in the same tick, so that several loads share one round trip.
   */
  load<T>(rows: number, load: () => Promise<T>): Promise<T> {
    return (this.#loads ??= new Loads()).run(rows, () => {
      this.check();
      return load();
    });
  }

  /**
   * Counts rows that a filter has scanned. Called only where scanning is expensive, as for command records in Redis.
   */
  countScanned(rows: number): void {
    this.#scanned += rows;
  }

  /** Whether the filters of the document have scanned so many expensive rows that its pages must end. */
  get scannedEnough(): boolean {
    return this.#scanned >= SCANNED_TOGETHER;
  }

  /** Ends the reading: from now on `check` throws. Called when the document's time limit is reached. */
  end(): void {
    this.#ended = true;
    this.forget();
  }

  /**
   * Returns the result of `read`, from memory if the same key was read before. The result is remembered if there is
   * room, and if `read` did not fail. A call that comes while the first read runs gets the result of that read.
   */
  once<T>(key: string, read: () => Promise<Sized<T>>): Promise<T> {
    const known = (this.#known ??= new Map());
    const before = known.get(key);
    // A key includes the kind of its value, so all values of one key have the same type.
    if (before) return before as Promise<T>;
    const found = read().then(
      ({ value, bytes }) => {
        if (this.#known === known && this.#bytes + bytes <= READING_BYTES) this.#bytes += bytes;
        else known.delete(key);
        return value;
      },
      (error: unknown) => {
        known.delete(key);
        throw error;
      },
    );
    known.set(key, found);
    return found;
  }

  /** Forgets all values, so that the next event of a subscription reads them again. */
  forget(): void {
    this.#known = null;
    this.#bytes = 0;
    this.#scanned = 0;
  }
}

/** The loads of one document: those that run, and those that wait for room. */
class Loads {
  #rows = 0;
  #waiting: (() => void)[] = [];

  async run<T>(rows: number, load: () => Promise<T>): Promise<T> {
    while (this.#rows > 0 && this.#rows + rows > ROWS_LOADED_TOGETHER)
      await new Promise<void>((go) => this.#waiting.push(go));
    this.#rows += rows;
    try {
      return await load();
    } finally {
      this.#rows -= rows;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const go of waiting) go();
    }
  }
}
