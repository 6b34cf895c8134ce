/** JSON text and JSON values: reading, writing and measuring them. */
import { JSON_DEPTH } from '../protocol/bounds.ts';
import { RawJson } from '../protocol/json-write.ts';
import { countParts, nameOf, ownSlice, trustJson, type JsonFault, type JsonText } from '../protocol/json.ts';
import {
  BRACE,
  BRACE_END,
  BRACKET,
  BRACKET_END,
  DEPTH,
  QUOTE,
  STOPPED,
  endOfArray,
  endOfChecked,
  endOfObject,
  endOfScalar,
  endOfString,
  skipSpace,
} from '../protocol/json-scan.ts';

/**
 * The JSON tools of `src/protocol`, for core. `JsonText` is JSON text that the relay retains, forwards and answers
 * without parsing and serializing it again.
 */
export * from '../protocol/json.ts';
export * from '../protocol/json-write.ts';

/** A parsed JSON value. */
type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Serializes a value. Returns null for undefined, which means "no payload". */
export function toJson(value: unknown): JsonText | null {
  return value === undefined ? null : trustJson(JSON.stringify(value) ?? 'null');
}

export function fromJson(text: JsonText | null): JsonValue | null {
  return text === null ? null : (JSON.parse(text) as JsonValue);
}

/** Parses a text that may not be JSON; undefined if it is not. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the canonical JSON of a value (RFC 8785): members sorted by UTF-16 code units, numbers and strings as
 * ECMAScript writes them. `value` is one that JSON.parse could have returned, or a plain value of the same form.
 */
export function canonicalJson(value: unknown): string {
  // Most objects have their members in order already, and one JSON.stringify writes them.
  return isSorted(value) ? (JSON.stringify(value) ?? 'null') : sortedJson(value);
}

function isSorted(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isSorted);
  const members = value as Readonly<Record<string, unknown>>;
  let last = '';
  for (const key of Object.keys(members)) {
    if (key < last || !isSorted(members[key])) return false;
    last = key;
  }
  return true;
}

function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => sortedJson(item ?? null)).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  let text = '{';
  const members = value as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(members).sort()) {
    const member = members[key];
    if (member !== undefined) text += `${text.length > 1 ? ',' : ''}${JSON.stringify(key)}:${sortedJson(member)}`;
  }
  return `${text}}`;
}

export { longerThan, utf8Length } from '../protocol/bounds.ts';

// Builds values from JSON text as a shape describes: the parts that the relay reads become values, and payloads stay
// text.

/**
 * How to build the value of a JSON text. `plain`: as JSON.parse does. `text`: as a RawJson that keeps the text; null
 * for the text `null`. `skipped`: not at all. A list shape gives the shape of each item, and an object shape that of
 * each member. For a list shape, a value that is not a list is built with the shape of an item. For an object shape, a
 * value that is not an object is built as `plain`.
 */
export type Shape = 'plain' | 'text' | 'skipped' | ListShape | ObjectShape;
type ListShape = { readonly item: Shape };
export type ObjectShape = {
  readonly members: ReadonlyMap<string, Shape>;
  /** The shape of members that `members` does not name. */
  readonly others: 'plain' | 'skipped';
};

/**
 * Builds the value that the shape describes. If several members have the same name, the last one counts, as in
 * JSON.parse. Returns a fault if more than `most` members and items would have to be built, or if a text or a plain value
 * has more than JSON_DEPTH levels.
 */
export function readShaped(json: JsonText, shape: Shape, most: number): { readonly value: unknown } | ShapeFault {
  const reader = new ShapedReader(json, most);
  const end = reader.read(skipSpace(json, 0), shape);
  return end >= 0 ? { value: reader.value } : end === DEPTH ? 'depth' : 'members';
}

type ShapeFault = Exclude<JsonFault, 'syntax'>;

