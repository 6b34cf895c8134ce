/** Reads a bounded sample of stored history rows for administrators. */
import type { Completeness } from '../completeness.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { SCAN_BUDGET } from '../page.ts';
import type { Message, RawSample, SampleBounds } from './message.ts';

export type RawQuery = {
  /** The full key of a stream; null: all streams. */
  readonly stream?: string | null | undefined;
  /** If true, returns only payloads, and skips messages without one. */
  readonly valuesOnly?: boolean | null | undefined;
  /** The most items: 1 to 100; absent or null: 100. */
  readonly limit?: number | null | undefined;
};

/**
 * A sample of stored rows, newest first. An item is a message as the backend stores it, or only its payload. An item is
 * null if its payload could not be read.
 */
export type RawMessages = { readonly items: readonly (JsonText | null)[]; readonly completeness: Completeness };

/**
 * Collects a sample: the first messages that fit into the bounds. Examines at most SCAN_BUDGET messages. Always takes
 * the first message, whatever its size.
 */
export class Sampling {
  readonly #bounds: SampleBounds;
  readonly #rows: RawSample['rows'][number][] = [];
  #bytes = 0;
  #scanned = 0;
  #cut = false;

  constructor(bounds: SampleBounds) {
    this.#bounds = bounds;
  }

  /**
   * Offers a message to the sample. `stored`: returns the row as the store keeps it; called only if the row is needed.
   * Returns false if the sample is complete and no more messages should be offered.
   */
  offer(message: Message, stored: () => JsonText): boolean {
    const { of, messages, bytes } = this.#bounds;
    if (++this.#scanned > SCAN_BUDGET) return this.#end();
    if (of === 'payloads' && message.payload === null && message.spill === null) return true;
    if (this.#rows.length === messages) return this.#end();
    const text = stored();
    this.#bytes += of === 'payloads' ? message.payloadBytes : utf8Length(text);
    if (this.#bytes > bytes && this.#rows.length > 0) return this.#end();
    this.#rows.push({ message, stored: text });
    return true;
  }

  get sample(): Omit<RawSample, 'gaps'> {
    return { rows: this.#rows, cut: this.#cut };
  }

  #end(): false {
    this.#cut = true;
    return false;
  }
}
