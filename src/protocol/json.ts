/**
 * Checks and splits JSON text without parsing it, so that numbers, member order and white space stay as they were
 * written.
 */
import {
  BRACE,
  BRACE_END,
  BRACKET,
  COMMA,
  DEPTH,
  QUOTE,
  STOPPED,
  endOfArray,
  endOfChecked,
  endOfObject,
  endOfString,
  endOfValue,
  skipSpace,
} from './json-scan.ts';

/** JSON text that was checked, or that this process serialized. */
export type JsonText = string & { readonly __json: true };

/**
 * Marks a text as JSON without checking it. Use it only for text that was checked, or that JSON.stringify has just
 * written.
 */
export function trustJson(text: string): JsonText {
  return text as JsonText;
}

/**
 * Returns a part of a text. If the text has over 1024 characters and the part less than half of them, the part is
 * copied, because a plain slice would keep the whole text in memory while only the bytes of the part are counted.
 */
export function ownSlice(text: string, from: number, to: number): string {
  const part = text.slice(from, to);
  return text.length > 1024 && 2 * part.length < text.length ? ` ${part}`.slice(1) : part;
}

/**
 * Why a text is refused. `syntax`: it is not JSON. `depth`: it has more than JSON_DEPTH levels. `members`: it has too
 * many members.
 */
export type JsonFault = 'syntax' | 'depth' | 'members';

/**
 * Returns what is wrong with a text; null if it is valid JSON. `around`: how many levels more than JSON_DEPTH the text
 * may have, because it is a document around payloads.
 */
export function jsonFault(text: string, around = 0): JsonFault | null {
  return faultOf(text, endOfValue(text, skipSpace(text, 0), -around));
}

/** Returns the text as JsonText; null if it is not JSON, or has more than JSON_DEPTH levels. */
export function checkedJson(text: string): JsonText | null {
  return jsonFault(text) === null ? trustJson(text) : null;
}

/** The members of an object by name, each as its original text. If several have the same name, the last one wins. */
export type Members = ReadonlyMap<string, JsonText>;

/**
 * Checks a text and splits it into its members. Returns the fault `members` if there are more than `most`. Null if the
 * text is JSON but not an object. `around`: as for `jsonFault`.
 */
export function readMembers(text: string, most: number, around = 0): Members | JsonFault | null {
  if (text.charCodeAt(skipSpace(text, 0)) !== BRACE) return jsonFault(text, around);
  return splitMembers(text, most, (from) => endOfValue(text, from, 1 - around));
}

function splitMembers(text: string, most: number, endOf: (from: number) => number): Members | JsonFault {
  const members = new Map<string, JsonText>();
  let count = 0;
  const end = endOfObject(text, skipSpace(text, 0), 1, (nameStart, nameEnd, from) => {
    if (++count > most) return STOPPED;
    const to = endOf(from);
    if (to >= 0) members.set(nameOf(text, nameStart, nameEnd), cut(text, from, to));
    return to;
  });
  return faultOf(text, end) ?? members;
}

/** Returns the members of an object; null if there are more than `most`, or if the JSON is not an object. */
export function membersOf(object: JsonText, most: number): Members | null {
  if (!isObjectText(object)) return null;
  const members = splitMembers(object, most, (from) => endOfChecked(object, from));
  return typeof members === 'string' ? null : members;
}

/** Returns the original text of one member of an object; undefined if there is no such member. */
export function memberOf(object: JsonText, name: string): JsonText | undefined {
  let found: JsonText | undefined;
  forEachName(object, (given, from, to) => {
    if (given === name) found = cut(object, from, to);
  });
  return found;
}

/** Calls `visit` for each member of an object, in order, with its name and the start and end of its value. */
export function forEachName(object: JsonText, visit: (name: string, from: number, to: number) => void): void {
  endOfObject(object, skipSpace(object, 0), 1, (nameStart, nameEnd, from) => {
    const to = endOfChecked(object, from);
    visit(nameOf(object, nameStart, nameEnd), from, to);
    return to;
  });
}

/** Returns the items of an array, each as its original text; null if there are more than `most`. */
export function itemsOf(array: JsonText, most: number): readonly JsonText[] | null {
  const items: JsonText[] = [];
  const end = endOfArray(array, skipSpace(array, 0), 1, (from) => {
    if (items.length >= most) return STOPPED;
    const to = endOfChecked(array, from);
    items.push(cut(array, from, to));
    return to;
  });
  return end < 0 ? null : items;
}

/** Whether the JSON text is an object. */
export function isObjectText(json: JsonText): boolean {
  return json.charCodeAt(skipSpace(json, 0)) === BRACE;
}

export function isArrayText(json: JsonText): boolean {
  return json.charCodeAt(skipSpace(json, 0)) === BRACKET;
}

/** Whether the JSON text is an object without members. */
export function isEmptyObject(json: JsonText): boolean {
  const start = skipSpace(json, 0);
  return json.charCodeAt(start) === BRACE && json.charCodeAt(skipSpace(json, start + 1)) === BRACE_END;
}

/**
 * Counts the commas outside of strings, up to `most` + 1. This is the number of members and items, without the first of
 * each object or array.
 */
export function countParts(json: JsonText, most: number): number {
  let count = 0;
  for (let at = 0; at < json.length && count <= most; at++) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(json, at) - 1;
    else if (unit === COMMA) count++;
  }
  return count;
}

/**
 * Returns the fault for the result of a scan; null if there is none. `end`: the position after the value, or a negative
 * code.
 */
function faultOf(text: string, end: number): JsonFault | null {
  if (end === DEPTH) return 'depth';
  if (end === STOPPED) return 'members';
  return end >= 0 && skipSpace(text, end) === text.length ? null : 'syntax';
}

/** Returns the decoded name of a member. Its text, including quotes, is between `start` and `end`. */
export function nameOf(text: string, start: number, end: number): string {
  const bare = text.slice(start + 1, end - 1);
  return bare.includes('\\') ? String(JSON.parse(text.slice(start, end))) : bare;
}

function cut(text: string, from: number, to: number): JsonText {
  return trustJson(ownSlice(text, from, to));
}

/** Whether a value is an object that is neither null nor an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const BREAKS = /[\r\n]/;

/**
 * Returns the JSON text on one line. Line breaks become spaces; since JSON strings contain no raw line breaks, no value
 * changes.
 */
export function inOneLine(json: string): string {
  return BREAKS.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
}

/** Returns the members of a JSON object; null if the text is anything else. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
