/**
 * Requests documents for components (`useQuery`), and keeps the one event stream of the tab (`useLive`). A request is
 * repeated when its variables change, after an event, or at intervals.
 */
import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TypedDocumentString } from '../../../generated/console.ts';
import { RELAY_PATH } from '../base.ts';
import { signIns, token } from '../session.ts';
import {
  RequestError,
  errorOf,
  isAbort,
  isPassing,
  parseObject,
  readData,
  refusalOf,
  request,
  requireToken,
  visible,
} from './request.ts';

export type Query<Data> = {
  /**
   * The latest answer; null before the first one. It is kept while the next one is awaited, and after an error of a
   * request with the same variables.
   */
  readonly data: Data | null;
  /** The error of the latest request; null after an answer. */
  readonly error: RequestError | null;
  /** The time at which the latest answer arrived, in epoch milliseconds; null before the first one. */
  readonly asOf: number | null;
  readonly loading: boolean;
  /** The number of requests that were sent so far. The answers of all but the latest one are dropped. */
  readonly sent: number;
  readonly again: () => void;
  /** Repeats the request after an event that changed the answer. Events in close succession cause only one request. */
  readonly changed: () => void;
};

type Asking = {
  /**
   * The pause after each answer before the request is repeated, in milliseconds, while the tab is visible and not
   * paused. Absent: the request is not repeated once it was answered. Use it only for figures that change without an
   * event, such as series over time.
   */
  readonly everyMs?: number | undefined;
  /** The pause after each answer while the tab is hidden and not paused. Absent: a hidden tab requests nothing. */
  readonly hiddenEveryMs?: number;
  readonly skip?: boolean;
};

/** The pause after a failed request, in milliseconds. If the relay names a pause, that one is used. */
const RETRY_MS = 4_000;
/** The shortest pause between an answer and the request that an event causes, in milliseconds. */
const EVENT_GAP_MS = 1_000;

const EMPTY = { data: null, error: null, asOf: null, loading: true, sent: 0 };
type State<Data> = Omit<Query<Data>, 'again' | 'changed'>;

/**
 * Requests the document when the component appears and whenever the variables change. An answer to earlier variables is
 * dropped. Nothing is requested while the tab is hidden, unless `hiddenEveryMs` is given.
 */
export function useQuery<Data, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
  asking: Asking = {},
): Query<Data> {
  return useAnswer(JSON.stringify(variables), (signal) => request(document, variables, signal), {
    ...asking,
    document,
  });
}

/** Does the same as `useQuery`, for an answer that `send` makes of several requests. The key names what is asked for. */
export function useAnswer<Data>(
  key: string,
  send: (signal: AbortSignal) => Promise<Data>,
  { everyMs: visibleEveryMs, hiddenEveryMs, skip = false, document }: Asking & { readonly document?: unknown } = {},
): Query<Data> {
  const [state, setState] = useState<State<Data> & { readonly key: string }>({ ...EMPTY, key });
  const [turn, setTurn] = useState(0);
  const latest = useRef<number | null>(null);
  const changed = useRef<() => void>(() => undefined);
  const everyMs = visible.value ? visibleEveryMs : hiddenEveryMs;
  const isAsking = visible.value || hiddenEveryMs !== undefined;
  const isPaused = paused.value;
  const session = token.value === null ? null : signIns.value;
  useForget(latest, [key, session, turn]);

  // A layout effect runs before the browser paints, so the request is under way during the painting.
  useLayoutEffect(() => {
    if (skip || session === null || !isAsking) return undefined;
    const asking = keepAsking<Data>({
      everyMs,
      isPaused,
      latest,
      send,
      onSend: () => setState((was) => ({ ...was, loading: true, sent: was.sent + 1 })),
      onData: (data, asOf) => setState(({ sent }) => ({ data, error: null, asOf, loading: false, sent, key })),
      onError: (error) =>
        setState((was) => ({ ...was, error, loading: false, ...(was.key !== key && { data: null, key }) })),
    });
    changed.current = asking.changed;
    return () => {
      changed.current = () => undefined;
      asking.stop();
    };
  }, [key, document, everyMs, skip, session, isAsking, isPaused, turn]);

  return { ...state, again: () => setTurn((was) => was + 1), changed: () => changed.current() };
}

