/**
 * Looking into JSON text without writing it anew: what a client sent is kept to the letter (numbers that a double cannot hold, the order
 * of members, spaces), so parts of it are cut out as text.
 */
import { trustJson, type JsonText } from '../core/json.ts';
import { JSON_DEPTH } from '../core/limits.ts';
import { isJson } from '../protocol/frame.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const BRACE_END = 0x7d;
const BRACKET = 0x5b;
const BRACKET_END = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/** Null when the text is not JSON, or nested deeper than JSON_DEPTH. */
export function checkedJson(text: string): JsonText | null {
  return isJson(text) && isShallow(text) ? trustJson(text) : null;
}

/** Of a text that is JSON. Each level takes two characters, so most texts need not be looked through. */
export function isShallow(text: string): boolean {
  return text.length <= 2 * JSON_DEPTH || depthOf(text) <= JSON_DEPTH;
}

/** Whether this JSON is an object. */
export function isObjectText(json: JsonText): boolean {
  return json.charCodeAt(skipSpace(json, 0)) === BRACE;
}

export function isArrayText(json: JsonText): boolean {
  return json.charCodeAt(skipSpace(json, 0)) === BRACKET;
}

/** The members of an object, each value as it is written. Of members with one name the last counts, as for JSON.parse. */
export function membersOf(object: JsonText): ReadonlyMap<string, JsonText> {
  const members = new Map<string, JsonText>();
  let at = skipSpace(object, skipSpace(object, 0) + 1);
  while (object.charCodeAt(at) === QUOTE) {
    const keyEnd = endOfString(object, at);
    const name: unknown = JSON.parse(object.slice(at, keyEnd));
    const start = skipSpace(object, skip(object, keyEnd, COLON));
    const end = endOfValue(object, start);
    members.set(String(name), trustJson(object.slice(start, end)));
    at = skip(object, end, COMMA);
  }
  return members;
}

/** The items of an array, each as it is written. */
export function itemsOf(array: JsonText): readonly JsonText[] {
  const items: JsonText[] = [];
  let at = skipSpace(array, skipSpace(array, 0) + 1);
  while (at < array.length && array.charCodeAt(at) !== BRACKET_END) {
    const end = endOfValue(array, at);
    items.push(trustJson(array.slice(at, end)));
    at = skip(array, end, COMMA);
  }
  return items;
}

function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(json, at) - 1;
    else if (unit === BRACE || unit === BRACKET) deepest = Math.max(deepest, ++depth);
    else if (unit === BRACE_END || unit === BRACKET_END) depth--;
  }
  return deepest;
}

function endOfValue(json: string, start: number): number {
  const unit = json.charCodeAt(start);
  if (unit === QUOTE) return endOfString(json, start);
  if (unit === BRACE || unit === BRACKET) return endOfNest(json, start);
  let at = start;
  while (at < json.length && !isSpace(json.charCodeAt(at)) && !endsValue(json.charCodeAt(at))) at++;
  return at;
}

function endOfNest(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(json, at) - 1;
    else if (unit === BRACE || unit === BRACKET) depth++;
    else if ((unit === BRACE_END || unit === BRACKET_END) && --depth === 0) return at + 1;
  }
  return json.length;
}

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json.charCodeAt(at) !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}

function skip(json: string, start: number, mark: number): number {
  const at = skipSpace(json, start);
  return json.charCodeAt(at) === mark ? skipSpace(json, at + 1) : at;
}

function skipSpace(json: string, start: number): number {
  let at = start;
  while (isSpace(json.charCodeAt(at))) at++;
  return at;
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

function endsValue(unit: number): boolean {
  return unit === COMMA || unit === BRACE_END || unit === BRACKET_END;
}
