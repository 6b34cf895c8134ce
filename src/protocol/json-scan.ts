/**
 * Scans JSON text. It accepts what JSON.parse accepts, up to JSON_DEPTH levels, builds no values, and takes linear
 * time.
 */
import { JSON_DEPTH, endOfQuoted } from './bounds.ts';

/**
 * Results of a scan instead of a position, all negative. SYNTAX: the text is not JSON. DEPTH: it is nested too deeply.
 * STOPPED: the callback stopped the scan.
 */
const SYNTAX = -1;
export const DEPTH = -2;
export const STOPPED = -3;

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const BRACE = 0x7b;
export const BRACE_END = 0x7d;
export const BRACKET = 0x5b;
export const BRACKET_END = 0x5d;
export const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const LOWER_E = 0x65;
const UPPER_E = 0x45;

/**
 * Reads a member or item whose value begins at `from`. `nameStart` to `nameEnd` (excluded): the member's name with its
 * quotes. Returns the position after the value, or a negative number, which ends the scan.
 */
type ReadMember = (nameStart: number, nameEnd: number, from: number) => number;
type ReadItem = (from: number) => number;

/**
 * Regular expressions read scalars, and objects and arrays of a few scalars, in a tenth of the time of a loop over the
 * characters. (V8 optimizes `charCodeAt` for at most four internal forms of strings. A relay receives texts in more
 * forms, so a loop is even slower there.) Repetitions are bounded if V8 would store the position of each repetition on
 * a stack of limited size. Text that the expressions do not match is read step by step, with the same result.
 */
