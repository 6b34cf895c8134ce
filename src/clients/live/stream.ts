/**
 * Runs one GraphQL subscription as an event stream, with the client of graphql-sse. It opens the stream only once. Its
 * callers decide whether to open it again, because only they know what missing events mean.
 */
import { createClient } from 'graphql-sse';
import { deferred } from '../link/platform.ts';

/** The most bytes that may arrive before an event is complete. A relay's events are smaller. */
const EVENT_BYTES = 4 * 1024 * 1024;

type StreamRequest = {
  /** The address of the relay's endpoint for event streams. */
  readonly url: string;
  readonly query: string;
  readonly variables: object;
  readonly token: string;
  readonly signal: AbortSignal;
  /** The function that sends the request. Default: the platform's. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Called when the relay has accepted the request. */
  readonly onOpen: () => void;
  /** Called for each chunk that arrives, including pings. */
  readonly onBytes?: (() => void) | undefined;
  /** Receives each result. If it throws, the stream ends and `runStream` rejects with that error. */
  readonly onResult: (result: StreamResult) => void;
};

/** A GraphQL result: `data`, `errors` or both. */
type StreamResult = Readonly<Record<string, unknown>>;

/** A response that is not a stream. `text`: its body. */
export type StreamAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/**
 * The error of a stream that did not complete. `answer`: the response that came instead of a stream; null if the relay
 * was not reached or the stream broke.
 */
export class StreamFailure extends Error {
  readonly answer: StreamAnswer | null;

  constructor(message: string, answer: StreamAnswer | null, cause?: unknown) {
    super(message, { cause });
    this.name = 'StreamFailure';
    this.answer = answer;
  }
}

/**
 * Runs a subscription. Resolves when the relay has completed it. Rejects with StreamFailure if the relay refused it or
 * was not reached, or if the stream broke. Rejects with the signal's reason if the signal is aborted.
 */
export async function runStream(request: StreamRequest): Promise<void> {
  const { url, query, variables, token, signal, onOpen, onResult } = request;
  signal.throwIfAborted();
  const incoming = createIncoming(request.fetch ?? globalThis.fetch, request.onBytes);
  const client = createClient({
    url,
    headers: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
    fetchFn: incoming.fetch,
  });
  const { promise, resolve, reject } = deferred<void>();
  let failed = false;
  const stop = client.subscribe(
    { query, variables: { ...variables } },
    {
      next(result) {
        // graphql-sse passes on events that it had read before it was stopped.
        if (failed || signal.aborted) return;
        try {
          onResult({ ...result });
        } catch (error) {
          failed = true;
          reject(error);
        }
      },
      error: (error) => reject(new StreamFailure('The stream broke.', incoming.refused(), error)),
      // graphql-sse calls this after an abort too. By then the promise has already rejected.
      complete: () => resolve(),
    },
    { connected: onOpen, message: incoming.eventArrived },
  );
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    stop();
  }
}

const LINE_FEED = 10;

/**
 * Sends the request for graphql-sse, and adds what graphql-sse lacks: it passes on whole lines, detects the end of the
 * stream, and limits the size of events.
 */
function createIncoming(send: typeof globalThis.fetch, onBytes?: () => void) {
  let unfinished = 0;
  let refused: StreamAnswer | null = null;

  /** Yields the response in chunks that end at the end of a line. Throws when the response ends. */
  async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    // Some browsers cannot iterate over a ReadableStream, so a reader is used.
    const reader = body.getReader();
    let parts: Uint8Array[] = [];
    try {
      for (;;) {
        const { done, value } = await reader.read();
        // graphql-sse does not notice the end of a stream if its last event arrives at the same moment, but it always
        // reports an error. If the subscription was completed, graphql-sse no longer listens, and this error has no
        // effect.
        if (done) throw new Error('The stream ended before its subscription.');
        onBytes?.();
        unfinished += value.length;
        if (unfinished > EVENT_BYTES) throw new Error(`An event has more than ${EVENT_BYTES} bytes.`);
        // If a chunk ends inside a line, graphql-sse holds back the event before it, and loses it if the stream then
        // breaks.
        const end = value.lastIndexOf(LINE_FEED) + 1;
        if (end > 0) {
          yield joined([...parts, value.subarray(0, end)]);
          parts = [];
        }
        if (end < value.length) parts.push(value.subarray(end));
      }
    } finally {
      void reader.cancel().catch(() => undefined);
    }
  }

  return {
    async fetch(url: string, init: RequestInit) {
      const response = await send(url, init);
      const { ok, status, statusText, headers, body } = response;
      if (ok && body) return { ok, status, statusText, body: linesOf(body) };
      refused = { status, headers, text: await response.text().catch(() => '') };
      return { ok: false, status, statusText };
    },
    refused: (): StreamAnswer | null => refused,
    eventArrived(): void {
      unfinished = 0;
    },
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first, ...others] = parts;
  if (first && others.length === 0) return first;
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
