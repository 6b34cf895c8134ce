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

/** The frame's payload is not JSON: the frame was not understood, which counts against its sender. */
export class BadPayload extends Error {
  constructor() {
    super('payload: not JSON, or nested too deeply');
  }
}

/** The payload to the letter, once it is known to be JSON. Throws BadPayload. */
export function payloadOf({ payload }: { readonly payload: string | null }): JsonText | null {
  if (payload === null) return null;
  const json = checkedJson(payload);
  if (json === null) throw new BadPayload();
  return json;
}

/** Of a payload that the relay reads: its members, or those of an object in it. Throws `invalid_argument` naming it as `where`. */
export function objectOf(where: string, json: JsonText): Members {
  if (!isObjectText(json)) return invalid(where, 'an object was expected');
  return membersOf(json, ENVELOPE_PARTS) ?? invalid(where, `at most ${ENVELOPE_PARTS} members are read`);
}

/** As `objectOf`, of an array of at most `most` items. */
export function arrayOf(where: string, json: JsonText, most: number): readonly JsonText[] {
  if (!isArrayText(json)) return invalid(where, 'an array was expected');
  return itemsOf(json, most) ?? invalid(where, `at most ${most} items are read`);
}

/** Null stands for left out. */
export function memberIn(members: Members, name: string): JsonText | null {
  const json = members.get(name);
  return json === undefined || json === 'null' ? null : json;
}

/** Throws `invalid_argument`. */
export function textIn(where: string, json: JsonText | null): string | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'string' ? value : invalid(where, 'a string was expected');
}

/** Throws `invalid_argument`. */
export function flagIn(where: string, json: JsonText | null): boolean | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'boolean' ? value : invalid(where, 'true or false was expected');
}

/** The value of a text, a number or a word. Of an object or an array nothing is built: it is none of these. */
export function scalarOf(json: JsonText | null): unknown {
  if (json === null) return null;
  return isObjectText(json) || isArrayText(json) ? {} : JSON.parse(json);
}
