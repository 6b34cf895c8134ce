/**
 * Requests GraphQL documents for components (`useQuery`), and repeats a request when its variables change, after an
 * event, or at intervals.
 */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TypedDocumentString } from '../../../generated/console.ts';
import { signIns, token } from '../session.ts';
import { paused } from './live-state.ts';
import { visible } from './visible.ts';
import { RequestError, errorOf, isAbort, isPassing, request } from './request.ts';

export type Query<Data> = {
  /**
   * The latest answer; null before the first one. It stays while the next answer is awaited, and after an error if the
   * variables are the same.
   */
  readonly data: Data | null;
  /** The error of the latest request; null after an answer. */
  readonly error: RequestError | null;
  /** The time at which the latest answer arrived, in epoch milliseconds; null before the first one. */
  readonly asOf: number | null;
  readonly loading: boolean;
  /** The number of requests sent so far. Only the answer to the latest one is used. */
  readonly sent: number;
  readonly again: () => void;
  /** Repeats the request after an event that changed the answer. Events in close succession cause only one request. */
  readonly changed: () => void;
};

type Asking = {
  /**
   * The delay between an answer and the next request in milliseconds, while the tab is visible and not paused. Absent:
   * an answered request is not repeated. Use this only for figures that change without an event, such as time series.
   */
  readonly everyMs?: number | undefined;
  /** The same delay while the tab is hidden and not paused. Absent: a hidden tab requests nothing. */
  readonly hiddenEveryMs?: number;
  readonly skip?: boolean;
};

/** The delay after a failed request in milliseconds, unless the relay's answer names one. */
const RETRY_MS = 4_000;
/** The minimum delay between an answer and a request that an event causes, in milliseconds. */
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

/** Like `useQuery`, for an answer that `send` combines from several requests. `key`: identifies the answer. */
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

  // A layout effect, because it runs before the browser paints, so that the request is already sent while it paints.
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

/** The time of the latest answer, in epoch milliseconds. Null makes `keepAsking` send the request at once. */
type Latest = { current: number | null };

type Keeping<Data> = Pick<Asking, 'everyMs'> & {
  readonly isPaused: boolean;
  readonly latest: Latest;
  readonly send: (signal: AbortSignal) => Promise<Data>;
  /** Called when a request is sent. `onData` or `onError` is called later, unless the requests are stopped. */
  readonly onSend: () => void;
  readonly onData: (data: Data, asOf: number) => void;
  readonly onError: (error: RequestError) => void;
};

/**
 * Repeats one request until it is stopped. At any time one of three things is true: a request is in progress, a timer
 * is set for the next one, or nothing happens until `changed` is called. Without intervals, the request is repeated
 * until its first answer as long as its errors may be temporary. The next run sends at once in two cases: the last run
 * was stopped before its answer, or after a change that no request has followed.
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
  // Without intervals, the age of the latest answer does not matter: it is read again only after events.
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

/** Clears the time of the latest answer if one of `causes` has changed, so that the request is sent at once. */
function useForget(latest: Latest, causes: readonly (string | number | null)[]): void {
  const seen = useRef(causes);
  if (causes.some((cause, at) => cause !== seen.current[at])) latest.current = null;
  seen.current = causes;
}
