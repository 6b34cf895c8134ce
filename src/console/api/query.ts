/**
 * Requests one document for a component, and repeats the request when its variables change, after an event, or at
 * intervals.
 */
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TypedDocumentString } from '../../../generated/console.ts';
import { signIns, token } from '../session.ts';
import { errorOf, isAbort, send, visible, type RequestError } from './request.ts';

export type Query<Data> = {
  /** The latest answer; null before the first one. It is kept while the next one is awaited, and after an error. */
  readonly data: Data | null;
  /** The text of the latest answer. */
  readonly text: string;
  /** The error of the latest request; null after an answer. */
  readonly error: RequestError | null;
  /** The time at which the latest answer arrived, in epoch milliseconds; null before the first one. */
  readonly asOf: number | null;
  readonly loading: boolean;
  /** Sends the request again now. */
  readonly again: () => void;
  /**
   * Repeats the request after an event that has changed the answer. Calls that follow each other closely cause only one
   * request. So do calls while an answer is awaited.
   */
  readonly changed: () => void;
};

type Asking = {
  /**
   * The pause after each answer before the request is repeated, in milliseconds, while the tab is visible and not
   * paused. Absent: the request is not repeated. Use it only for figures that change without an event, such as series
   * over time.
   */
  readonly everyMs?: number | undefined;
  /** Whether to send no request. */
  readonly skip?: boolean;
};

/** The pause after a failed request, in milliseconds. If the relay names a pause, that one is used. */
const RETRY_MS = 4_000;
/** The shortest pause between an answer and the request that an event causes, in milliseconds. */
const EVENT_GAP_MS = 1_000;

const EMPTY = { data: null, text: '', error: null, asOf: null, loading: true };
type State<Data> = Omit<Query<Data>, 'again' | 'changed'>;

/**
 * Requests the document when the component appears and whenever the variables change. An answer to earlier variables is
 * dropped. Nothing is requested while the tab is hidden.
 */
export function useQuery<Data, Variables>(
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
  { everyMs, skip = false }: Asking = {},
): Query<Data> {
  const key = JSON.stringify(variables);
  const [state, setState] = useState<State<Data> & { readonly key: string }>({ ...EMPTY, key });
  const [turn, setTurn] = useState(0);
  const latest = useRef<number | null>(null);
  const changed = useRef<() => void>(() => undefined);
  const isVisible = visible.value;
  const isPaused = paused.value;
  const session = token.value === null ? null : signIns.value;
  useForget(latest, [key, session, turn]);

  // A layout effect runs before the browser paints, so the request is under way during the painting.
  useLayoutEffect(() => {
    if (skip || session === null || !isVisible) return undefined;
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
      setState((was) => ({ ...was, loading: true }));
      send(document, variables, { signal: stop.signal }).then(
        ({ data, text }) => {
          if (stop.signal.aborted) return;
          isAsking = false;
          latest.current = Date.now();
          setState({ data, text, error: null, asOf: latest.current, loading: false, key });
          if (isChanged) askAfter(EVENT_GAP_MS);
          else if (everyMs !== undefined && !isPaused) askAfter(everyMs);
        },
        (error: unknown) => {
          if (isAbort(error) || stop.signal.aborted) return;
          isAsking = false;
          const shown = errorOf(error);
          setState((was) => ({ ...was, error: shown, loading: false, ...(was.key !== key && { data: null, key }) }));
          if ((isChanged || everyMs !== undefined) && !isPaused && shown.code !== 'unauthenticated')
            askAfter(shown.retryAfterMs ?? RETRY_MS);
        },
      );
    };
    changed.current = () => {
      if (!isAsking && !isChanged) askAfter(Math.max(0, EVENT_GAP_MS - (Date.now() - (latest.current ?? 0))));
      isChanged = true;
    };
    // When a hidden tab is shown again, or a pause ends, a repeated request is sent at once only if its answer is old.
    const due = everyMs === undefined ? Infinity : everyMs - (Date.now() - (latest.current ?? -Infinity));
    if (latest.current === null || due <= 0) ask();
    else if (everyMs !== undefined && !isPaused) askAfter(due);
    return () => {
      changed.current = () => undefined;
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, document, everyMs, skip, session, isVisible, isPaused, turn]);

  return { ...state, again: () => setTurn((was) => was + 1), changed: () => changed.current() };
}

/**
 * Clears the time of the latest answer when one of `causes` has changed. Call it before the effect of `useQuery` that
 * reads this time.
 */
function useForget(latest: { current: number | null }, causes: readonly (string | number | null)[]): void {
  const seen = useRef(causes);
  if (causes.some((cause, at) => cause !== seen.current[at])) latest.current = null;
  seen.current = causes;
}

// Bounds the streams that all tabs of one browser hold open. Over HTTP/1.1 a browser opens six connections to a relay,
// so streams of six tabs would leave none for requests.

/** The number of tabs that may hold a stream. Two of the six connections are left for requests. */
const SLOTS = 4;

/** Releases a slot, so that another tab may take it. */
type Release = () => void;

/**
 * Takes a slot; null when all are taken. Every tab gets a slot over HTTP/2 and later. Every tab also gets one if the
 * browser has no locks, as on a page without a secure origin.
 */
export async function takeSlot(): Promise<Release | null> {
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

/**
 * Whether all requests use one connection. An answer from the browser's cache does not show the protocol, so all
 * requests of the page are examined.
 */
function isMultiplexed(): boolean {
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return entries.some((entry) => entry instanceof PerformanceResourceTiming && /^h[23]/.test(entry.nextHopProtocol));
}

// Holds the state of live updates in this tab. The top bar shows it, and lets the user pause the updates.

/**
 * The state of the tab's stream. `off`: the page has no live updates. `asking`: the page repeats its requests, because
 * no stream is free. `broken`: the stream broke and is being opened again.
 */
type LiveState = 'off' | 'opening' | 'live' | 'asking' | 'broken';

export const liveState = signal<LiveState>('off');

/** Whether the user has paused the tab. While true, the tab neither streams nor repeats requests. */
export const paused = signal(false);

/** The time at which the stream broke, in epoch milliseconds; null while it is up. */
export const brokenSince = signal<number | null>(null);

/** The number of events that were dropped since the page was opened, because the browser read too slowly. */
export const missedEvents = signal(0);
