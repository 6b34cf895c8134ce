/** Reads, writes, compares and measures JSON text and JSON values. */
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
 * Re-exports the JSON tools of `src/protocol` to core. A `JsonText` is valid JSON that the relay stores and forwards as
 * text, without parsing it.
 */
export * from '../protocol/json.ts';
export * from '../protocol/json-write.ts';

/** A parsed JSON value. */
type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Serializes a value. Undefined means "no payload" and gives null. */
export function toJson(value: unknown): JsonText | null {
  return value === undefined ? null : trustJson(JSON.stringify(value) ?? 'null');
}

export function fromJson(text: JsonText | null): JsonValue | null {
  return text === null ? null : (JSON.parse(text) as JsonValue);
}

/** Parses a text. Returns undefined if it is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the canonical JSON of a value (RFC 8785): members sorted by UTF-16 code units, numbers and strings as
 * ECMAScript writes them. `value` must be a result of JSON.parse, or a plain value of the same structure.
 */
export function canonicalJson(value: unknown): string {
  // Most objects already have their members in order, so that JSON.stringify alone is enough.
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

// Builds values from JSON text by a shape. The members that the relay reads become values, and payloads stay text.

/**
 * How to build the value of a JSON text. `plain`: as JSON.parse does. `text`: as a RawJson, which keeps the text; the
 * text `null` gives null. `skipped`: not at all. A list shape contains the shape of its items, and an object shape the
 * shapes of its members. If the shape is a list and the value is not, the value is built with the shape of an item. If
 * the shape is an object and the value is not, the value is built as `plain`.
 */
export type Shape = 'plain' | 'text' | 'skipped' | ListShape | ObjectShape;
type ListShape = { readonly item: Shape };
export type ObjectShape = {
  readonly members: ReadonlyMap<string, Shape>;
  /** The shape of members that `members` does not name. */
  readonly others: 'plain' | 'skipped';
};

/**
 * Builds the value that the shape describes. If several members have the same name, the last one wins, as in
 * JSON.parse. Returns a fault if more than `most` members and items would have to be built, or if a text or a plain
 * value is nested more than JSON_DEPTH levels deep.
 */
export function readShaped(json: JsonText, shape: Shape, most: number): { readonly value: unknown } | ShapeFault {
  const reader = new ShapedReader(json, most);
  const end = reader.read(skipSpace(json, 0), shape);
  return end >= 0 ? { value: reader.value } : end === DEPTH ? 'depth' : 'members';
}

type ShapeFault = Exclude<JsonFault, 'syntax'>;

/** Returns a message about a value that could not be built, for its sender. */
export function shapeFaultText(fault: ShapeFault, most: number): string {
  return fault === 'depth'
    ? `JSON may be nested at most ${JSON_DEPTH} levels deep`
    : `at most ${most} members and items are read`;
}

/** Builds values from a valid JSON text in one pass. */
class ShapedReader {
  readonly #json: JsonText;
  #left: number;
  /** The most recently built value. */
  value: unknown = undefined;

  constructor(json: JsonText, most: number) {
    this.#json = json;
    this.#left = most;
  }

  /**
   * Builds the value at index `at` and stores it in `value`. Returns the index after it, or a negative number if a
   * limit was reached.
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
    // Most values are strings without escapes. `nameOf` reads them without JSON.parse.
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

/** Sets a member as JSON.parse does: `__proto__` becomes an own property and does not set the prototype. */
function put(built: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(built, name, { value, enumerable: true, writable: true, configurable: true });
  else built[name] = value;
}

// Computes canonical texts. The params of two invocations are the same if their canonical texts are equal.

/**
 * Returns the canonical text of a JSON text. Texts with the same meaning have the same canonical text. It has no white
 * space, sorts members by name (UTF-16 code units), and writes strings as JSON.stringify does and numbers as exact
 * decimals. Members with the same name are all kept, in their order. `1.0`, `1` and `10e-1` are the same number, `-0`
 * is `0`, but 9007199254740992 and 9007199254740993 differ. Takes O(n log n) time in the length, at any depth.
 * Exponents are not expanded.
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
    // Digits and the minus sign sort before all letters, so a scalar with a greater first character is `true`, `false`
    // or `null`.
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
   * Returns the text up to index `end`, and moves there. Throws if `end` is not ahead, so that a text that is not JSON
   * cannot cause an endless loop.
   */
  #take(end: number): string {
    if (end <= this.#at) throw new SyntaxError('not JSON');
    const text = this.#json.slice(this.#at, end);
    this.#at = end;
    return text;
  }
}

/** Joins members in the order of their names. The sort is stable, so members with the same name keep their order. */
function sortedBy(names: readonly string[], texts: readonly string[]): string {
  const order = names.map((name, i) => ({ name, text: texts[i] ?? '' }));
  order.sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
  return order.map(({ text }) => text).join(',');
}

function decodedName(written: string): string {
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

/**
 * Returns the canonical form of a string. A string without escapes is already canonical, unless it contains a lone
 * surrogate. JSON.stringify then writes it as an escape, because UTF-8 would encode all lone surrogates alike.
 */
function canonicalString(written: string): string {
  const asWritten = !written.includes('\\') && written.isWellFormed();
  return asWritten ? written : JSON.stringify(JSON.parse(written));
}

const NINE = 0x39;
const PLAIN_INTEGER = /^-?\d*[1-9]$/;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?)0*(\d+))?$/;
/** The most digits of an exponent with which a double computes exactly. */
const SHORT_EXPONENT = 15;

/**
 * Returns the canonical form of a number: the sign, the digits without leading and trailing zeros, and if the power of
 * ten is not 0, `e` and that power.
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

/** Removes trailing zeros in linear time. A regular expression would scan each run of zeros inside the number again. */
function withoutZeros(digits: string): string {
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end--;
  return digits.slice(0, end);
}
