/** The type of a retained message, its kinds, and the ways in which its payload is kept and shown. */
import { isId, suffixSegments } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { STREAM_SUFFIX_SEGMENTS } from '../limits.ts';
import type { LinkDetails } from '../link-details.ts';
import type { SpillRef } from './spill.ts';

/**
 * The kinds of rows of a link history. One row says that a client link opened, and one that it ended: `link_replaced`
 * if a newer link took over, else `link_closed`.
 */
export const LINK_KINDS = ['link_opened', 'link_closed', 'link_replaced'] as const;
export type LinkMessageKind = (typeof LINK_KINDS)[number];

export const MESSAGE_KINDS = [
  ...(['command', 'progress', 'result', 'error', 'cancel', 'event', 'late_result'] as const),
  ...LINK_KINDS,
] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

/**
 * The error that ended a command: at most 64 characters of code and 256 of message. Never holds raw details, a stack or
 * an exception object.
 */
export type TerminalError = { readonly code: string; readonly message: string };

/**
 * Refers to a payload of more than INLINE_PAYLOAD_BYTES. `name` is null if the payload could not be stored; then only
 * its size and digest are known.
 */
export type PayloadRef = Omit<SpillRef, 'name'> & { readonly name: string | null };

/** A payload as a message keeps it: its text, or a reference to it. Both null: there is no payload. */
export type StoredPayload = { readonly payload: JsonText | null; readonly spill: PayloadRef | null };

export const NO_PAYLOAD: StoredPayload = { payload: null, spill: null };

/** A message to retain. */
export type NewMessage = StoredPayload & {
  readonly id: string;
  readonly userId: string;
  /**
   * The part of the stream's key after the user: `clients/<client>`, `links`, `sites/<site>/events`, or any other
   * suffix that a host ingests under.
   */
  readonly suffix: string;
  readonly kind: MessageKind;
  readonly clientId: string | null;
  readonly instanceId: string | null;
  readonly commandId: string | null;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly error: TerminalError | null;
  /**
   * The details of a link, in messages of the kinds LINK_KINDS; absent in all others. A message with these details has
   * no payload, error, command or trace.
   */
  readonly link?: LinkDetails;
};

/**
 * A retained message. Immutable. `seq` is its position in its stream: it grows and is never reused. `at` is the time of
 * retention, epoch milliseconds. `payloadBytes` is the length of the payload itself, inline or stored.
 */
export type Message = NewMessage & { readonly seq: number; readonly at: number; readonly payloadBytes: number };

/** Whether a message's payload is shown, and why not. */
export type PayloadState = 'redacted' | 'included' | 'spilled_included' | 'expired' | 'unavailable' | 'none';

/**
 * A payload as it is shown. `text`: the payload in the states `included` and `spilled_included`; null in all other
 * states.
 */
export type ShownPayload = { readonly state: PayloadState; readonly text: JsonText | null };

export function streamKey(userId: string, suffix: string): string {
  return `${userId}/${suffix}`;
}

/**
 * The stream of a user's link history. Only the acts that bind and unbind links write it. Its bounds are its own
 * (LINK_MESSAGES, LINK_BYTES), so that a client that reconnects all the time drops no message of another stream.
 */
export const LINK_STREAM = 'links';

export function isLinkKind(kind: string): kind is LinkMessageKind {
  return LINK_KINDS.some((known) => known === kind);
}

export function clientStream(clientId: string): string {
  return `clients/${clientId}`;
}

/**
 * Splits the full key of a stream at the first `/`, because no user id holds one. Null if there is no `/` or a part is
 * empty.
 */
export function splitStreamKey(key: string): { readonly userId: string; readonly suffix: string } | null {
  const cut = key.indexOf('/');
  return cut <= 0 || cut === key.length - 1 ? null : { userId: key.slice(0, cut), suffix: key.slice(cut + 1) };
}

export const STREAM_FORM = `expected <user>/<suffix>, the suffix 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by "/"`;

export function isSuffix(text: string): boolean {
  return suffixSegments(text)?.every(isId) ?? false;
}
