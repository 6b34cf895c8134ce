/** Checks that the payload of a frame is JSON, and takes members out of it. */
import { invalid } from '../core/errors.ts';
import {
  checkedJson,
  isArrayText,
  isObjectText,
  itemsOf,
  membersOf,
  type JsonText,
  type Members,
} from '../core/json.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';

/** The payload of a frame is not JSON. The frame counts as a bad frame of its sender. */
export class BadPayload extends Error {
  constructor() {
    super('payload: not JSON, or nested too deeply');
  }
}

/** The payload, unchanged, after a check that it is JSON. Null: the frame has no payload. Throws BadPayload. */
export function payloadOf({ payload }: { readonly payload: string | null }): JsonText | null {
  if (payload === null) return null;
  const json = checkedJson(payload);
  if (json === null) throw new BadPayload();
  return json;
}

/**
 * The members of a JSON object in a payload that the relay reads. Throws `invalid_argument` with the parameter `where`.
 */
export function objectOf(where: string, json: JsonText): Members {
  if (!isObjectText(json)) return invalid(where, 'an object was expected');
  return membersOf(json, ENVELOPE_PARTS) ?? invalid(where, `at most ${ENVELOPE_PARTS} members are allowed`);
}

/** The items of a JSON array, at most `most` of them. Throws `invalid_argument` with the parameter `where`. */
export function arrayOf(where: string, json: JsonText, most: number): readonly JsonText[] {
  if (!isArrayText(json)) return invalid(where, 'an array was expected');
  return itemsOf(json, most) ?? invalid(where, `at most ${most} items are allowed`);
}

/** The value of a member; null if it is absent or JSON `null`. */
export function memberIn(members: Members, name: string): JsonText | null {
  const json = members.get(name);
  return json === undefined || json === 'null' ? null : json;
}

/** A string, or null. Throws `invalid_argument` with the parameter `where` for any other value. */
export function textIn(where: string, json: JsonText | null): string | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'string' ? value : invalid(where, 'a string was expected');
}

/** A boolean, or null. Throws `invalid_argument` with the parameter `where` for any other value. */
export function flagIn(where: string, json: JsonText | null): boolean | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'boolean' ? value : invalid(where, 'true or false was expected');
}

/** The value of a JSON string, number, boolean or null. An object or array is not parsed: it yields an empty object. */
export function scalarOf(json: JsonText | null): unknown {
  if (json === null) return null;
  return isObjectText(json) || isArrayText(json) ? {} : JSON.parse(json);
}
