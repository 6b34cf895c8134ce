import { isId, suffixSegments } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { STREAM_SUFFIX_SEGMENTS } from '../limits.ts';
import type { SpillRef } from './spill.ts';

export const MESSAGE_KINDS = ['command', 'progress', 'result', 'error', 'cancel', 'event', 'late_result'] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];

/** Bounded: 64 and 256 characters. Never raw details, a stack or an exception object. */
export type TerminalError = { readonly code: string; readonly message: string };

/** Where a payload of more than INLINE_PAYLOAD_BYTES lies. `name` is null where it could not be stored: its size and digest are what is left. */
export type PayloadRef = Omit<SpillRef, 'name'> & { readonly name: string | null };

/** A payload as a message keeps it: its text, or where it lies. Both null: there is none. */
export type KeptPayload = { readonly payload: JsonText | null; readonly spill: PayloadRef | null };

export const NO_PAYLOAD: KeptPayload = { payload: null, spill: null };

/** A message to retain. */
export type NewMessage = KeptPayload & {
  readonly id: string;
  readonly userId: string;
  /** What follows the user in the stream's key: `clients/<client>`, `sites/<site>/events`, or another ingested suffix. */
  readonly suffix: string;
  readonly kind: MessageKind;
  readonly clientId: string | null;
  readonly instanceId: string | null;
  readonly commandId: string | null;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly error: TerminalError | null;
};

/** A retained message. Immutable. `seq` is its place in its stream, growing, never given twice. `payloadBytes` is the payload's own length, wherever it lies. */
export type Message = NewMessage & { readonly seq: number; readonly at: number; readonly payloadBytes: number };

/** What `payload` shows of a message, and why not more. */
export type PayloadState = 'redacted' | 'included' | 'spilled_included' | 'expired' | 'unavailable' | 'none';

/** A payload as it is shown: the text only where the state says that it is included. */
export type ShownPayload = { readonly state: PayloadState; readonly text: JsonText | null };

export function streamKey(userId: string, suffix: string): string {
  return `${userId}/${suffix}`;
}

export function clientStream(clientId: string): string {
  return `clients/${clientId}`;
}

/** The user holds no `/`, so the first one cuts; null when there is none or a part is empty. */
export function splitStreamKey(key: string): { readonly userId: string; readonly suffix: string } | null {
  const cut = key.indexOf('/');
  return cut <= 0 || cut === key.length - 1 ? null : { userId: key.slice(0, cut), suffix: key.slice(cut + 1) };
}

export const STREAM_FORM = `expected <user>/<suffix>, the suffix 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by "/"`;

export function isSuffix(text: string): boolean {
  return suffixSegments(text)?.every(isId) ?? false;
}
