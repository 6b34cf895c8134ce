/** Follows what happens to the page that a library runs in, and keeps an id for each tab. Does nothing outside of pages. */
import { randomId } from './ids.ts';
import { deferred, elapsed, sleep, type Clock } from './platform.ts';

/** Receives the events of a page. */
type PageListener = {
  /** The page is frozen, or goes into the back-forward cache: it runs no code until `shown`. */
  readonly hidden: () => unknown;
  readonly shown: () => unknown;
  /** The page is visible again, or the machine is online again. What was open may be dead, without a word of it. */
  readonly woke: () => unknown;
};

/** Calls the listener until the returned function is called. */
export function followPage({ hidden, shown, woke }: PageListener): () => void {
  const stop = new AbortController();
  const handlers: Readonly<Record<string, (event: Event) => unknown>> = {
    // An event that is not persisted is that of a page which ends, and the browser closes its connections.
    pagehide: (event) => isPersisted(event) && hidden(),
    pageshow: (event) => isPersisted(event) && shown(),
    online: woke,
    freeze: hidden,
    resume: shown,
    visibilitychange: () => document.visibilityState === 'visible' && woke(),
  };
  // The events of the document pass the window as well, while they are captured.
  for (const [type, handler] of Object.entries(handlers))
    globalThis.addEventListener?.(type, handler, { capture: true, signal: stop.signal });
  return () => stop.abort();
}

/** Like `sleep`, but resolves as soon as the page wakes or is shown again. */
export async function sleepUnlessWoken(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = deferred();
  const over = new AbortController();
  const stop = followPage({ hidden() {}, shown: resolve, woke: resolve });
  const slept = sleep(clock, ms, AbortSignal.any([signal, over.signal]));
  try {
    await Promise.race([slept, promise]);
  } finally {
    slept.catch(() => {});
    over.abort();
    stop();
  }
}

/** The silence, in milliseconds, after which a stream counts as dead: three ping intervals of the relay. */
const SILENCE_MS = 60_000;
/** The same when the page has woken: a ping interval, and time for the ping to arrive. */
const WOKEN_SILENCE_MS = 25_000;

/**
 * Watches one event stream. Calls `end`, with the reason, when the relay is silent, and when the page is hidden.
 * `heard` is called for each sign of life, `rest` while nothing is read, and `stop` at the end.
 */
export function watchStream(clock: Clock, end: (reason: string) => void) {
  let heardAt = elapsed(clock);
  let cancel = (): void => {};
  const arm = (ms: number): void => {
    cancel();
    cancel = clock.after(ms, () => end('The relay fell silent.'));
  };
  let resting = false;
  const stopFollowing = followPage({
    hidden: () => end('The page is hidden.'),
    shown() {},
    woke: () => !resting && arm(Math.max(0, WOKEN_SILENCE_MS - (elapsed(clock) - heardAt))),
  });
  arm(SILENCE_MS);
  return {
    heard(): void {
      resting = false;
      heardAt = elapsed(clock);
      arm(SILENCE_MS);
    },
    rest(): void {
      resting = true;
      cancel();
    },
    stop(): void {
      cancel();
      stopFollowing();
    },
  };
}

function isPersisted(event: Event): boolean {
  return 'persisted' in event && event.persisted === true;
}

const KEY = 'callboard.client_id';

/**
 * Returns a new random id for a client. With `perTab`, the id is that of the tab: a reload keeps it, and a duplicated
 * tab has another one. Call it once in a page. Outside of a page, `perTab` changes nothing.
 */
export function newClientId({ perTab = false }: { readonly perTab?: boolean } = {}): string {
  if (!perTab || typeof sessionStorage === 'undefined') return randomId('client-');
  const id = sessionStorage.getItem(KEY) ?? randomId('client-');
  // The id is in the storage only while the page is away. A tab that is duplicated copies the storage of a page that is
  // there, and finds none.
  const take = (): void => sessionStorage.removeItem(KEY);
  take();
  addEventListener('pagehide', () => sessionStorage.setItem(KEY, id));
  addEventListener('pageshow', take);
  return id;
}
