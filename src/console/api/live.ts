/**
 * Keeps the one event stream of this tab. The stream is closed while the tab is hidden or paused, and opened again
 * afterwards. If a tab gets no slot for a stream, or cannot load the library of streams, it calls `onStale` regularly
 * instead, so that the page is read again.
 */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { TypedDocumentString } from '../../../generated/console.ts';
import { signIns, token } from '../session.ts';
import { paused, missedEvents, brokenSince, liveState } from './live-state.ts';
import { visible } from './visible.ts';
import { RequestError, errorOf } from './request.ts';
import { takeSlot } from './stream-slots.ts';
import { subscribe, type Streams } from './subscribe.ts';

/** The delays before a broken stream is opened again, in milliseconds. The last one repeats. */
const REOPEN_MS = [500, 1_000, 2_000, 5_000, 10_000];
/** The pause between an answer and the next request of a tab without a stream, in milliseconds. */
const ASK_MS = 3_000;
/** The delay after which a page is read again because events were dropped, in milliseconds. */
const STALE_MS = 2_000;

type Live<Data, Variables> = {
  readonly variables: Variables;
  readonly skip?: boolean;
  /** Handles one event. Returns how many events were dropped before it. */
  readonly onData: (data: Data) => number;
  /**
   * Called when the page must be read again: the stream was opened, events were dropped, or there is no stream. An
   * event that arrives before the answer may be older or newer than the answer.
   */
  readonly onStale: () => void;
  /** Called when the relay has completed the subscription. No events follow. */
  readonly onEnd?: () => void;
};

/** Subscribes while the component is shown. A page must call this at most once. */
export function useLive<Data, Variables extends object>(
  document: TypedDocumentString<Data, Variables>,
  { variables, onData, onStale, onEnd, skip = false }: Live<Data, Variables>,
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

  // A layout effect, because it ends the stream of the previous variables before one of its events could reach the new
  // handlers.
  useLayoutEffect(() => {
    if (skip || session === null || !isVisible || isPaused) return undefined;
    const stop = new AbortController();
    let staleTimer: ReturnType<typeof setTimeout> | undefined;
    void keepOpen(stop.signal, {
      run: (streams, onOpen) =>
        subscribe(streams, document, {
          variables,
          signal: stop.signal,
          onOpen: () => {
            // Read again, because the page may have missed changes between its first answer and this moment.
            handlers.current.onStale();
            onOpen();
          },
          onData: (data) => {
            const missed = handlers.current.onData(data);
            if (missed === 0) return;
            missedEvents.value += missed;
            // If a feed of events exceeds its limit, events are dropped all the time. The page is therefore read again
            // only at intervals.
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
  readonly run: (streams: Streams, onOpen: () => void) => Promise<void>;
  readonly onStale: () => void;
  readonly onEnd: () => void;
};

/**
 * Opens the stream again and again until the subscription completes, is refused, or `signal` is aborted. Never rejects.
 */
async function keepOpen(signal: AbortSignal, { run, onStale, onEnd }: Keep): Promise<void> {
  const setState = (state: typeof liveState.value): void => {
    if (!signal.aborted) liveState.value = state;
  };
  for (let failures = 0; !signal.aborted;) {
    // If a browser failed to load a file, it does not load it again. The page then works without a stream.
    const streams = await import('../../clients/live/stream.ts').catch(() => null);
    const release = streams && (await takeSlot());
    if (streams === null || release === null) {
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
    const error = await run(streams, opened).then(() => null, errorOf);
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
 * Whether to open the stream again after this error. A refusal is final. A broken stream, a draining relay and an
 * unavailable store are temporary.
 */
const isWorthRepeating = ({ code }: RequestError): boolean =>
  ['unreachable', 'bad_answer', 'store_unavailable', 'draining', 'rate_limited', 'internal'].includes(code);

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
