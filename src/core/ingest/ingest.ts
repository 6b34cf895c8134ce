/** Ingests messages of hosts: checks, deduplicates, retains and projects each of them. */
import { requireUser } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, fail, internalMessage, invalid } from '../errors.ts';
import type { PayloadStorage } from '../history/payload-storage.ts';
import { streamKey, type StoredPayload, type Message } from '../history/message.ts';
import type { IngestResult } from '../history/store.ts';
import { isId } from '../ids.ts';
import { INGEST_BATCH } from '../limits.ts';
import type { Projection, Projector } from '../sites/projector.ts';
import { checkMessage, readSuffix, type CheckedMessage } from './check.ts';
import type { Ingest, IngestMessage, IngestVerdict } from './api.ts';

export type IngestParts = { readonly deps: Deps; readonly keeper: PayloadStorage; readonly projector: Projector };

/** Creates the API of ingestion. Results of commands are not ingested here: they come over links only. */
export function createIngest(parts: IngestParts): Ingest {
  const { metrics } = parts.deps;
  const ingest: Ingest['ingest'] = async (requester, messages) => {
    const { userId } = requireUser(requester, 'host');
    if (messages.length < 1 || messages.length > INGEST_BATCH) invalid('messages', `expected 1 to ${INGEST_BATCH}`);
    const verdicts = await takeAll(parts, userId, messages);
    for (const verdict of verdicts) metrics.count('messages_ingested', labelOf(verdict));
    return verdicts;
  };
  return {
    ingest,
    async ingestCooperativeSiteMessage(requester, message) {
      const [verdict] = await ingest(requester, [message]);
      return verdict ?? fail('internal', 'The ingestion returned no verdict.');
    },
  };
}

type Kept = { readonly message: CheckedMessage; readonly kept: StoredPayload };

/**
 * Checks all messages and stores their payloads first, so that they are retained in the order sent, however long
 * storing takes.
 */
async function takeAll(
  parts: IngestParts,
  userId: string,
  messages: readonly IngestMessage[],
): Promise<readonly IngestVerdict[]> {
  const checked = messages.map((message) => checkOne(parts, userId, message));
  const connections = await liveOf(parts, checked.filter(isGood));
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

function checkOne({ deps }: IngestParts, userId: string, message: IngestMessage): CheckedMessage | CallboardError {
  try {
    return checkMessage(deps.crypto, userId, message);
  } catch (error) {
    return failureOf(deps, error);
  }
}

/** Returns the live connections of the messages' clients, by client id. One round trip. */
async function liveOf(
  { deps }: IngestParts,
  messages: readonly CheckedMessage[],
): Promise<ReadonlyMap<string, Connection>> {
  const keys = [...new Map(messages.map(({ userId, clientId }) => [clientId, { userId, clientId }])).values()];
  const rows = keys.length === 0 ? [] : await deps.backend.connections.get(keys);
  const now = deps.clock.now();
  return new Map(rows.filter((row) => isLive(row, now)).map((row) => [row.clientId, row]));
}

async function keepOne(
  { deps, keeper }: IngestParts,
  message: CheckedMessage,
  connections: ReadonlyMap<string, Connection>,
): Promise<Kept | CallboardError> {
  const live = connections.get(message.clientId);
  if (live && live.instanceId !== message.instanceId)
    return new CallboardError('stale_instance', 'Another instance of the client is connected.');
  try {
    return { message, kept: await keeper.keep(message.text, message.userId) };
  } catch (error) {
    return failureOf(deps, error);
  }
}

/** Calls the store in the same tick, so that messages are retained in the order of the calls. */
async function retainOne(parts: IngestParts, { message, kept }: Kept): Promise<IngestVerdict | CallboardError> {
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

/** Projects a retained message. A failure does not affect the message. */
async function projectOne({ deps, projector }: IngestParts, message: Message, text: Kept['message']['text']) {
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
 * Returns the error that the requester gets. An unexpected error is logged, and shown as `internal` with the id of the
 * log entry.
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
