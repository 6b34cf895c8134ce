/**
 * Parses the frames that are sent for each command, if they are written exactly as the libraries write them: without
 * spaces, and with the members in a fixed order. Ids and names contain no characters that JSON escapes, so they can be
 * cut out of the text. For any other text a parser returns null, and the text is then parsed as JSON.
 */
import { ID, NAME, WORDS } from './fields.ts';
import type { UpFrame } from './frames.ts';
import { ownSlice } from './json.ts';

const QUOTE = '"';
const BRACE_END = 0x7d;
const NEWLINE = 0x0a;

const REPORT_HEADS = [
  { type: 'result', head: '{"type":"result","command_id":"', takesPayload: true },
  { type: 'ack', head: '{"type":"ack","command_id":"', takesPayload: false },
] as const;

const PROGRESS_HEAD = '{"type":"progress","command_id":"';
/** Matches the end of a progress header, from its number on. */
const NUMBER_END = /","number":(0|[1-9]\d{0,14})}\n/y;

/** Parses a `progress` frame with a number and a payload. */
function parseProgress(text: string): UpFrame | null {
  const end = text.indexOf(QUOTE, PROGRESS_HEAD.length);
  const command_id = text.slice(PROGRESS_HEAD.length, end);
  NUMBER_END.lastIndex = end;
  const number = end < 0 ? null : NUMBER_END.exec(text);
  if (!number || !ID.test(command_id)) return null;
  const payload = ownSlice(text, NUMBER_END.lastIndex, text.length);
  return { type: 'progress', payload, command_id, number: Number(number[1]) };
}

/** Parses `ack` and `result`, which a client sends for each command, and `progress`. */
export function parseReport(text: string): UpFrame | null {
  if (text.startsWith(PROGRESS_HEAD)) return parseProgress(text);
  for (const { type, head, takesPayload } of REPORT_HEADS) {
    if (!text.startsWith(head)) continue;
    const end = text.indexOf(QUOTE, head.length);
    const command_id = text.slice(head.length, end);
    if (end < 0 || !ID.test(command_id)) return null;
    const payload = payloadAfter(text, end);
    return payload === undefined || (payload !== null && !takesPayload) ? null : { type, payload, command_id };
  }
  return null;
}

const INVOKE_HEAD = '{"type":"invoke","ref":"';
/** Matches a user id that JSON writes without an escape. */
const PLAIN_USER = /^[^\\\u0000-\u001f"]{1,128}$/;

/** Parses an `invoke` frame without time limits, trace and named instance. */
export function parseInvoke(text: string): UpFrame | null {
  if (!text.startsWith(INVOKE_HEAD)) return null;
  const cursor = new Cursor(text, INVOKE_HEAD.length);
  const ref = cursor.value();
  const user_id = cursor.member('","user_id":"');
  const client_id = cursor.member('","client_id":"');
  const command_id = cursor.member('","command_id":"');
  const action = cursor.member('","action":"');
  const wait_for = oneOf(WORDS.waitFor, cursor.member('","wait_for":"'));
  const stages = oneOf(WORDS.stages, cursor.member('","stages":"'));
  const payload = payloadAfter(text, cursor.at);
  if (payload === undefined || client_id === undefined || action === undefined) return null;
  if (!ID.test(ref) || !ID.test(client_id) || !NAME.test(action)) return null;
  if (user_id !== undefined && !PLAIN_USER.test(user_id)) return null;
  if (command_id !== undefined && !ID.test(command_id)) return null;
  if (wait_for === null || stages === null) return null;
  return { type: 'invoke', payload, ref, user_id, client_id, command_id, action, wait_for, stages };
}

/** Reads successive members whose values are strings. */
class Cursor {
  readonly #text: string;
  /** The position of the quote that ends the last value; -1 if a value has no end. */
  at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** Returns the value that begins at `at`. */
  value(): string {
    const from = this.at;
    this.at = this.#text.indexOf(QUOTE, from);
    return this.at < 0 ? '' : this.#text.slice(from, this.at);
  }

  /** If the text continues with `opening`, returns the value after it. Otherwise returns undefined. */
  member(opening: string): string | undefined {
    if (this.at < 0 || !this.#text.startsWith(opening, this.at)) return undefined;
    this.at += opening.length;
    return this.value();
  }
}

/** Returns the text if it is one of the words; undefined if it is absent; null if it is any other text. */
function oneOf<T extends string>(words: readonly T[], text: string | undefined): T | undefined | null {
  return text === undefined ? undefined : (words.find((word) => word === text) ?? null);
}

/** Returns the payload after a header whose last value ends at `end`. Undefined if the header does not end there. */
function payloadAfter(text: string, end: number): string | null | undefined {
  if (end < 0 || text.charCodeAt(end + 1) !== BRACE_END) return undefined;
  if (text.length === end + 2) return null;
  return text.charCodeAt(end + 2) === NEWLINE ? ownSlice(text, end + 3, text.length) : undefined;
}
