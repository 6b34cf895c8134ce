/** Splits a text frame into header and payload, and joins them. Knows no frame types. */
import { isRecord } from './json-value.ts';
import { ownSlice } from './json.ts';

/**
 * One text frame: a JSON header on the first line, then optionally a newline and the payload's JSON text. The relay
 * never serializes the payload again, so it stays text here. The code that uses the payload checks that it is JSON.
 */
export type RawFrame = {
  readonly header: Record<string, unknown> & { readonly type: string };
  readonly payload: string | null;
};

/** What is wrong with a frame. `frame` is its type and `ref` its reference; each is null when it could not be read. */
export type FrameFault = {
  readonly fault: 'invalid_argument';
  readonly detail: string;
  readonly frame: string | null;
  readonly ref: string | null;
};

export const SUBPROTOCOL = 'callboard.v1';

/** Separates the frames of one message. No valid frame holds it, because JSON text escapes control characters. */
export const FRAME_SEPARATOR = '\u001e';
/** The most frames that the relay reads from one message. */
export const FRAMES_PER_MESSAGE = 64;

/** Returns a frame or a fault for every text; never throws. */
export function splitFrame(text: string): RawFrame | FrameFault {
  const cut = text.indexOf('\n');
  const head = cut < 0 ? text : text.slice(0, cut);
  const payload = cut < 0 ? null : ownSlice(text, cut + 1, text.length);
  const header = parseObject(head);
  if (!header) return faultOf('the first line is not a JSON object', null, null);
  const { type } = header;
  if (typeof type !== 'string' || type.length > 32) return faultOf('type: a string was expected', null, null);
  return { header: header as RawFrame['header'], payload };
}

/**
 * Writes the text of a frame. `payload` must be JSON text. It may contain newlines, because only the frame's first
 * newline separates header and payload.
 */
export function joinFrame(header: { readonly type: string }, payload: string | null = null): string {
  const head = JSON.stringify(header);
  return payload === null ? head : `${head}\n${payload}`;
}

export function faultOf(detail: string, frame: string | null, ref: string | null): FrameFault {
  return { fault: 'invalid_argument', detail, frame, ref };
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
