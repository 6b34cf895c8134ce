/** Runs one subscription over server-sent events, in the "distinct connections" mode of the graphql-sse protocol. */
import type { TypedDocumentString } from '../../generated/console.ts';
import { createSseParser } from '../../clients/site/sse.ts';
import { RequestError } from './errors.ts';
import { post, refusalOf, requireToken } from './request.ts';

/** The maximum length of one event, in characters. A longer one ends the stream. */
const EVENT_CHARS = 4 * 1024 * 1024;

export type StreamOptions<Data> = {
  readonly signal: AbortSignal;
  /** Called when the relay has accepted the subscription. */
  readonly onOpen: () => void;
  readonly onData: (data: Data) => void;
};

/**
 * Runs a subscription to its end. Resolves when the relay has completed it. Rejects with RequestError when the relay
 * refused it or the stream broke, and with AbortError when aborted.
 */
export async function subscribe<Data, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
  { signal, onOpen, onData }: StreamOptions<Data>,
): Promise<void> {
  const bearer = requireToken();
  const body = { query: document.toString(), variables };
  const response = await post('/graphql/stream', body, { bearer, signal, accept: 'text/event-stream' });
  if (!response.ok || !response.body) {
    const refused = refusalOf(await response.text(), bearer, response);
    throw refused ?? new RequestError('bad_answer', `HTTP ${response.status} without a stream.`);
  }
  onOpen();
  const parser = createSseParser(EVENT_CHARS);
  for await (const bytes of chunksOf(response.body)) {
    for (const { event, data } of parser.push(bytes)) {
      if (event === 'complete') return;
      if (event === 'next') onData(readNext<Data>(data, bearer, response));
    }
  }
  signal.throwIfAborted();
  throw new RequestError('unreachable', 'The stream broke.');
}

function readNext<Data>(text: string, bearer: string, response: Response): Data {
  const refused = refusalOf(text, bearer, response);
  if (refused) throw refused;
  return JSON.parse(text).data;
}

/** Reads the chunks of a stream. Some browsers cannot iterate over a ReadableStream. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(brokenStream);
      if (done || !value) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function brokenStream(error: unknown): never {
  if (error instanceof DOMException && error.name === 'AbortError') throw error;
  throw new RequestError('unreachable', 'The stream broke.');
}
