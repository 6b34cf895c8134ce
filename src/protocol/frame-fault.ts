/** What is wrong with a received frame, and which of its members identify it to its sender. */
import { nameOf } from './json.ts';
import { BRACE, DEPTH, QUOTE, endOfObject, endOfValue, skipSpace } from './json-scan.ts';

/**
 * A frame that is not handled as it stands. `unreadable`: it has no JSON object with a `type` as its first line. Any
 * other fault is that of a frame that could be read. `frame` is the type; it and the other members are null if they are
 * absent or no texts of a usual length.
 */
export type FrameFault = {
  readonly fault: 'unreadable' | 'invalid_argument' | 'payload_too_large';
  readonly detail: string;
  readonly frame: string | null;
  readonly ref: string | null;
  readonly commandId: string | null;
  /** The code of an `error`. */
  readonly code: string | null;
};

type Cause = Pick<FrameFault, 'fault' | 'detail'>;

/** The longest type that a fault names; the other members are ids, or as long as one. */
export const TYPE_CHARS = 32;
const ID_CHARS = 128;

export function unreadable(detail: string): FrameFault {
  return { fault: 'unreadable', detail, frame: null, ref: null, commandId: null, code: null };
}

/** Returns the fault of a frame whose header was read. */
export function refusable(detail: string, header: Readonly<Record<string, unknown>>): FrameFault {
  return faultOf({ fault: 'invalid_argument', detail }, header);
}

/**
 * Returns the fault of a frame that is longer than its bound, from its first line, of any length. Builds nothing of it
 * but the members that identify the frame.
 */
export function overlong(head: string, cause: Cause): FrameFault {
  const header = identifiersIn(head);
  return header === null ? unreadable('the first line is not a JSON object with a type') : faultOf(cause, header);
}

function faultOf(cause: Cause, { type, ref, command_id, code }: Readonly<Record<string, unknown>>): FrameFault {
  return {
    ...cause,
    frame: textOf(type, TYPE_CHARS),
    ref: textOf(ref, ID_CHARS),
    commandId: textOf(command_id, ID_CHARS),
    code: textOf(code, ID_CHARS),
  };
}

function textOf(value: unknown, most: number): string | null {
  return typeof value === 'string' && value.length <= most ? value : null;
}

const IDENTIFIERS: ReadonlySet<string> = new Set(['type', 'ref', 'command_id', 'code']);
/** Any escape takes at most six characters. */
const WRITTEN_CHARS = 6 * ID_CHARS + 2;

/** Returns the identifiers in a JSON object, if they have a usual length; null if the text is none, or has no text as its `type`. */
function identifiersIn(head: string): Readonly<Record<string, unknown>> | null {
  const start = skipSpace(head, 0);
  if (head.charCodeAt(start) !== BRACE) return null;
  const found: Record<string, unknown> = Object.create(null);
  const end = endOfObject(head, start, 1, (nameStart, nameEnd, from) => {
    const to = endOfValue(head, from, 1);
    const isShort = nameEnd - nameStart <= WRITTEN_CHARS && to - from <= WRITTEN_CHARS;
    if (to < 0 || !isShort || head.charCodeAt(from) !== QUOTE) return to;
    const name = nameOf(head, nameStart, nameEnd);
    if (IDENTIFIERS.has(name)) found[name] = nameOf(head, from, to);
    return to;
  });
  // What is nested deeper than any reader accepts is not read further: what was found names the frame.
  const isJson = end === DEPTH || (end >= 0 && skipSpace(head, end) === head.length);
  return isJson && typeof found['type'] === 'string' ? found : null;
}
