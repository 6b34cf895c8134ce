/**
 * The bounds of frames and of the JSON in them, and the functions that measure texts. Relay and libraries use the same
 * functions. Imports nothing.
 */

/**
 * The most bytes of a frame, and of a message with several frames. The relay's `welcome` may set another bound for a
 * link.
 */
export const MAX_FRAME_BYTES = 1024 * 1024;
/**
 * The deepest nesting of objects and arrays in a payload, wherever the payload is given. Deeper JSON would overflow the
 * stack of programs that read it.
 */
export const JSON_DEPTH = 200;
/** How many levels more a document around payloads may have, such as the body of a request. */
export const ENVELOPE_DEPTH = 16;
/** The most characters in the header line of a frame. The longest token fits in. */
export const HEADER_CHARS = 16 * 1024;
export const TOKEN_CHARS = 8192;

/** A range of integers. Both ends are included. */
export type Range = { readonly min: number; readonly max: number };
/** The ranges of the time limits of calls, in milliseconds, with their defaults. */
export const CONNECT_WITHIN_MS = { default: 0, min: 0, max: 300_000 } as const;
export const RESPOND_WITHIN_MS = { default: 30_000, min: 1_000, max: 300_000 } as const;
export const AWAIT_WITHIN_MS = { default: 30_000, min: 0, max: 600_000 } as const;

/** Whether the value is an integer in the range. */
export function isIn(value: unknown, { min, max }: Range): boolean {
  return Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
}

/** Matches a character that is not ASCII. For whole texts, this takes a third of the time of a loop. */
const BEYOND_ASCII = /[^\x00-\x7f]/;

const encoder = /* @__PURE__ */ new TextEncoder();

/** Returns the length of a text in UTF-8, in bytes. Encodes the text only if it is not ASCII. */
export function utf8Length(text: string): number {
  return BEYOND_ASCII.test(text) ? encoder.encode(text).length : text.length;
}

/** Whether a text has more than `bytes` bytes in UTF-8. */
export function longerThan(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  return text.length * 3 > bytes && utf8Length(text) > bytes;
}

/** Whether a valid JSON text is nested more than `most` levels deep. */
export function deeperThan(json: string, most: number): boolean {
  // Each level needs two characters, so a short text cannot be too deep.
  if (json.length <= 2 * most) return false;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const mark = json[at];
    if (mark === '"') at = endOfQuoted(json, at) - 1;
    else if (mark === ']' || mark === '}') depth--;
    else if ((mark === '[' || mark === '{') && ++depth > most) return true;
  }
  return false;
}

/** Returns the position after the string that begins at `start`. The JSON text must be valid. */
export function endOfQuoted(text: string, start: number): number {
  for (let end = start; ;) {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
    let first = end;
    while (text[first - 1] === '\\') first--;
    // The quote ends the string unless an odd number of backslashes precedes it.
    if ((end - first) % 2 === 0) return end + 1;
  }
}
