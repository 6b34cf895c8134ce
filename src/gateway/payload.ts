/** Checks that the payload of a frame is JSON, and takes members out of it. */
import { invalid } from '../core/errors.ts';
import {
  checkedJson,
  isArrayText,
  isObjectText,
  itemsOf,
  membersOf,
  readMembers,
  type JsonText,
  type Members,
} from '../core/json.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';

/** The error for a payload that is not JSON. Its frame counts as a bad frame of its sender. */
export class BadPayload extends Error {
  constructor() {
    super('payload: not JSON, or nested too deeply');
  }
}

/** Returns the payload unchanged if it is JSON; null if the frame has no payload. Else throws BadPayload. */
export function payloadOf({ payload }: { readonly payload: string | null }): JsonText | null {
  if (payload === null) return null;
  const json = checkedJson(payload);
  if (json === null) throw new BadPayload();
  return json;
}

/**
 * Returns the members of a JSON object, as JSON texts. Throws `invalid_argument` for the parameter `where` if the text
 * is not an object.
 */
export function objectOf(where: string, json: JsonText): Members {
  if (!isObjectText(json)) return invalid(where, 'an object was expected');
  return membersOf(json, ENVELOPE_PARTS) ?? invalid(where, `at most ${ENVELOPE_PARTS} members are allowed`);
}

/** Does the same as `objectOf`, for the payload of a frame, which has not been checked yet. */
export function payloadMembers(payload: string | null): Members {
  const members = payload === null ? 'syntax' : readMembers(payload, ENVELOPE_PARTS);
  if (members === null) return invalid('payload', 'an object was expected');
  if (members === 'members') return invalid('payload', `at most ${ENVELOPE_PARTS} members are allowed`);
  if (typeof members === 'string') return invalid('payload', 'not JSON, or nested too deeply');
  return members;
}

/**
 * Returns the items of a JSON array. Throws `invalid_argument` for the parameter `where` if the text is not an array,
 * or has more than `most` items.
 */
export function arrayOf(where: string, json: JsonText, most: number): readonly JsonText[] {
  if (!isArrayText(json)) return invalid(where, 'an array was expected');
  return itemsOf(json, most) ?? invalid(where, `at most ${most} items are allowed`);
}

/** Returns the value of a member as JSON text; null if it is absent or JSON `null`. */
export function memberIn(members: Members, name: string): JsonText | null {
  const json = members.get(name);
  return json === undefined || json === 'null' ? null : json;
}

/** Reads a string, or null. Throws `invalid_argument` for the parameter `where` if the value is anything else. */
export function textIn(where: string, json: JsonText | null): string | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'string' ? value : invalid(where, 'a string was expected');
}

/** Reads a boolean, or null. Throws `invalid_argument` for the parameter `where` if the value is anything else. */
export function flagIn(where: string, json: JsonText | null): boolean | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'boolean' ? value : invalid(where, 'true or false was expected');
}

/**
 * Reads a JSON string, number, boolean or null. Returns an empty object for an object or an array, without parsing it.
 */
export function scalarOf(json: JsonText | null): unknown {
  if (json === null) return null;
  return isObjectText(json) || isArrayText(json) ? {} : JSON.parse(json);
}
