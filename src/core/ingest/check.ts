/** Checks one ingested message, before anything is stored. */
import type { Crypto } from '../crypto.ts';
import { fail, invalid } from '../errors.ts';
import { collectInputErrors, optional } from '../input-errors.ts';
import { LINK_STREAM } from '../history/message.ts';
import type { IngestedMessage } from '../history/store.ts';
import { id, isId, suffixSegments, trace } from '../ids.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { MAX_FRAME_BYTES, STREAM_SUFFIX_SEGMENTS } from '../limits.ts';
import type { IngestMessage } from './api.ts';

/** A valid message whose payload has not been stored yet. */
export type CheckedMessage = Omit<IngestedMessage, 'payload' | 'spill' | 'instanceId'> & {
  readonly instanceId: string;
  readonly text: JsonText | null;
};

/** The first segments of the suffixes of reserved streams. Only the relay itself writes these streams. */
const RESERVED = ['clients', LINK_STREAM];
const SUFFIX_FORM = `expected 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by "/", none of them "." or ".."`;

/**
 * Checks a message. Throws one `invalid_argument` that names every invalid member, or `reserved_stream`, or
 * `payload_too_large`.
 */
export function checkMessage(crypto: Crypto, userId: string, message: IngestMessage): CheckedMessage {
  const { check, throwIfAny } = collectInputErrors();
  const messageId = check(() => optional(message.messageId, (text) => id('message_id', text)));
  check(() => message.kind === 'event' || invalid('kind', 'expected event: nothing else can be ingested'));
  const checked = {
    suffix: check(() => checkSuffix(message.streamSuffix)) ?? '',
    clientId: check(() => id('client_id', message.clientId)) ?? '',
    instanceId: check(() => id('instance_id', message.instanceId)) ?? '',
    traceId: check(() => optional(message.traceId, (text) => trace('trace_id', text))) ?? null,
    parentSpanId: check(() => optional(message.parentSpanId, (text) => trace('parent_span_id', text))) ?? null,
  };
  throwIfAny();
  if (isReserved(checked.suffix))
    fail('reserved_stream', 'The stream "links" and streams under "clients/" are reserved for links.');
  const { payload } = message;
  if (payload !== null && utf8Length(payload) > MAX_FRAME_BYTES)
    fail('payload_too_large', `A payload has at most ${MAX_FRAME_BYTES} bytes.`);
  const ids = { id: messageId ?? crypto.randomId(), userId, commandId: null, error: null };
  return { ...ids, ...checked, kind: 'event', text: payload };
}

/** Returns the text if it is a valid suffix, else null. */
export function readSuffix(text: string): string | null {
  const good = suffixSegments(text)?.every((segment) => isId(segment) && segment !== '.' && segment !== '..');
  return good ? text : null;
}

function checkSuffix(text: string): string {
  return readSuffix(text) ?? invalid('stream_suffix', SUFFIX_FORM);
}

function isReserved(suffix: string): boolean {
  return RESERVED.some((segment) => suffix === segment || suffix.startsWith(`${segment}/`));
}
