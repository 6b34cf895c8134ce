/** Describes what is wrong with a received frame, and by which members its sender can identify it. */
import { nameOf } from './json.ts';
import { BRACE, DEPTH, QUOTE, endOfObject, endOfValue, skipSpace } from './json-scan.ts';

/**
 * The fault of a received frame. `unreadable`: the first line is not a JSON object with a `type`. With any other
 * `fault` the frame could be read. `frame`: its type. It and the other members are null if they are absent, not texts,
 * or too long.
 */
export type FrameFault = {
  readonly fault: 'unreadable' | 'invalid_argument' | 'payload_too_large';
  readonly detail: string;
  readonly frame: string | null;
  readonly ref: string | null;
  readonly commandId: string | null;
  /** The code of an `error` frame. */
  readonly code: string | null;
};

type Cause = Pick<FrameFault, 'fault' | 'detail'>;

/** The longest frame type that a fault contains, in characters. The other members have at most the length of an id. */
export const TYPE_CHARS = 32;
const ID_CHARS = 128;

export function unreadable(detail: string): FrameFault {
  return { fault: 'unreadable', detail, frame: null, ref: null, commandId: null, code: null };
}

/** Makes the fault of a frame whose header could be read. */
export function refusable(detail: string, header: Readonly<Record<string, unknown>>): FrameFault {
  return faultOf({ fault: 'invalid_argument', detail }, header);
}

/**
 * Makes the fault of a frame that exceeds its size limit, from its first line, however long it is. Reads only the
 * members that identify the frame.
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
/** The longest JSON text of an identifier, in characters: each character may be an escape of six characters. */
const WRITTEN_CHARS = 6 * ID_CHARS + 2;

/**
 * Returns those members of a JSON object that identify a frame, unless they are too long. Null if the text is not a
 * JSON object with a text as its `type`.
 */
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
  // If the JSON is nested too deeply to be read to its end, the members that were found so far identify the frame.
  const isJson = end === DEPTH || (end >= 0 && skipSpace(head, end) === head.length);
  return isJson && typeof found['type'] === 'string' ? found : null;
}