/** Returns what is wrong with a value that could not be built, for its sender. */
export function shapeFaultText(fault: ShapeFault, most: number): string {
  return fault === 'depth'
    ? `JSON may be nested at most ${JSON_DEPTH} levels deep`
    : `at most ${most} members and items are read`;
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
    if (shape === 'skipped' || end < 0) return end;
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

// Computes the canonical text of a JSON text. Two invocations have the same params if the canonical texts are equal.

/**
 * Returns the canonical text of a JSON text; equivalent texts have the same one. It has no white space, members sorted
 * by name (UTF-16 code units), strings as JSON.stringify writes them, and numbers as exact decimals. Members with the
 * same name are all kept, in their order. `1.0`, `1` and `10e-1` are the same number, 9007199254740992 and
 * 9007199254740993 are different ones, and `-0` is `0`. Time is O(n log n) in the length, at any depth; exponents are
 * never expanded.
 */
export function canonicalText(json: JsonText): string {
  return new Canonical(json).value();
}

/** Writes the canonical text of a valid JSON text in one pass. */
class Canonical {
  readonly #json: string;
  #at = 0;

  constructor(json: JsonText) {
    this.#json = json;
  }

  value(): string {
    const first = this.#next();
    if (first === QUOTE) return canonicalString(this.#take(endOfString(this.#json, this.#at)));
    if (first === BRACE) return this.#object();
    if (first === BRACKET) return this.#array();
    const text = this.#take(endOfScalar(this.#json, this.#at));
    // A digit or a minus sign sorts before every letter, so any other scalar is `true`, `false` or `null`.
    return first > NINE ? text : canonicalNumber(text);
  }

  #object(): string {
    const names: string[] = [];
    const texts: string[] = [];
    let text = '';
    let sorted = true;
    this.#at++;
    for (let last = ''; this.#next() !== BRACE_END;) {
      if (names.length > 0) this.#skip();
      const written = this.#take(endOfString(this.#json, this.#at));
      const name = decodedName(written);
      this.#next();
      this.#at++;
      const member = `${canonicalString(written)}:${this.value()}`;
      text += names.length > 0 ? `,${member}` : member;
      names.push(name);
      texts.push(member);
      sorted &&= last <= name;
      last = name;
    }
    this.#at++;
    return `{${sorted ? text : sortedBy(names, texts)}}`;
  }

  #array(): string {
    let text = '';
    this.#at++;
    for (let count = 0; this.#next() !== BRACKET_END; count++) {
      if (count > 0) this.#skip();
      text += count > 0 ? `,${this.value()}` : this.value();
    }
    this.#at++;
    return `[${text}]`;
  }

  /** Skips the comma between two items. */
  #skip(): void {
    this.#at++;
    this.#next();
  }

  /** Skips white space and returns the first character of the next token. */
  #next(): number {
    this.#at = skipSpace(this.#json, this.#at);
    return this.#json.charCodeAt(this.#at);
  }

  /**
   * Consumes the text up to `end`. Throws if `end` does not lie ahead, so that a text that is not JSON cannot cause an
   * endless loop.
   */
  #take(end: number): string {
    if (end <= this.#at) throw new SyntaxError('not JSON');
    const text = this.#json.slice(this.#at, end);
    this.#at = end;
    return text;
  }
}

/** Joins members in the order of their names. Sorting is stable: members with the same name stay in their order. */
function sortedBy(names: readonly string[], texts: readonly string[]): string {
  const order = names.map((name, i) => ({ name, text: texts[i] ?? '' }));
  order.sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
  return order.map(({ text }) => text).join(',');
}

function decodedName(written: string): string {
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

/**
 * Returns the canonical form of a string. A text without escapes is kept as it is, unless it holds a lone surrogate:
 * UTF-8 encodes all lone surrogates alike, so JSON.stringify escapes them.
 */
function canonicalString(written: string): string {
  const asWritten = !written.includes('\\') && written.isWellFormed();
  return asWritten ? written : JSON.stringify(JSON.parse(written));
}

const NINE = 0x39;
const PLAIN_INTEGER = /^-?\d*[1-9]$/;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?)0*(\d+))?$/;
/** The most digits of an exponent that a double holds exactly. */
const SHORT_EXPONENT = 15;

/**
 * Returns a number in its one canonical form: the sign, the digits without leading and trailing zeros, then `e` and the
 * power of ten if that is not 0.
 */
function canonicalNumber(written: string): string {
  if (PLAIN_INTEGER.test(written)) return written;
  const [, sign = '', whole = '', fraction = '', exponentSign = '', exponent = '0'] = NUMBER.exec(written) ?? [];
  const all = (whole + fraction).replace(/^0+/, '');
  if (all === '') return '0';
  const digits = withoutZeros(all);
  const shift = all.length - digits.length - fraction.length;
  const power =
    exponent.length > SHORT_EXPONENT
      ? BigInt(exponentSign === '-' ? `-${exponent}` : exponent) + BigInt(shift)
      : Number(exponentSign + exponent) + shift;
  return `${sign}${digits}${String(power) === '0' ? '' : `e${power}`}`;
}

/** Removes trailing zeros in linear time; a regular expression would scan each inner run of zeros again. */
function withoutZeros(digits: string): string {
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end--;
  return digits.slice(0, end);
}
