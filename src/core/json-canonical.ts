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
 * One text for all JSON texts that say the same: without white space, members sorted by name (UTF-16 code units), strings as JSON.stringify
 * writes them, numbers as exact decimals. Members with one name are all kept, in their order. `1.0`, `1` and `10e-1` are one number,
 * 9007199254740992 and 9007199254740993 are two, `-0` is `0`. Takes n log n of the length, at any depth; exponents are never expanded.
 */
export function canonicalText(json: JsonText): string {
  return new Canonical(json).value();
}

/** Reads a text that is JSON, once from its start to its end. */
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
    // A word; every number begins before.
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

  /** The comma between two. */
  #skip(): void {
    this.#at++;
    this.#next();
  }

  /** The first character of the next token. */
  #next(): number {
    this.#at = skipSpace(this.#json, this.#at);
    return this.#json.charCodeAt(this.#at);
  }

  /** Up to `end`, which must lie ahead: what is no JSON ends here. */
  #take(end: number): string {
    if (end <= this.#at) throw new SyntaxError('not JSON');
    const text = this.#json.slice(this.#at, end);
    this.#at = end;
    return text;
  }
}

/** Sorting is stable: members with one name stay in their order. */
function sortedBy(names: readonly string[], texts: readonly string[]): string {
  const order = names.map((name, i) => ({ name, text: texts[i] ?? '' }));
  order.sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
  return order.map(({ text }) => text).join(',');
}

function nameOf(written: string): string {
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

/** What has no escapes is written as it is, but for half characters, which no UTF-8 can tell apart. */
function canonicalString(written: string): string {
  const asWritten = !written.includes('\\') && written.isWellFormed();
  return asWritten ? written : JSON.stringify(JSON.parse(written));
}

const NINE = 0x39;
const PLAIN_INTEGER = /^-?\d*[1-9]$/;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?)0*(\d+))?$/;
/** Digits of an exponent that a double surely holds. */
const SHORT_EXPONENT = 15;

/** The digits without zeros at either end, and the power of ten that they are multiplied with where it is not 0. */
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

/** A regular expression would look at each run of zeros anew. */
function withoutZeros(digits: string): string {
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end--;
  return digits.slice(0, end);
}
