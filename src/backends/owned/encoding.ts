/**
 * Encodes values that relays send each other, such as arguments and answers of port methods, as text, and decodes them.
 *
 * Long texts, such as payloads, are not escaped.
 */
import { CallboardError, isCode, type ErrorDetails } from '../../core/errors.ts';
import { isRecord, ownSlice } from '../../core/json.ts';
import { DocumentReading } from '../../core/document-reading.ts';

type Scalar = string | number | boolean | null | undefined | void;

/**
 * `T`, if all its parts can be encoded; otherwise never. Scalars, arrays, plain objects, maps and sets can be encoded.
 * A `DocumentReading` is omitted from the text, so the owner reads without it. Functions, errors, dates, bigints and
 * other objects with methods cannot be encoded.
 */
export type Encodable<T> = unknown extends T
  ? never
  : T extends Scalar | DocumentReading
    ? T
    : T extends ReadonlyMap<infer K, infer V>
      ? [K, V] extends [Encodable<K>, Encodable<V>]
        ? T
        : never
      : T extends ReadonlySet<infer V>
        ? [V] extends [Encodable<V>]
          ? T
          : never
        : T extends Error | ((...args: never[]) => unknown)
          ? never
          : T extends object
            ? [T] extends [{ readonly [Name in keyof T]: Encodable<T[Name]> }]
              ? T
              : never
            : never;

/** A text with more UTF-16 units than this is not escaped into the JSON, but appended after it. */
const LONG_CHARS = 256;
/** A long text is compared with this many earlier ones, because a message often contains the same payload twice. */
const COMPARED_TEXTS = 4;

type Key = string | number;
/**
 * A value that JSON cannot represent, with its path. `text`: the long text with the number `at`. `undefined`: undefined
 * instead of null. `number`: NaN, an infinity or -0, as text. `map`, `set`: a map or set; the JSON has an array of its
 * entries in this place.
 */
type Special =
  | readonly [path: readonly Key[], kind: 'text', at: number]
  | readonly [path: readonly Key[], kind: 'number', text: string]
  | readonly [path: readonly Key[], kind: 'undefined' | 'map' | 'set'];

/**
 * Encodes a value. The first line is JSON. If the value contains anything that JSON cannot represent, a second line
 * lists these parts and the lengths of the long texts, and the long texts follow. A member with the value undefined is
 * omitted, as in JSON; everywhere else undefined stays undefined. Throws if the value is not `Encodable`.
 */
export function encode(value: unknown): string {
  const writer = new Writer();
  return writer.textOf(writer.json(value));
}

/**
 * Encodes an object with a list that is cut so that it fits into `chars` characters, but has at least one item. Encodes
 * each item once. `name`: the member that is the list. `rest`: returns the other members (at least one) for a given
 * number of items.
 */
export function encodeFirst(
  { name, items, chars: most }: { readonly name: string; readonly items: readonly unknown[]; readonly chars: number },
  rest: (count: number) => object,
): string {
  const writer = new Writer();
  const list: string[] = [];
  for (let chars = 0; list.length < items.length;) {
    const undo = writer.mark();
    const before = writer.chars;
    const item = writer.json(items[list.length], [name, list.length]);
    chars += item.length + writer.chars - before;
    if (chars > most && list.length > 0) {
      undo();
      break;
    }
    list.push(item);
  }
  const others = writer.json(rest(list.length));
  return writer.textOf(`{${JSON.stringify(name)}:[${list.join(',')}],${others.slice(1)}`);
}

/**
 * Writes a value as JSON and collects the parts that JSON cannot represent. Objects without such parts are not copied.
 */
class Writer {
  readonly #specials: Special[] = [];
  readonly #texts: string[] = [];
  readonly #path: Key[] = [];
  /** The number of characters of the long texts. */
  chars = 0;

  /** Returns the JSON of the whole value, or of the part that has this path. */
  json(value: unknown, path: readonly Key[] = []): string {
    this.#path.push(...path);
    const plain = this.#plain(value);
    this.#path.length = 0;
    return JSON.stringify(plain);
  }

  /** Returns a function that removes the parts collected since this call. */
  mark(): () => void {
    const [specials, texts, chars] = [this.#specials.length, this.#texts.length, this.chars];
    return () => {
      this.#specials.length = specials;
      this.#texts.length = texts;
      this.chars = chars;
    };
  }

  /** Returns the complete text of the value that has this JSON. */
  textOf(json: string): string {
    const [specials, texts] = [this.#specials, this.#texts];
    if (specials.length === 0) return json;
    return `${json}\n${JSON.stringify([specials, texts.map((text) => text.length)])}\n${texts.join('')}`;
  }

  #plain(value: unknown): unknown {
    switch (typeof value) {
      case 'string':
        return value.length > LONG_CHARS && value.isWellFormed() ? this.#long(value) : value;
      case 'number':
        return Number.isFinite(value) && !Object.is(value, -0) ? value : this.#number(value);
      case 'boolean':
        return value;
      case 'undefined':
        this.#specials.push([[...this.#path], 'undefined']);
        return null;
      case 'object':
        return value === null ? null : this.#object(value);
      case 'bigint':
      case 'function':
      case 'symbol':
        throw new TypeError(`A ${typeof value} cannot be sent to another relay.`);
    }
  }

  #long(text: string): null {
    let at = this.#texts.length - 1;
    const first = Math.max(0, at - COMPARED_TEXTS + 1);
    while (at >= first && this.#texts[at] !== text) at--;
    if (at < first) {
      at = this.#texts.push(text) - 1;
      this.chars += text.length;
    }
    this.#specials.push([[...this.#path], 'text', at]);
    return null;
  }

  #number(number: number): null {
    this.#specials.push([[...this.#path], 'number', Object.is(number, -0) ? '-0' : String(number)]);
    return null;
  }

