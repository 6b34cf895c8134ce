/** Ingests messages that hosts send: checks, deduplicates, stores and projects each of them. */
import { requireUser, type Requester } from '../auth/principal.ts';
import type { Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import {
  CallboardError,
  collectInputErrors,
  fail,
  internalMessage,
  invalid,
  optional,
  type Code,
  type InputError,
} from '../errors.ts';
import {
  LINK_STREAM,
  streamKey,
  type IngestResult,
  type IngestedMessage,
  type Message,
  type StoredPayload,
} from '../history/message.ts';
import type { PayloadStorage } from '../history/payload-storage.ts';
import { id, isId, suffixSegments, trace } from '../ids.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { INGEST_BATCH, MAX_FRAME_BYTES, STREAM_SUFFIX_SEGMENTS } from '../limits.ts';
import type { Crypto } from '../ports.ts';
import type { Projector } from '../sites/site-events.ts';
import type { Projection, ProjectionRefusal } from '../sites/projection.ts';

type IngestOptions = { readonly deps: Deps; readonly keeper: PayloadStorage; readonly projector: Projector };

/**
 * Creates the API of ingestion, which is the only way to ingest events. A message is authenticated and assigned to the
 * sender's own user. One atomic act deduplicates it and writes it to history; then it is projected. Results of commands
 * are not ingested here, because they come over links.
 */
export function createIngest(parts: IngestOptions) {
  const { metrics } = parts.deps;
  const ingest = async (
    requester: Requester,
    messages: readonly IngestMessage[],
  ): Promise<readonly IngestVerdict[]> => {
    const { userId } = requireUser(requester, 'host');
    if (messages.length < 1 || messages.length > INGEST_BATCH) invalid('messages', `expected 1 to ${INGEST_BATCH}`);
    const verdicts = await takeAll(parts, userId, messages);
    for (const verdict of verdicts) metrics.count('messages_ingested', labelOf(verdict));
    return verdicts;
  };
  return {
    /**
     * Ingests messages for a user with the scope `host`. Returns one verdict per message, in the order of the messages.
     * A refused message does not affect the others. Throws if the requester is not authorized, and for fewer than 1 or
     * more than 100 messages.
     */
    ingest,
    /** Ingests one message, like `ingest`. A fault of the message is reported in the verdict, and is not thrown. */
    async ingestCooperativeSiteMessage(requester: Requester, message: IngestMessage): Promise<IngestVerdict> {
      const [verdict] = await ingest(requester, [message]);
      return verdict ?? fail('internal', 'The ingestion returned no verdict.');
    },
  };
}

type PreparedMessage = { readonly message: CheckedMessage; readonly kept: StoredPayload };

/**
 * Checks all messages and stores their large payloads first. So the messages are written in the order in which they
 * were sent, however long storing their payloads takes.
 */
async function takeAll(
  parts: IngestOptions,
  userId: string,
  messages: readonly IngestMessage[],
): Promise<readonly IngestVerdict[]> {
  const checked = messages.map((message) => checkOne(parts, userId, message));
  const connections = await connectionsOf(parts, checked.filter(isGood));
  const kept = await Promise.all(checked.map((one) => (isGood(one) ? keepOne(parts, one, connections) : one)));
  const taken = kept.map((one) => (isGood(one) ? retainOne(parts, one) : one));
  const verdicts = taken.map(async (one, i) => {
    const verdict = await one;
    return isGood(verdict) ? verdict : refusalOf(userId, messages[i], verdict);
  });
  return Promise.all(verdicts);
}

function isGood<T>(one: T | CallboardError): one is T {
  return !(one instanceof CallboardError);
}

function checkOne({ deps }: IngestOptions, userId: string, message: IngestMessage): CheckedMessage | CallboardError {
  try {
    return checkMessage(deps.crypto, userId, message);
  } catch (error) {
    return failureOf(deps, error);
  }
}

/** Returns the last known connections of the messages' clients, by client id. Reads all of them together. */
async function connectionsOf(
  { deps }: IngestOptions,
  messages: readonly CheckedMessage[],
): Promise<ReadonlyMap<string, Connection>> {
  const keys = [...new Map(messages.map(({ userId, clientId }) => [clientId, { userId, clientId }])).values()];
  const rows = keys.length === 0 ? [] : await deps.backend.connections.get(keys);
  return new Map(rows.filter((row) => row !== null).map((row) => [row.clientId, row]));
}

async function keepOne(
  { deps, keeper }: IngestOptions,
  message: CheckedMessage,
  connections: ReadonlyMap<string, Connection>,
): Promise<PreparedMessage | CallboardError> {
  // The relay remembers the last instance of a client that is not connected, so that an older instance cannot ingest.
  const last = connections.get(message.clientId);
  if (last && last.instanceId !== message.instanceId)
    return new CallboardError('stale_instance', 'Another instance of the client connected last.');
  try {
    return { message, kept: await keeper.keep(message.text, message.userId) };
  } catch (error) {
    return failureOf(deps, error);
  }
}

/** Writes one message. Calls the store in the same tick, so that messages are written in the order of the calls. */
async function retainOne(
  parts: IngestOptions,
  { message, kept }: PreparedMessage,
): Promise<IngestVerdict | CallboardError> {
  const { deps, keeper } = parts;
  const { text, ...members } = message;
  let result: IngestResult;
  try {
    result = await deps.backend.history.ingest({ ...members, ...kept });
  } catch (error) {
    return failureOf(deps, error);
  }
  const stream = streamKey(message.userId, message.suffix);
  if (result.kind === 'duplicate') {
    keeper.discard(kept);
    return { ...NOTHING, messageId: result.messageId, stream, duplicate: true };
  }
  const projection = await projectOne(parts, result.message, text);
  return { ...NOTHING, messageId: result.message.id, stream, retained: true, ...projection };
}

/** Projects a stored message. If this fails, the message is still ingested. */
async function projectOne(
  { deps, projector }: IngestOptions,
  message: Message,
  text: PreparedMessage['message']['text'],
) {
  try {
    return await projector.project(message, text);
  } catch (error) {
    deps.log.error(
      { err: error, stream: streamKey(message.userId, message.suffix) },
      'an event could not be projected',
    );
    return NOT_PUBLISHED;
  }
}

const NOT_PUBLISHED: Projection = { published: false, refusedBy: null };
const NOTHING: IngestVerdict = {
  messageId: null,
  stream: null,
  retained: false,
  duplicate: false,
  ...NOT_PUBLISHED,
  error: null,
};

function refusalOf(userId: string, message: IngestMessage | undefined, error: CallboardError): IngestVerdict {
  const { messageId = null, streamSuffix = '' } = message ?? {};
  const suffix = readSuffix(streamSuffix);
  return {
    ...NOTHING,
    messageId: messageId !== null && isId(messageId) ? messageId : null,
    stream: suffix === null ? null : streamKey(userId, suffix),
    error: { code: error.code, message: error.message, errors: error.details.errors ?? [] },
  };
}

/**
 * Returns the error for the requester. An unexpected error is logged, and shown as `internal` with the id of the log
 * entry.
 */
function failureOf({ log, crypto }: Deps, error: unknown): CallboardError {
  if (error instanceof CallboardError && error.code !== 'internal') {
    if (error.status >= 500) log.warn({ err: error }, 'a message was not ingested');
    return error;
  }
  const id = crypto.randomId();
  log.error({ err: error, id }, 'a message was not ingested');
  return new CallboardError('internal', internalMessage(id), { cause: error });
}

function labelOf({ error, duplicate }: IngestVerdict): string {
  return error?.code ?? (duplicate ? 'duplicate' : 'retained');
}

/** A message as its sender gives it. Its user is the authenticated user. */
export type IngestMessage = {
  /**
   * The id of the message, which makes it safe to send the message again: the second one is a duplicate. If absent, the
   * relay makes an id.
   */
  readonly messageId?: string | null | undefined;
  /** The kind of the message. It must be `event`. */
  readonly kind: string;
  /**
   * The part of the stream's key after the user: 1 to 8 ids joined by `/`. None may be `.` or `..`, and the first must
   * not be in RESERVED.
   */
  readonly streamSuffix: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly traceId?: string | null | undefined;
  readonly parentSpanId?: string | null | undefined;
  readonly payload: JsonText | null;
};

/** Why a message was not ingested. */
export type IngestError = { readonly code: Code; readonly message: string; readonly errors: readonly InputError[] };

/**
 * The result for one message. A message may be stored but not published: `refusedBy` is then the projection rule that
 * it did not meet.
 */
export type IngestVerdict = {
  /** The id of the stored message. For a refused message: the given id if it is valid, and null otherwise. */
  readonly messageId: string | null;
  /** The full key of the message's stream; null if the suffix is invalid. */
  readonly stream: string | null;
  readonly retained: boolean;
  /**
   * Whether a message with this id was ingested before, within the deduplicator's TTL. A duplicate is only counted: it
   * is not stored or published again.
   */
  readonly duplicate: boolean;
  readonly published: boolean;
  readonly refusedBy: ProjectionRefusal | null;
  readonly error: IngestError | null;
};

// Checks one ingested message, before anything is stored.

/** A valid message whose payload has not been stored yet. */
type CheckedMessage = Omit<IngestedMessage, 'payload' | 'spill' | 'instanceId'> & {
  readonly instanceId: string;
  readonly text: JsonText | null;
};

/** Stream suffixes that begin with one of these segments are reserved: only the relay itself writes to such streams. */
const RESERVED = ['clients', LINK_STREAM];
const SUFFIX_FORM = `expected 1 to ${STREAM_SUFFIX_SEGMENTS} ids joined by "/", none of them "." or ".."`;

/**
 * Checks a message. Throws one `invalid_argument` that names every invalid member, or `reserved_stream`, or
 * `payload_too_large`.
 */
function checkMessage(crypto: Crypto, userId: string, message: IngestMessage): CheckedMessage {
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

/** Returns the text if it is a valid suffix; null otherwise. */
function readSuffix(text: string): string | null {
  const good = suffixSegments(text)?.every(isId);
  return good ? text : null;
}

function checkSuffix(text: string): string {
  return readSuffix(text) ?? invalid('stream_suffix', SUFFIX_FORM);
}

function isReserved(suffix: string): boolean {
  return RESERVED.some((segment) => suffix === segment || suffix.startsWith(`${segment}/`));
}
