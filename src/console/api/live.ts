/**
 * Keeps the one event stream of this tab. The stream is closed while the tab is hidden or paused, and opened again
 * afterwards. A tab that gets no slot for a stream calls `onStale` regularly instead, so that the page is read again.
 */
import { useEffect, useRef } from 'preact/hooks';
import type { TypedDocumentString } from '../../../generated/console.ts';
import { createSseParser } from '../../clients/site/sse.ts';
import { signIns, token } from '../session.ts';
import { brokenSince, liveState, missedEvents, paused, takeSlot } from './query.ts';
import { RequestError, errorOf, post, refusalOf, requireToken, visible } from './request.ts';

/** The pauses before a broken stream is opened again, in milliseconds; the last one repeats. */
const REOPEN_MS = [500, 1_000, 2_000, 5_000, 10_000];
/** The pause between an answer and the next request of a tab without a stream, in milliseconds. */
const ASK_MS = 3_000;
/** The delay after which a page is read again because events were dropped, in milliseconds. */
const STALE_MS = 2_000;

type LiveHandlers<Data> = {
  /** Handles one event. Returns how many events were dropped before it. */
  readonly onData: (data: Data) => number;
  /**
   * Called when the page must be read again: the stream was opened, events were dropped, or there is no stream. Events
   * that arrive before the answer are newer than the answer.
   */
  readonly onStale: () => void;
  /** Called when the relay has completed the subscription, so that no more events follow. */
  readonly onEnd?: () => void;
};

/** Subscribes while the component is shown. A page may call this once. With `skip`, it opens no stream. */
export function useLive<Data, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
  { onData, onStale, onEnd, skip = false }: LiveHandlers<Data> & { readonly skip?: boolean },
): void {
  const handlers = useRef({ onData, onStale, onEnd });
  handlers.current = { onData, onStale, onEnd };
  const key = JSON.stringify(variables);
  const session = token.value === null ? null : signIns.value;
  const isVisible = visible.value;
  const isPaused = paused.value;

  useEffect(() => {
    missedEvents.value = 0;
  }, [key, document]);

  useEffect(() => {
    if (skip || session === null || !isVisible || isPaused) return undefined;
    const stop = new AbortController();
    let staleTimer: ReturnType<typeof setTimeout> | undefined;
    void keepOpen(stop.signal, {
      run: (onOpen) =>
        subscribe(document, variables, {
          signal: stop.signal,
          onOpen: () => {
            // The page may have missed changes between its first answer and this moment, so it is read again.
            handlers.current.onStale();
            onOpen();
          },
          onData: (data) => {
            const missed = handlers.current.onData(data);
            if (missed === 0) return;
            missedEvents.value += missed;
            // A feed that exceeds its limit drops events all the time, so the page is read again at intervals.
            staleTimer ??= setTimeout(() => {
              staleTimer = undefined;
              handlers.current.onStale();
            }, STALE_MS);
          },
        }),
      onStale: () => handlers.current.onStale(),
      onEnd: () => handlers.current.onEnd?.(),
    });
    return () => {
      clearTimeout(staleTimer);
      stop.abort();
      brokenSince.value = null;
      liveState.value = 'off';
    };
  }, [key, document, skip, session, isVisible, isPaused]);
}

type Keep = {
  readonly run: (onOpen: () => void) => Promise<void>;
  readonly onStale: () => void;
  readonly onEnd: () => void;
};

/** Opens the stream again and again until it completes, is refused, or `signal` is aborted. Never rejects. */
async function keepOpen(signal: AbortSignal, { run, onStale, onEnd }: Keep): Promise<void> {
  const setState = (state: typeof liveState.value): void => {
    if (!signal.aborted) liveState.value = state;
  };
  for (let failures = 0; !signal.aborted;) {
    const release = await takeSlot();
    if (release === null) {
      setState('asking');
      await pause(ASK_MS, signal);
      if (!signal.aborted) onStale();
      continue;
    }
    if (failures === 0) setState('opening');
    const opened = (): void => {
      failures = 0;
      brokenSince.value = null;
      setState('live');
    };
    const error = await run(opened).then(() => null, errorOf);
    release();
    if (signal.aborted) return;
    if (error === null) {
      setState('off');
      return onEnd();
    }
    brokenSince.value ??= Date.now();
    setState('broken');
    if (!isWorthRepeating(error)) return;
    await pause(error.retryAfterMs ?? REOPEN_MS[Math.min(failures, REOPEN_MS.length - 1)] ?? ASK_MS, signal);
    failures += 1;
  }
}

/**
 * Whether to open the stream again. A refusal is final; a broken connection, a relay that drains and an unavailable
 * store are not.
 */
function isWorthRepeating({ code }: RequestError): boolean {
  return ['unreachable', 'bad_answer', 'store_unavailable', 'draining', 'rate_limited', 'internal'].includes(code);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

// Runs one subscription over server-sent events, in the "distinct connections" mode of the graphql-sse protocol.

/** The maximum length of one event, in characters. A longer one ends the stream. */
const EVENT_CHARS = 4 * 1024 * 1024;

type StreamOptions<Data> = {
  readonly signal: AbortSignal;
  /** Called when the relay has accepted the subscription. */
  readonly onOpen: () => void;
  readonly onData: (data: Data) => void;
};

/**
 * Runs a subscription to its end. Resolves when the relay has completed it. Rejects with RequestError when the relay
 * refused it or the stream broke, and with AbortError when aborted.
 */
async function subscribe<Data, Variables>(
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
