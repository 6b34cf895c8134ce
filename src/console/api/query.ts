/** Reads one document for a component, and again when its variables change or after a pause. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TypedDocumentString } from '../../generated/console.ts';
import { signIns, token } from '../session/session.ts';
import { errorOf, isAbort, type RequestError } from './errors.ts';
import { paused } from './live-state.ts';
import { send } from './request.ts';
import { visible } from './visible.ts';

export type Query<Data> = {
  /** The latest answer; null before the first one. It is kept while the next one is awaited, and after an error. */
  readonly data: Data | null;
  /** The text of the latest answer. */
  readonly text: string;
  /** The error of the latest request; null after an answer. */
  readonly error: RequestError | null;
  /** When the latest answer arrived, in epoch milliseconds; null before the first one. */
  readonly asOf: number | null;
  readonly loading: boolean;
  /** Sends the request again now. */
  readonly again: () => void;
};

export type Asking = {
  /**
   * How long after each answer the request is sent again, in milliseconds, while the tab is visible and not paused;
   * absent: never.
   */
  readonly everyMs?: number | undefined;
  /** While true, no request is sent. */
  readonly skip?: boolean;
};

/** The pause after a failed request, in milliseconds, unless the relay names one. */
const RETRY_MS = 4_000;

const EMPTY = { data: null, text: '', error: null, asOf: null, loading: true };
type State<Data> = Omit<Query<Data>, 'again'>;

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
  const isVisible = visible.value;
  const isPaused = paused.value;
  const session = token.value === null ? null : signIns.value;
  useForget(latest, [key, session, turn]);

  // Before the browser paints, so that the answer is on its way meanwhile.
  useLayoutEffect(() => {
    if (skip || session === null || !isVisible) return undefined;
    // When a hidden tab is shown again, or a pause ends, only old answers of repeated requests are requested again.
    const age = latest.current === null ? Infinity : Date.now() - latest.current;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = (): void => {
      setState((was) => ({ ...was, loading: true }));
      send(document, variables, { signal: stop.signal }).then(
        ({ data, text }) => {
          if (stop.signal.aborted) return;
          latest.current = Date.now();
          setState({ data, text, error: null, asOf: latest.current, loading: false, key });
          if (everyMs !== undefined && !isPaused) timer = setTimeout(ask, everyMs);
        },
        (error: unknown) => {
          if (isAbort(error) || stop.signal.aborted) return;
          const shown = errorOf(error);
          setState((was) => ({ ...was, error: shown, loading: false, ...(was.key !== key && { data: null, key }) }));
          if (everyMs !== undefined && shown.code !== 'unauthenticated')
            timer = setTimeout(ask, shown.retryAfterMs ?? RETRY_MS);
        },
      );
    };
    const due = everyMs === undefined ? Infinity : everyMs - age;
    if (latest.current === null || due <= 0) ask();
    else if (everyMs !== undefined && !isPaused) timer = setTimeout(ask, due);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, document, everyMs, skip, session, isVisible, isPaused, turn]);

  return { ...state, again: () => setTurn((was) => was + 1) };
}

/** Forgets the time of the latest answer before the effect above runs, when something other than the pause changed. */
function useForget(latest: { current: number | null }, causes: readonly (string | number | null)[]): void {
  const seen = useRef(causes);
  if (causes.some((cause, at) => cause !== seen.current[at])) latest.current = null;
  seen.current = causes;
}