const SPACE = String.raw`[ \t\n\r]*`;
const PLAIN = String.raw`[^"\\\x00-\x1f]*`;
const ESCAPE = String.raw`\\(?:["\\/bfnrt]|u[\da-fA-F]{4})`;
const INSIDE_STRING = `${PLAIN}(?:${ESCAPE}${PLAIN}){0,1000}`;
const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`;
const SCALAR = `"${INSIDE_STRING}"|${NUMBER}|true|false|null`;
const NAME = `"${INSIDE_STRING}"${SPACE}:${SPACE}`;
/** A scalar, or an object or array with a few scalars. */
const ITEM = `(?:${SCALAR}|\\{${SPACE}${few(`${NAME}(?:${SCALAR})`)}\\}|\\[${SPACE}${few(`(?:${SCALAR})`)}\\])`;
const MEMBER = `${NAME}${ITEM}`;
/** The content of a string, up to its end or up to the first escape beyond the bound. */
const STRING_PART = new RegExp(INSIDE_STRING, 'y');
/** The name of a member up to its value, or the empty text. */
const MEMBER_NAME = new RegExp(`(?:${NAME})?`, 'y');
/** Lists of items and of members in which objects and arrays contain only scalars. */
const FLAT_ITEMS = listOf(ITEM);
const FLAT_MEMBERS = listOf(MEMBER);

function few(element: string): string {
  return `(?:${element}${SPACE}(?:,${SPACE}${element}${SPACE}){0,20})?`;
}

function listOf(element: string): RegExp {
  return new RegExp(`(?:${element}(?:${SPACE},${SPACE}${element}){0,200})?`, 'y');
}

/** Returns the position after the expression's match at `at`. The expression must also match the empty text. */
function endOfMatch(of: RegExp, text: string, at: number): number {
  of.lastIndex = at;
  of.test(text);
  return of.lastIndex;
}

/** Checks the value at `at`, which is nested in `depth` levels. Returns the position after it, or SYNTAX or DEPTH. */
export function endOfValue(text: string, at: number, depth: number): number {
  const unit = text.charCodeAt(at);
  if (unit === QUOTE) return endOfString(text, at);
  if (unit === BRACE) return endOfObject(text, at, depth + 1, null);
  if (unit === BRACKET) return endOfArray(text, at, depth + 1, null);
  return endOfScalar(text, at);
}

/** Text without quotes and brackets. */
const UNNESTED = /[^"[\]{}]*/y;
/** After this many characters without quotes and brackets, a regular expression is faster than a loop. */
const UNNESTED_LOOP = 32;

/**
 * Returns the position after the value that begins at `at`, in a text that was already checked. This only counts
 * brackets, which takes a fifth of the time of a check. Returns SYNTAX if the text ends before the value does. Returns
 * DEPTH if the value is nested more than JSON_DEPTH levels deep, because the check of the surrounding text may have
 * permitted more.
 */
export function endOfChecked(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return endOfString(text, at);
  if (!isNested(first)) return endOfScalar(text, at);
  let depth = 0;
  let unnested = 0;
  for (let i = at; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) i = endOfQuoted(text, i) - 1;
    else if (isNested(unit)) {
      if (++depth > JSON_DEPTH) return DEPTH;
    } else if (unit === BRACKET_END || unit === BRACE_END) {
      if (--depth === 0) return i + 1;
    } else if (++unnested < UNNESTED_LOOP) continue;
    else i = endOfMatch(UNNESTED, text, i) - 1;
    unnested = 0;
  }
  return SYNTAX;
}

/** Checks a number, `true`, `false` or `null`, like `endOfValue`. */
export function endOfScalar(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  if (unit === MINUS || isDigit(unit)) return endOfNumber(text, at);
  for (const word of WORDS) if (text.startsWith(word, at)) return at + word.length;
  return SYNTAX;
}

const WORDS = ['true', 'false', 'null'];

/**
 * Checks an object, like `endOfValue`. `depth` includes this object. `read`: reads each member; null: members are only
 * checked.
 */
export function endOfObject(text: string, start: number, depth: number, read: ReadMember | null): number {
  if (depth > JSON_DEPTH) return DEPTH;
  let at = skipSpace(text, start + 1);
  if (text.charCodeAt(at) === BRACE_END) return at + 1;
  for (;;) {
    const to = read === null ? endOfMembers(text, at, depth) : endOfMember(text, at, depth, read);
    if (to < 0) return to;
    at = skipSpace(text, to);
    const unit = text.charCodeAt(at);
    if (unit === BRACE_END) return at + 1;
    if (unit !== COMMA) return SYNTAX;
    at = skipSpace(text, at + 1);
  }
}

/** Returns the position after the member at `at` and after as many following members as FLAT_MEMBERS matches. */
function endOfMembers(text: string, at: number, depth: number): number {
  const from = endOfMatch(MEMBER_NAME, text, at);
  if (from === at) return endOfMember(text, at, depth, null);
  const flat = depth < JSON_DEPTH ? endOfMatch(FLAT_MEMBERS, text, at) : at;
  return flat > at ? flat : endOfValue(text, from, depth);
}

function endOfMember(text: string, at: number, depth: number, read: ReadMember | null): number {
  const nameEnd = text.charCodeAt(at) === QUOTE ? endOfString(text, at) : SYNTAX;
  if (nameEnd < 0) return SYNTAX;
  const colon = skipSpace(text, nameEnd);
  if (text.charCodeAt(colon) !== COLON) return SYNTAX;
  const from = skipSpace(text, colon + 1);
  return read === null ? endOfValue(text, from, depth) : read(at, nameEnd, from);
}

/** Checks an array, like `endOfObject`. */
export function endOfArray(text: string, start: number, depth: number, read: ReadItem | null): number {
  if (depth > JSON_DEPTH) return DEPTH;
  let at = skipSpace(text, start + 1);
  if (text.charCodeAt(at) === BRACKET_END) return at + 1;
  for (;;) {
    const flat = read === null && depth < JSON_DEPTH ? endOfMatch(FLAT_ITEMS, text, at) : at;
    const to = flat > at ? flat : read === null ? endOfValue(text, at, depth) : read(at);
    if (to < 0) return to;
    at = skipSpace(text, to);
    const unit = text.charCodeAt(at);
    if (unit === BRACKET_END) return at + 1;
    if (unit !== COMMA) return SYNTAX;
    at = skipSpace(text, at + 1);
  }
}

/** Checks a string, like `endOfValue`. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; ;) {
    const end = endOfMatch(STRING_PART, text, at);
    const unit = text.charCodeAt(end);
    if (unit === QUOTE) return end + 1;
    if (unit !== BACKSLASH || end === at) return SYNTAX;
    at = end;
  }
}

function endOfNumber(text: string, start: number): number {
  let at = text.charCodeAt(start) === MINUS ? start + 1 : start;
  if (text.charCodeAt(at) === ZERO) at++;
  else if ((at = endOfDigits(text, at)) < 0) return SYNTAX;
  if (text.charCodeAt(at) === DOT && (at = endOfDigits(text, at + 1)) < 0) return SYNTAX;
  const unit = text.charCodeAt(at);
  if (unit !== LOWER_E && unit !== UPPER_E) return at;
  const sign = text.charCodeAt(at + 1);
  return endOfDigits(text, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (isDigit(text.charCodeAt(at))) at++;
  return at === start ? SYNTAX : at;
}

/** Returns the position of the next character that is not white space. */
export function skipSpace(text: string, start: number): number {
  let at = start;
  for (;;) {
    const unit = text.charCodeAt(at);
    // At the end of the text, charCodeAt returns NaN, and `NaN <= 0x20` is false, so the loop ends.
    if (!(unit <= 0x20) || (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09)) return at;
    at++;
  }
}

function isNested(unit: number): boolean {
  return unit === BRACKET || unit === BRACE;
}

function isDigit(unit: number): boolean {
  return unit >= ZERO && unit <= 0x39;
}
