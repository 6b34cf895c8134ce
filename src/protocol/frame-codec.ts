/** Parses and writes the text of frames. */
import { HEADER_CHARS } from './bounds.ts';
import {
  CHECKS,
  DOWN_CHECKS,
  faultIn,
  membersOf,
  type BareCheck,
  type DownTable,
  type FieldKind,
  type FieldRule,
} from './fields.ts';
import { TYPE_CHARS, overlong, refusable, unreadable, type FrameFault } from './frame-fault.ts';
import {
  UP,
  UP_WITH_PAYLOAD,
  DOWN_TO_CLIENT,
  DOWN_TO_CALLER,
  DOWN,
  type UpFrame,
  type DownFrame,
  DOWN_TO_ALL,
  DOWN_WITH_PAYLOAD,
} from './frames.ts';
import { ownSlice, parseObject } from './json.ts';
import { parseReport, parseInvoke } from './read-frequent.ts';

// Marked as pure, so that bundlers keep only the tables of the frames that a library reads.
const UP_FORMS = /* @__PURE__ */ formsOf(UP, CHECKS, UP_WITH_PAYLOAD);
const CLIENT_FORMS = /* @__PURE__ */ downForms(DOWN_TO_CLIENT);
const CALLER_FORMS = /* @__PURE__ */ downForms(DOWN_TO_CALLER);
const ALL_FORMS = /* @__PURE__ */ downForms(DOWN);

/**
 * Parses a frame from a client or caller. Returns the frame or its fault. Never throws. The payload is not checked;
 * code that uses the payload must check that it is JSON.
 */
export function parseUp(text: string): UpFrame | FrameFault {
  return (
    parseReport(text) ?? parseInvoke(text) ?? longHeaderOf(text) ?? (parse(UP_FORMS, text) as UpFrame | FrameFault)
  );
}

/** Returns the fault of a frame whose header line is longer than HEADER_CHARS; null for any other frame. */
function longHeaderOf(text: string): FrameFault | null {
  const cut = text.indexOf('\n');
  if ((cut < 0 ? text.length : cut) <= HEADER_CHARS) return null;
  const detail = `the first line is longer than ${HEADER_CHARS} characters`;
  return overlong(cut < 0 ? text : text.slice(0, cut), { fault: 'invalid_argument', detail });
}

/** Parses a frame from the relay. Null for any other text, which a client ignores. Never throws. */
export function parseDown(text: string): DownFrame | null {
  return parseBy(ALL_FORMS, text);
}

/** Parses a frame that the relay sends to a client. Null for any other text. Never throws. */
export function parseForClient(text: string): DownFrame | null {
  return parseBy(CLIENT_FORMS, text);
}

/** Parses a frame that the relay sends to a caller. Null for any other text. Never throws. */
export function parseForCaller(text: string): DownFrame | null {
  return parseBy(CALLER_FORMS, text);
}

function parseBy(forms: Forms, text: string): DownFrame | null {
  const cut = text.indexOf('\n');
  const header = parseObject(cut < 0 ? text : text.slice(0, cut));
  const payload = cut < 0 ? null : text.slice(cut + 1);
  const type = header?.['type'];
  const form = typeof type === 'string' ? forms.get(type) : undefined;
  if (!header || !form || (payload !== null && !form.takesPayload)) return null;
  const frame: Record<string, unknown> = { type, payload };
  for (const { field, optional, check } of form.members) {
    const value = header[field] ?? undefined;
    if (value === undefined ? !optional : !check.test(value)) return null;
    if (value !== undefined) frame[field] = value;
  }
  return frame as DownFrame;
}

export function isFault(frame: UpFrame | FrameFault): frame is FrameFault {
  return 'fault' in frame;
}

type Forms = ReadonlyMap<string, { readonly members: readonly FieldRule[]; readonly takesPayload: boolean }>;

function formsOf<Kind extends FieldKind>(
  tables: Readonly<Record<string, Readonly<Record<string, Kind | `${Kind}?`>>>>,
  checks: Readonly<Record<Kind, BareCheck>>,
  withPayload: readonly string[],
): Forms {
  return new Map(
    Object.entries(tables).map(([type, table]) => [
      type,
      { members: membersOf(table, checks), takesPayload: withPayload.includes(type) },
    ]),
  );
}

function downForms(tables: Readonly<Record<string, DownTable>>): Forms {
  return formsOf({ ...DOWN_TO_ALL, ...tables }, DOWN_CHECKS, DOWN_WITH_PAYLOAD);
}

function parse(forms: Forms, text: string): unknown {
  const { head, payload } = splitFrame(text);
  const header = parseObject(head);
  if (!header) return unreadable('the first line is not a JSON object');
  const { type } = header;
  if (typeof type !== 'string') return unreadable('type: a string was expected');
  const form = forms.get(type);
  if (!form) return refusable(`type: unknown frame ${JSON.stringify(type.slice(0, TYPE_CHARS))}`, header);
  const frame: Record<string, unknown> = { type, payload };
  for (const member of form.members) {
    // No field is called like a member of Object.prototype, so only own members of the header are read here.
    const value = header[member.field];
    const wrong = faultIn(member, value);
    if (wrong !== null) return refusable(wrong, header);
    if (value !== undefined && value !== null) frame[member.field] = value;
  }
  if (payload !== null && !form.takesPayload) return refusable(`${type}: takes no payload`, header);
  return frame;
}

/**
 * Separates the frames in one message. It occurs in no valid frame, because JSON escapes control characters in strings.
 */
export const FRAME_SEPARATOR = '\u001e';
/** The most frames that the relay reads from one message. */
export const FRAMES_PER_MESSAGE = 64;

/**
 * Splits the text of a frame: the first line is the header in JSON; after a line feed follows the payload, if there is
 * one. The payload stays text, because the relay forwards it without serializing it again. Code that uses the payload
 * must check that it is JSON.
 */
function splitFrame(text: string): { readonly head: string; readonly payload: string | null } {
  const cut = text.indexOf('\n');
  if (cut < 0) return { head: text, payload: null };
  return { head: text.slice(0, cut), payload: ownSlice(text, cut + 1, text.length) };
}

/**
 * Writes the text of a frame. `payload`: JSON text. It may contain line feeds, because only the first line feed of a
 * frame separates.
 */
export function joinFrame(header: { readonly type: string }, payload: string | null = null): string {
  const head = JSON.stringify(header);
  return payload === null ? head : `${head}\n${payload}`;
}