/** The time of the latest answer, in epoch milliseconds. Null: `keepAsking` sends the request at once. */
type Latest = { current: number | null };

type Keeping<Data> = Pick<Asking, 'everyMs'> & {
  readonly isPaused: boolean;
  readonly latest: Latest;
  readonly send: (signal: AbortSignal) => Promise<Data>;
  /** Called when a request is sent; `onData` or `onError` follows, unless it is stopped. */
  readonly onSend: () => void;
  readonly onData: (data: Data, asOf: number) => void;
  readonly onError: (error: RequestError) => void;
};

/**
 * Sends one request again and again until it is stopped. At any time a request is under way, or a timer is set for the
 * next one, or nothing is sent until `changed` is called. Without intervals, a request is repeated until its first
 * answer while its errors may pass. A request that is stopped before its answer, and a change
 * that no request has followed, make the next run send at once.
 */
function keepAsking<Data>({ everyMs, isPaused, latest, send, onSend, onData, onError }: Keeping<Data>) {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsking = false;
  let isChanged = false;
  const askAfter = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(ask, ms);
  };
  const ask = (): void => {
    isAsking = true;
    isChanged = false;
    onSend();
    send(stop.signal).then(
      (data) => {
        if (stop.signal.aborted) return;
        isAsking = false;
        latest.current = Date.now();
        onData(data, latest.current);
        if (isChanged) askAfter(EVENT_GAP_MS);
        else if (everyMs !== undefined && !isPaused) askAfter(everyMs);
      },
      (error: unknown) => {
        if (isAbort(error) || stop.signal.aborted) return;
        isAsking = false;
        const shown = errorOf(error);
        onError(shown);
        const isWanted = isChanged || everyMs !== undefined || (latest.current === null && isPassing(shown));
        if (isWanted && !isPaused && shown.code !== 'unauthenticated') askAfter(shown.retryAfterMs ?? RETRY_MS);
      },
    );
  };
  // Without intervals, the age of the latest answer is no reason to ask: the answer is read again after events only.
  const due = everyMs === undefined ? Infinity : everyMs - (Date.now() - (latest.current ?? -Infinity));
  if (latest.current === null || due <= 0) ask();
  else if (everyMs !== undefined && !isPaused) askAfter(due);
  return {
    changed(): void {
      if (!isAsking && !isChanged) askAfter(Math.max(0, EVENT_GAP_MS - (Date.now() - (latest.current ?? 0))));
      isChanged = true;
    },
    stop(): void {
      if (isAsking || isChanged) latest.current = null;
      clearTimeout(timer);
      stop.abort();
    },
  };
}

/** Clears the time of the latest answer when one of `causes` has changed, so that the request is sent at once. */
function useForget(latest: Latest, causes: readonly (string | number | null)[]): void {
  const seen = useRef(causes);
  if (causes.some((cause, at) => cause !== seen.current[at])) latest.current = null;
  seen.current = causes;
}

// Holds the state of live updates in this tab. The top bar shows it, and lets the user pause the updates.

/**
 * The state of the tab's stream. `off`: the page has no live updates. `asking`: the page repeats its requests, because
 * it can have no stream. `broken`: the stream broke and is being opened again.
 */
type LiveState = 'off' | 'opening' | 'live' | 'asking' | 'broken';

export const liveState = signal<LiveState>('off');

/** Whether the user has paused the tab. While true, the tab neither streams nor repeats requests. */
export const paused = signal(false);

/** The time at which the stream broke, in epoch milliseconds; null while it is up. */
export const brokenSince = signal<number | null>(null);

/** The number of events of the current subscription that were dropped, because the browser read too slowly. */
export const missedEvents = signal(0);

// Keeps the one event stream of this tab. The stream is closed while the tab is hidden or paused, and opened again
// afterwards. A tab that gets no slot for a stream, or not its library, calls `onStale` regularly instead, so that the
// page is read again.

