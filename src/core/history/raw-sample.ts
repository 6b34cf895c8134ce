/** Reads a bounded sample of stored rows, for operators only. */
import type { Completeness } from '../completeness.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { SCAN_BUDGET } from '../page.ts';
import type { Message, RawSample, SampleBounds } from './message.ts';

export type RawQuery = {
  /** The full key of a stream; null: all streams. */
  readonly stream?: string | null | undefined;
  /** Returns only payloads, and skips messages without one. */
  readonly valuesOnly?: boolean | null | undefined;
  /** The most items, 1 to 100; null: 100. */
  readonly limit?: number | null | undefined;
};

/**
 * A raw sample, newest message first. An item is a message as the backend stores it, or only its payload. It is null
 * where a payload could not be read.
 */
export type RawMessages = { readonly items: readonly (JsonText | null)[]; readonly completeness: Completeness };

/**
 * Collects a sample: the first messages that fit into the bounds. At most SCAN_BUDGET messages are examined. The first
 * message is taken whatever its size.
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
   * Offers one message. `stored` returns the row as its store keeps it, and is called only if the row is needed.
   * Returns false if the sample is cut here and no more messages are to be offered.
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
