/**
 * Builds values from JSON text as a shape describes: the parts that the relay reads become values, and payloads stay
 * text.
 */
import {
  BRACE,
  BRACKET,
  endOfArray,
  endOfChecked,
  endOfObject,
  QUOTE,
  skipSpace,
  STOPPED,
} from '../protocol/json-scan.ts';
import { nameOf } from '../protocol/json.ts';
import { countParts, ownSlice, RawJson, trustJson, type JsonText } from './json.ts';

/**
 * How to build the value of a JSON text. `plain`: as JSON.parse does. `text`: as a RawJson that keeps the text; null
 * for the text `null`. `skipped`: not at all. A list shape gives the shape of each item, and an object shape that of
 * each member. For a list shape, a value that is not a list is built with the shape of an item. For an object shape, a
 * value that is not an object is built as `plain`.
 */
export type Shape = 'plain' | 'text' | 'skipped' | ListShape | ObjectShape;
export type ListShape = { readonly item: Shape };
export type ObjectShape = {
  readonly members: ReadonlyMap<string, Shape>;
  /** The shape of members that `members` does not name. */
  readonly others: 'plain' | 'skipped';
};

/**
 * Builds the value that the shape describes. If several members have the same name, the last one counts, as in
 * JSON.parse. Returns null if more than `most` members and items would have to be built.
 */
export function readShaped(json: JsonText, shape: Shape, most: number): { readonly value: unknown } | null {
  const reader = new ShapedReader(json, most);
  return reader.read(skipSpace(json, 0), shape) < 0 ? null : { value: reader.value };
}

/** Reads a valid JSON text in one pass. */
class ShapedReader {
  readonly #json: JsonText;
  #left: number;
  /** The value that was built last. */
  value: unknown = undefined;

  constructor(json: JsonText, most: number) {
    this.#json = json;
    this.#left = most;
  }

  /**
   * Builds the value at `at` into `value`. Returns the index where it ends, or a negative number if the limit was
   * reached.
   */
  read(at: number, shape: Shape): number {
    if (typeof shape === 'string') return this.#leaf(at, shape);
    const unit = this.#json.charCodeAt(at);
    if ('members' in shape) return unit === BRACE ? this.#object(at, shape) : this.#leaf(at, 'plain');
    return unit === BRACKET ? this.#list(at, shape.item) : this.read(at, shape.item);
  }

  #leaf(at: number, shape: 'plain' | 'text' | 'skipped'): number {
    const json = this.#json;
    const end = endOfChecked(json, at);
    if (shape === 'skipped') return end;
    const text = trustJson(ownSlice(json, at, end));
    if (shape === 'text') {
      this.value = text === 'null' ? null : new RawJson(text);
      return end;
    }
    const unit = json.charCodeAt(at);
    if (unit === BRACE || unit === BRACKET) this.#left -= countParts(text, this.#left);
    if (this.#left < 0) return STOPPED;
    // Most values are strings without escapes, which `nameOf` reads without JSON.parse.
    this.value = unit === QUOTE ? nameOf(json, at, end) : JSON.parse(text);
    return end;
  }

  #object(at: number, { members, others }: ObjectShape): number {
    const built: Record<string, unknown> = {};
    const end = endOfObject(this.#json, at, 1, (nameStart, nameEnd, from) => {
      const name = nameOf(this.#json, nameStart, nameEnd);
      const shape = members.get(name) ?? others;
      if (shape !== 'skipped' && --this.#left < 0) return STOPPED;
      const to = this.read(from, shape);
      if (to >= 0 && shape !== 'skipped') put(built, name, this.value);
      return to;
    });
    this.value = built;
    return end;
  }

  #list(at: number, item: Shape): number {
    const built: unknown[] = [];
    const end = endOfArray(this.#json, at, 1, (from) => {
      if (--this.#left < 0) return STOPPED;
      const to = this.read(from, item);
      if (to >= 0) built.push(this.value);
      return to;
    });
    this.value = built;
    return end;
  }
}

/**
 * Sets a member as JSON.parse does: a member named `__proto__` becomes an own property and does not set the prototype.
 */
function put(built: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(built, name, { value, enumerable: true, writable: true, configurable: true });
  else built[name] = value;
}
