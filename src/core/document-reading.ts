/**
 * The reads of one GraphQL document from a store: remembers what was read for other fields of the document, bounds the
 * loads in progress, and refuses further reads once no requester waits for the answer.
 */
import { CallboardError } from './errors.ts';
import { READING_BYTES, ROWS_LOADED_TOGETHER, SCANNED_TOGETHER } from './limits.ts';

/** A value that was read, and roughly how many bytes it takes in memory. */
export type Sized<T> = { readonly value: T; readonly bytes: number };

/** The part of an AbortSignal that a read needs. */
type GivenUp = { readonly aborted: boolean };

/**
 * The reads of one document, or of one event of a subscription. A store remembers here what it read, so that other
 * fields, aliases and pages of the same document do not read it again. At most READING_BYTES are remembered; what
 * exceeds them is read again. Never shared between requesters or documents.
 */
export class DocumentReading {
  readonly #signal: GivenUp | undefined;
  // Both are created when a store uses them: the memory backend never does.
  #loads: Loads | null;
  #known: Map<string, Promise<unknown>> | null = null;
  #bytes = 0;
  #scanned = 0;
  #ended = false;

  /** `signal` is aborted when the requester hangs up; absent: the reader never hangs up. */
  constructor(signal?: GivenUp, loads: Loads | null = null) {
    this.#signal = signal;
    this.#loads = loads;
  }

  /** Whether no requester waits for the answer any more. */
  get aborted(): boolean {
    return this.#ended || this.#signal?.aborted === true;
  }

  /** Throws `store_unavailable` if no requester waits for the answer any more. Stores call it before each read. */
  check(): void {
    if (this.aborted) throw new CallboardError('store_unavailable', 'The answer is no longer awaited.');
  }

  /** Returns a reading that ends with this one and shares its bound of loads, but has a memory of its own. */
  unremembered(): DocumentReading {
    return new DocumentReading(this, (this.#loads ??= new Loads()));
  }

  /**
   * Calls `load`, which reads about `rows` rows of the store. All loads in progress together have at most
   * ROWS_LOADED_TOGETHER rows, so that not too many answers are decoded in one turn of the event loop. A load of more
   * rows runs alone. Loads of few rows begin in the tick of their call, and so share a round trip.
   */
  load<T>(rows: number, load: () => Promise<T>): Promise<T> {
    return (this.#loads ??= new Loads()).run(rows, () => {
      this.check();
      return load();
    });
  }

  /** Counts rows that a filter of the document scans where each row is dear, as records of commands are over Redis. */
  countScanned(rows: number): void {
    this.#scanned += rows;
  }

  /** Whether the filters of the document have scanned so many dear rows that its pages must end. */
  get scannedEnough(): boolean {
    return this.#scanned >= SCANNED_TOGETHER;
  }

  /** Ends the reading: from now on `check` throws. Called when the time of the document is over. */
  end(): void {
    this.#ended = true;
    this.forget();
  }

  /**
   * Returns what `read` returned for this key before. Otherwise reads it, and remembers it if there is room. A read
   * that fails is not remembered. Reads that begin before the first one is done share its result.
   */
  once<T>(key: string, read: () => Promise<Sized<T>>): Promise<T> {
    const known = (this.#known ??= new Map());
    const before = known.get(key);
    // The key names the kind of the value, so a key always has values of one type.
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

  /** Forgets everything, so that the next event of a subscription reads anew. */
  forget(): void {
    this.#known = null;
    this.#bytes = 0;
    this.#scanned = 0;
  }
}

/** The loads of one document that are in progress, and those that wait for them. */
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
