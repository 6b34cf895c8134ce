/**
 * The only scanner of JSON text. It accepts what JSON.parse accepts, up to JSON_DEPTH levels, builds no values, and
 * takes time linear in the length of the text.
 */

/** The most levels of objects and arrays that a JSON text may have. */
export const JSON_DEPTH = 200;

/**
 * Returned instead of an end position. SYNTAX: the text is not JSON. DEPTH: it is nested too deep. STOPPED: the
 * callback stopped the scan. All are negative.
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
const LOWER_U = 0x75;

/**
 * Reads the member value (or, for ReadItem, the array item) that begins at `from`. `nameStart` (included) and `nameEnd`
 * (excluded) delimit the member's name, quotes included. Returns the position after the value, or a negative code that
 * ends the scan.
 */
export type ReadMember = (nameStart: number, nameEnd: number, from: number) => number;
export type ReadItem = (from: number) => number;

/**
 * Checks the value that begins at `at` and returns the position after it, or SYNTAX or DEPTH. `depth` is the number of
 * levels around the value.
 */
export function endOfValue(text: string, at: number, depth: number): number {
  const unit = text.charCodeAt(at);
  if (unit === QUOTE) return endOfString(text, at);
  if (unit === BRACE) return endOfObject(text, at, depth + 1, null);
  if (unit === BRACKET) return endOfArray(text, at, depth + 1, null);
  return endOfScalar(text, at);
}

/** Does the same as `endOfValue`, for a number, `true`, `false` or `null`. */
export function endOfScalar(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  if (unit === MINUS || isDigit(unit)) return endOfNumber(text, at);
  for (const word of WORDS) if (text.startsWith(word, at)) return at + word.length;
  return SYNTAX;
}

const WORDS = ['true', 'false', 'null'];

/**
 * Does the same as `endOfValue`, for an object. `depth` includes the object itself. With `read` null, the members are
 * only checked.
 */
export function endOfObject(text: string, start: number, depth: number, read: ReadMember | null): number {
  if (depth > JSON_DEPTH) return DEPTH;
  let at = skipSpace(text, start + 1);
  if (text.charCodeAt(at) === BRACE_END) return at + 1;
  for (;;) {
    const nameEnd = text.charCodeAt(at) === QUOTE ? endOfString(text, at) : SYNTAX;
    if (nameEnd < 0) return SYNTAX;
    const colon = skipSpace(text, nameEnd);
    if (text.charCodeAt(colon) !== COLON) return SYNTAX;
    const from = skipSpace(text, colon + 1);
    const to = read === null ? endOfValue(text, from, depth) : read(at, nameEnd, from);
    if (to < 0) return to;
    at = skipSpace(text, to);
    const unit = text.charCodeAt(at);
    if (unit === BRACE_END) return at + 1;
    if (unit !== COMMA) return SYNTAX;
    at = skipSpace(text, at + 1);
  }
}

/** Does the same as `endOfObject`, for an array. */
export function endOfArray(text: string, start: number, depth: number, read: ReadItem | null): number {
  if (depth > JSON_DEPTH) return DEPTH;
  let at = skipSpace(text, start + 1);
  if (text.charCodeAt(at) === BRACKET_END) return at + 1;
  for (;;) {
    const to = read === null ? endOfValue(text, at, depth) : read(at);
    if (to < 0) return to;
    at = skipSpace(text, to);
    const unit = text.charCodeAt(at);
    if (unit === BRACKET_END) return at + 1;
    if (unit !== COMMA) return SYNTAX;
    at = skipSpace(text, at + 1);
  }
}

export function endOfString(text: string, start: number): number {
  const { length } = text;
  for (let at = start + 1; at < length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at + 1;
    if (unit < 0x20) return SYNTAX;
    if (unit === BACKSLASH) {
      const escaped = text.charCodeAt(++at);
      if (escaped === LOWER_U) {
        for (let digit = 1; digit <= 4; digit++) if (!isHex(text.charCodeAt(at + digit))) return SYNTAX;
        at += 4;
      } else if (!isEscape(escaped)) return SYNTAX;
    }
  }
  return SYNTAX;
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
    // charCodeAt gives NaN at the end of the text, and `NaN <= 0x20` is false, so the loop ends there.
    if (!(unit <= 0x20) || (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09)) return at;
    at++;
  }
}

function isDigit(unit: number): boolean {
  return unit >= ZERO && unit <= 0x39;
}

function isHex(unit: number): boolean {
  return isDigit(unit) || (unit >= 0x41 && unit <= 0x46) || (unit >= 0x61 && unit <= 0x66);
}

/** Whether the character may follow a backslash; `u` is handled separately. */
function isEscape(unit: number): boolean {
  return unit === QUOTE || unit === BACKSLASH || '/bfnrt'.includes(String.fromCharCode(unit));
}
