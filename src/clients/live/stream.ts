/**
 * Runs one GraphQL subscription as an event stream, with the client of graphql-sse. Opens the stream once. Callers
 * decide whether and when to open it again, because only they know what the missing events mean.
 */
import { createClient } from 'graphql-sse';
import { deferred } from '../link/platform.ts';

/** The most bytes that may arrive without completing an event. An event of a relay is smaller. */
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
  /** Called for each part of the stream that arrives, pings included. */
  readonly onBytes?: (() => void) | undefined;
  /** Receives each result. What it throws ends the stream, and `runStream` rejects with it. */
  readonly onResult: (result: StreamResult) => void;
};

/** A result of GraphQL: `data`, `errors` or both. */
type StreamResult = Readonly<Record<string, unknown>>;

/** An answer in place of a stream. `text`: its body. */
export type StreamAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/**
 * The error of a stream that did not come to its end. `answer`: what the relay answered in place of a stream; null if
 * the relay was not reached or the stream broke.
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
 * Runs a subscription. Resolves when the relay has completed it. Rejects with StreamFailure if the relay refused it,
 * was not reached or the stream broke, and with the signal's reason when the signal is aborted.
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
        // graphql-sse hands on what it had read before it was stopped.
        if (failed || signal.aborted) return;
        try {
          onResult({ ...result });
        } catch (error) {
          failed = true;
          reject(error);
        }
      },
      error: (error) => reject(new StreamFailure('The stream broke.', incoming.refused(), error)),
      // graphql-sse also calls this after an abort; then the promise is rejected already.
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

/** Sends the request for graphql-sse, and sees to what it does not: whole lines, the end of the answer and its size. */
function createIncoming(send: typeof globalThis.fetch, onBytes?: () => void) {
  let unfinished = 0;
  let refused: StreamAnswer | null = null;

  /** Yields the answer in chunks that end with a line. Throws when the answer ends. */
  async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    // Some browsers cannot iterate over a ReadableStream.
    const reader = body.getReader();
    let parts: Uint8Array[] = [];
    try {
      for (;;) {
        const { done, value } = await reader.read();
        // graphql-sse does not notice a stream that ends at the moment in which its last event arrives, but it always
        // reports an error. It no longer listens after the subscription was completed.
        if (done) throw new Error('The stream ended before its subscription.');
        onBytes?.();
        unfinished += value.length;
        if (unfinished > EVENT_BYTES) throw new Error(`An event has more than ${EVENT_BYTES} bytes.`);
        // graphql-sse holds an event back while a chunk ends within a line, and loses it if the stream then breaks.
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