  #object(value: object): unknown {
    if (Array.isArray(value)) return this.#list(value);
    if (value instanceof Map) return this.#entries('map', [...value]);
    if (value instanceof Set) return this.#entries('set', [...value]);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null)
      throw new TypeError(`A ${value.constructor.name} cannot be sent to another relay.`);
    return this.#members(value);
  }

  #entries(kind: 'map' | 'set', entries: readonly unknown[]): readonly unknown[] {
    const path = [...this.#path];
    const plain = this.#list(entries);
    // Added after the specials of the entries, because entries must be decoded while they are in an array.
    this.#specials.push([path, kind]);
    return plain;
  }

  #list(items: readonly unknown[]): readonly unknown[] {
    let copy: unknown[] | null = null;
    for (let i = 0; i < items.length; i++) {
      const item = this.#at(i, items[i]);
      if (item !== items[i]) (copy ??= [...items])[i] = item;
    }
    return copy ?? items;
  }

  #members(value: object): object {
    let copy: Record<string, unknown> | null = null;
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue;
      const plain = member instanceof DocumentReading ? undefined : this.#at(name, member);
      if (plain !== member) put((copy ??= { ...value }), name, plain);
    }
    return copy ?? value;
  }

  #at(key: Key, value: unknown): unknown {
    this.#path.push(key);
    const plain = value instanceof DocumentReading ? this.#plain(undefined) : this.#plain(value);
    this.#path.pop();
    return plain;
  }
}

/** Sets a member as JSON.parse does, which treats `__proto__` like any other name. */
function put(target: Record<Key, unknown>, name: Key, value: unknown): void {
  if (name !== '__proto__') target[name] = value;
  else Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
}

/** Decodes a text that `encode` returned. Throws if the text has another form. */
export function decode(text: string): unknown {
  const end = text.indexOf('\n');
  if (end < 0) return JSON.parse(text);
  const textsAt = text.indexOf('\n', end + 1) + 1;
  const { specials, lengths } = readSpecials(JSON.parse(text.slice(end + 1, textsAt)));
  const texts: string[] = [];
  let from = textsAt;
  for (const length of lengths) texts.push(ownSlice(text, from, (from += length)));
  const root: Holder = { value: JSON.parse(text.slice(0, end)) };
  for (const special of specials) restore(root, special, texts);
  return root.value;
}

type Holder = { value: unknown };

function readSpecials(given: unknown): { readonly specials: readonly Special[]; readonly lengths: readonly number[] } {
  const [specials, lengths] = Array.isArray(given) ? given : [];
  if (!Array.isArray(specials) || !Array.isArray(lengths))
    throw new SyntaxError('The value of a relay cannot be read.');
  return { specials, lengths };
}

function restore(root: Holder, special: Special, texts: readonly string[]): void {
  const path: readonly Key[] = ['value', ...special[0]];
  const last = path.at(-1) ?? 'value';
  let holder: unknown = root;
  for (const key of path.slice(0, -1)) holder = memberAt(holder, key);
  const value = valueOf(special, memberAt(holder, last), texts);
  if (Array.isArray(holder) && typeof last === 'number') holder[last] = value;
  else if (isRecord(holder)) put(holder, last, value);
  else throw new SyntaxError('The value of a relay has no such part.');
}

function memberAt(holder: unknown, key: Key): unknown {
  if (Array.isArray(holder) && typeof key === 'number') return holder[key];
  return isRecord(holder) && Object.hasOwn(holder, key) ? holder[key] : undefined;
}

function valueOf(special: Special, plain: unknown, texts: readonly string[]): unknown {
  const entries = Array.isArray(plain) ? plain : [];
  switch (special[1]) {
    case 'text':
      return texts[special[2]];
    case 'number':
      return Number(special[2]);
    case 'undefined':
      return undefined;
    case 'map':
      return new Map(entries);
    case 'set':
      return new Set(entries);
  }
}

// The encoding of errors that port methods throw.

/** An encoded error. The form with `name` is for errors that are not CallboardErrors. */
type EncodedError =
  | { readonly code: string; readonly message: string; readonly details: Omit<ErrorDetails, 'cause'> }
  | { readonly name: string; readonly message: string };

/**
 * Encodes a thrown value. A CallboardError is decoded as a CallboardError, without its cause. Any other error is
 * decoded as an Error with the same name and message, but without a stack.
 */
export function encodeError(error: unknown): string {
  return encode(plainError(error));
}

function plainError(error: unknown): EncodedError {
  if (error instanceof CallboardError) {
    const { cause: _, ...details } = error.details;
    return { code: error.code, message: error.message, details };
  }
  if (error instanceof Error) return { name: error.name, message: error.message };
  return { name: 'Error', message: String(error) };
}

export function decodeError(text: string): Error {
  const given = decode(text);
  if (!isRecord(given)) return new Error('The error of a relay cannot be read.');
  const { code, message, name, details } = given;
  if (isCode(code)) return new CallboardError(code, String(message), isRecord(details) ? details : {});
  return Object.assign(new Error(String(message)), { name: String(name) });
}