/** The pauses before a broken stream is opened again, in milliseconds; the last one repeats. */
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
   * Called when the page must be read again: the stream was opened, events were dropped, or there is no stream. Events
   * that arrive before the answer may be older or newer than the answer.
   */
  readonly onStale: () => void;
  /** Called when the relay has completed the subscription, so that no more events follow. */
  readonly onEnd?: () => void;
};

/** Subscribes while the component is shown. A page may call this once. */
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

  // A layout effect ends the stream of earlier variables before one of its events reaches the handlers of the new ones.
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
  readonly run: (streams: Streams, onOpen: () => void) => Promise<void>;
  readonly onStale: () => void;
  readonly onEnd: () => void;
};

/** Opens the stream again and again until it completes, is refused, or `signal` is aborted. Never rejects. */
async function keepOpen(signal: AbortSignal, { run, onStale, onEnd }: Keep): Promise<void> {
  const setState = (state: typeof liveState.value): void => {
    if (!signal.aborted) liveState.value = state;
  };
  for (let failures = 0; !signal.aborted;) {
    // A browser does not load a file again that it failed to load. The page then goes on without a stream.
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

/** Whether to open the stream again. A refusal is final; a break, a draining relay and an absent store are not. */
const isWorthRepeating = ({ code }: RequestError): boolean =>
  ['unreachable', 'bad_answer', 'store_unavailable', 'draining', 'rate_limited', 'internal'].includes(code);

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

// Bounds the streams of all tabs: over HTTP/1.1 a browser has six connections to a relay, for requests as well.

/** The number of tabs that may hold a stream. Two of the six connections are left for requests. */
const SLOTS = 4;

/** Releases a slot, so that another tab may take it. */
type Release = () => void;

/** Takes a slot; null when all are taken. Over HTTP/2, and in a browser without locks, every tab gets one. */
async function takeSlot(): Promise<Release | null> {
  const { locks } = navigator;
  if (isMultiplexed() || locks === undefined) return () => undefined;
  for (let slot = 1; slot <= SLOTS; slot++) {
    const release = await tryLock(locks, `callboard-stream-${slot}`);
    if (release) return release;
  }
  return null;
}

function tryLock(locks: LockManager, name: string): Promise<Release | null> {
  return new Promise((resolve) => {
    void locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) return resolve(null);
      // The lock is held until the promise of this callback resolves.
      return new Promise<void>((release) => resolve(() => release()));
    });
  });
}

/** Whether all requests use one connection. A cached answer does not show its protocol, so all are examined. */
function isMultiplexed(): boolean {
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return entries.some((entry) => entry instanceof PerformanceResourceTiming && /^h[23]/.test(entry.nextHopProtocol));
}

// Runs one subscription over server-sent events.

/** The library of event streams. It is loaded with the first subscription, so that it does not delay the first page. */
type Streams = typeof import('../../clients/live/stream.ts');

type StreamOptions<Data> = {
  readonly signal: AbortSignal;
  /** Called when the relay has accepted the subscription. */
  readonly onOpen: () => void;
  readonly onData: (data: Data) => void;
};

const EVENT_HEAD = { status: 200, headers: new Headers() };

/**
 * Runs a subscription to its end. Resolves when the relay has completed it. Rejects with RequestError when the relay
 * refused it or the stream broke, and with AbortError when aborted.
 */
async function subscribe<Data, Variables extends object>(
  { runStream, StreamFailure }: Streams,
  document: TypedDocumentString<Data, Variables>,
  { variables, signal, onOpen, onData }: StreamOptions<Data> & { readonly variables: Variables },
): Promise<void> {
  const bearer = requireToken();
  try {
    await runStream({
      ...{ url: `${RELAY_PATH}/graphql/stream`, query: document.toString(), variables },
      ...{ token: bearer, signal, onOpen },
      onResult: (result) => onData(readData<Data>(result, bearer, EVENT_HEAD)),
    });
  } catch (error) {
    if (!(error instanceof StreamFailure)) throw error;
    const { answer } = error;
    if (!answer) throw new RequestError('unreachable', 'The stream broke.');
    const refused = refusalOf(parseObject(answer.text), bearer, answer);
    throw refused ?? new RequestError('bad_answer', `HTTP ${answer.status} without a stream.`);
  }
}
