/** JSON text and JSON values: reading, writing and measuring them. */
import { trustJson, type JsonText } from '../protocol/json.ts';

/**
 * The JSON tools of `src/protocol`, for core. `JsonText` is JSON text that the relay retains, forwards and answers
 * without parsing and serializing it again.
 */
export {
  checkedJson,
  countParts,
  forEachName,
  isArrayText,
  isEmptyObject,
  isObjectText,
  itemsOf,
  jsonFault,
  memberOf,
  membersOf,
  ownSlice,
  readMembers,
  trustJson,
  type JsonFault,
  type JsonText,
  type Members,
} from '../protocol/json.ts';
export { inOneLine, isRecord, RawJson, writeJson } from '../protocol/json-value.ts';

/** A parsed JSON value. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Serializes a value. Returns null for undefined, which means "no payload". */
export function toJson(value: unknown): JsonText | null {
  return value === undefined ? null : trustJson(JSON.stringify(value) ?? 'null');
}

export function fromJson(text: JsonText | null): JsonValue | null {
  return text === null ? null : (JSON.parse(text) as JsonValue);
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

/**
 * Matches text that is not all ASCII. The regular expression takes a third of the time of a loop over the characters.
 */
const BEYOND_ASCII = /[^\x00-\x7f]/;

/** Returns the length of a text as UTF-8, in bytes, without encoding it. */
export function utf8Length(text: string): number {
  if (!BEYOND_ASCII.test(text)) return text.length;
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else if (unit >= 0xd800 && unit <= 0xdbff && isLow(text.charCodeAt(i + 1))) ((bytes += 2), i++);
    else bytes += 2;
  }
  return bytes;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Whether a text is longer than `bytes` as UTF-8. */
export function longerThan(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  return text.length * 3 > bytes && utf8Length(text) > bytes;
}
