/** The formats of ids and names, the keys of clients and commands, and the checks of texts and integers. */
import { isIn, type Range } from '../protocol/bounds.ts';
import { ID, ID_FORM, NAME, NAME_FORM, TRACE, TRACE_FORM } from '../protocol/fields.ts';
import { fail, invalid } from './errors.ts';
import { FILTER_TEXT_CHARS, ID_MAX_CHARS, STREAM_SUFFIX_SEGMENTS, USER_GIVEN_CHARS, USER_MAX_CHARS } from './limits.ts';

export { ID_FORM, ID_PATTERN, NAME_PATTERN } from '../protocol/fields.ts';

/**
 * The control characters that user ids and trace ids must not contain, as part of a regular expression's character
 * class.
 */
export const CONTROL_CHARS = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029';
const CONTROL = new RegExp(`[${CONTROL_CHARS}]`);
const SPACE = /\s/;

/** Whether the text has at most `most` characters. A character is a Unicode code point, as in JSON Schema. */
export function hasAtMost(text: string, most: number): boolean {
  return text.length <= most || (text.length <= 2 * most && [...text].length <= most);
}

export function isId(text: string): boolean {
  return ID.test(text);
}

export function isName(text: string): boolean {
  return NAME.test(text);
}

/** Returns the id if it has the format of ids. Otherwise throws `invalid_argument` with the parameter's name. */
export function id(parameter: string, text: string): string {
  return ID.test(text) ? text : invalid(parameter, `expected ${ID_FORM}`);
}

export function isTrace(text: string): boolean {
  return TRACE.test(text);
}

/**
 * Returns the id of a trace or a span of another tracing system, if it is valid. Otherwise throws `invalid_argument`
 * with the parameter's name.
 */
export function trace(parameter: string, text: string): string {
  if (isTrace(text)) return text;
  return invalid(parameter, `expected ${TRACE_FORM}`);
}

/** Returns the name if it has the format of names. Otherwise throws `invalid_argument` with the parameter's name. */
export function name(parameter: string, text: string): string {
  return NAME.test(text) ? text : invalid(parameter, `expected ${NAME_FORM}`);
}

/**
 * Splits a stream suffix at each `/`. Null if the text is too long or has too many segments. Does not check the
 * segments.
 */
export function suffixSegments(text: string): readonly string[] | null {
  if (text.length > STREAM_SUFFIX_SEGMENTS * (ID_MAX_CHARS + 1)) return null;
  const segments = text.split('/');
  return segments.length <= STREAM_SUFFIX_SEGMENTS ? segments : null;
}

/**
 * Matches user ids that are certainly in canonical form: ASCII, lower case, without spaces, control characters and `/`.
 */
const PLAIN_USER = /^(?!\.{1,2}$)[a-z0-9_.:@~+-]{1,128}$/;

const USER_FORM = 'A user is 1 to 128 characters without control characters and without "/", and neither "." nor "..".';

/**
 * Returns the canonical form of a user id: NFC, trimmed, and in lower case if it is an e-mail address. Throws
 * `invalid_user` if the given text has more than 512 characters; this is checked first. Throws it as well if the result
 * is empty, is `.` or `..`, has more than 128 characters, or contains a control character, a lone surrogate or a `/`.
 */
export function canonicalUser(text: string): string {
  if (PLAIN_USER.test(text)) return text;
  if (text.length > USER_GIVEN_CHARS) fail('invalid_user', USER_FORM);
  const tidy = text.normalize('NFC').trim();
  // The lower-case form of a letter may combine with the character after it, so the text is normalized again.
  const user = isEmail(tidy) ? tidy.toLowerCase().normalize('NFC') : tidy;
  const bad =
    ['', '.', '..'].includes(user) ||
    !hasAtMost(user, USER_MAX_CHARS) ||
    user.includes('/') ||
    CONTROL.test(user) ||
    !user.isWellFormed();
  return bad ? fail('invalid_user', USER_FORM) : user;
}

/**
 * Whether the text looks like an e-mail address: it has no space and one `@`, which is not the first character, and the
 * part after it contains a dot. Takes linear time, because no regular expression can backtrack here.
 */
function isEmail(text: string): boolean {
  const at = text.indexOf('@');
  if (at < 1 || text.includes('@', at + 1) || SPACE.test(text)) return false;
  return text.slice(at + 2, -1).includes('.');
}

export function isCanonicalUser(text: string): boolean {
  try {
    return canonicalUser(text) === text;
  } catch {
    return false;
  }
}

/** Identifies a client of a user: the target of a command and the key of a connection. */
export type ClientKey = { readonly userId: string; readonly clientId: string };
export type CommandKey = ClientKey & { readonly commandId: string };

/** Returns the key of a command, without its other members. */
export function keyOf({ userId, clientId, commandId }: CommandKey): CommandKey {
  return { userId, clientId, commandId };
}

/**
 * Returns the key as one text, for use as a key of maps. The text is unambiguous, because neither user ids nor client
 * ids contain a `/`.
 */
export function clientKeyText(key: ClientKey): string {
  return `${key.userId}/${key.clientId}`;
}

export function commandKeyText(key: CommandKey): string {
  return `${key.userId}/${key.clientId}/${key.commandId}`;
}

/** Matches command ids that the relay makes: UUIDs of version 7, which sort by time. */
const RELAY_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function isRelayId(commandId: string): boolean {
  return RELAY_ID.test(commandId);
}

// Checks integers against their declared ranges.

/** Whether the value is absent or an integer in the range. */
export function isWithin(value: number | null | undefined, range: Range): boolean {
  return value === null || value === undefined || isIn(value, range);
}

/**
 * Returns the value, or the default if it is absent. Throws `invalid_argument` with the parameter's name if the value
 * is not an integer in the range.
 */
export function within(
  parameter: string,
  value: number | null | undefined,
  range: Range & { readonly default: number },
): number {
  return isWithin(value, range)
    ? (value ?? range.default)
    : invalid(parameter, `expected ${range.min} to ${range.max}`);
}

/** Returns the search text of a filter in lower case. Throws `invalid_argument` if it is empty or too long. */
export function filterText(text: string): string {
  const fits = text.length >= 1 && hasAtMost(text, FILTER_TEXT_CHARS);
  return fits ? text.toLowerCase() : invalid('text', `expected 1 to ${FILTER_TEXT_CHARS} characters`);
}
