/** Computes the canonical text of a JSON text. The relay compares the params of two invocations by it. */
import {
  BRACE,
  BRACE_END,
  BRACKET,
  BRACKET_END,
  endOfScalar,
  endOfString,
  QUOTE,
  skipSpace,
} from '../protocol/json-scan.ts';
import type { JsonText } from './json.ts';

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

/** Reads a valid JSON text in one pass. */
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
      const name = nameOf(written);
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

function nameOf(written: string): string {
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
