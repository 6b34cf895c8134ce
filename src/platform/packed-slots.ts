/**
 * Stores the counts of the latest time slots in a packed form. A slot lists each index at which something was counted,
 * with its count. The numbers are encoded with seven bits to a byte, in a string of one byte per character. Such a
 * string takes 16 bytes more than its content; a typed array takes about 200 bytes more.
 */

/**
 * The bytes that a slot takes besides its content: the string's header, the slot's entry in the list, and the slot's
 * number.
 */
const SLOT_BYTES = 40;

export class Slots {
  /** The slots, oldest first. */
  #slots: { readonly number: number; readonly text: string }[] = [];
  #bytes = 0;
  readonly #most: number;
  readonly #maxBytes: number;

  /** Keeps the latest `most` slots, or fewer if they take more than `maxBytes` together. */
  constructor({ most, maxBytes }: { readonly most: number; readonly maxBytes: number }) {
    this.#most = most;
    this.#maxBytes = maxBytes;
  }

  /** Adds a slot after the others. `places`: the indexes at which something was counted, in ascending order. */
  add(number: number, places: readonly number[], counts: readonly number[]): void {
    const text = pack(places, counts);
    this.#slots.push({ number, text });
    this.#bytes += text.length + SLOT_BYTES;
    let gone = 0;
    while (this.#slots.length - gone > 1 && this.#isTooMuch(gone, number)) {
      this.#bytes -= (this.#slots[gone++]?.text.length ?? 0) + SLOT_BYTES;
    }
    if (gone > 0) this.#slots.splice(0, gone);
  }

  /** Removes the slots with this number or a higher one. Needed after the clock was set back. */
  dropFrom(number: number): void {
    const kept = this.#slots.findLastIndex((slot) => slot.number < number) + 1;
    for (const { text } of this.#slots.splice(kept)) this.#bytes -= text.length + SLOT_BYTES;
  }

  /** Calls `slot` for each slot from `first` to `last`, and `take` for each of its counts. */
  each(
    { first, last }: { readonly first: number; readonly last: number },
    slot: (number: number) => void,
    take: (number: number, place: number, count: number) => void,
  ): void {
    for (const { number, text } of this.#slots) {
      if (number < first || number > last) continue;
      slot(number);
      unpack(text, (place, count) => take(number, place, count));
    }
  }

  /** How many bytes all slots take, approximately. */
  get bytes(): number {
    return this.#bytes;
  }

  #isTooMuch(gone: number, newest: number): boolean {
    const oldest = this.#slots[gone]?.number ?? newest;
    return oldest <= newest - this.#most || this.#bytes > this.#maxBytes;
  }
}

const MORE = 0x80;
const BITS = 7;

function pack(places: readonly number[], counts: readonly number[]): string {
  const bytes: number[] = [];
  let before = -1;
  for (const [i, place] of places.entries()) {
    put(bytes, place - before);
    put(bytes, counts[i] ?? 0);
    before = place;
  }
  return Buffer.from(bytes).toString('latin1');
}

function put(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= MORE; rest = Math.floor(rest / MORE)) bytes.push((rest % MORE) | MORE);
  bytes.push(rest);
}

function unpack(text: string, take: (place: number, count: number) => void): void {
  let place = -1;
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += BITS) {
      const byte = text.charCodeAt(at++);
      value += (byte & (MORE - 1)) * 2 ** shift;
      if (byte < MORE) return value;
    }
  };
  while (at < text.length) {
    place += next();
    take(place, next());
  }
}
