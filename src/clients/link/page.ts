/**
 * Follows the life cycle of the page in which a library runs, and makes an id for each tab. Has no effect outside of
 * pages.
 */
import { randomId } from './ids.ts';
import { deferred, elapsed, sleep, type Clock } from './platform.ts';

/** Receives the events of a page. */
type PageListener = {
  /** Called when the page is frozen or enters the back-forward cache. It runs no code until `shown`. */
  readonly hidden: () => unknown;
  readonly shown: () => unknown;
  /** Called when the page is visible again, or the machine is online again. Connections may have died unnoticed. */
  readonly woke: () => unknown;
};

/** Calls the listener until the returned function is called. */
export function followPage({ hidden, shown, woke }: PageListener): () => void {
  const stop = new AbortController();
  const handlers: Readonly<Record<string, (event: Event) => unknown>> = {
    // If the event is not persisted, the page ends, and the browser closes its connections.
    pagehide: (event) => isPersisted(event) && hidden(),
    pageshow: (event) => isPersisted(event) && shown(),
    online: woke,
    freeze: hidden,
    resume: shown,
    visibilitychange: () => document.visibilityState === 'visible' && woke(),
  };
  // Events of the document also reach the window, in the capture phase.
  for (const [type, handler] of Object.entries(handlers))
    globalThis.addEventListener?.(type, handler, { capture: true, signal: stop.signal });
  return () => stop.abort();
}

/** Waits like `sleep`, but resolves at once when the page wakes or is shown again. */
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

/** A stream counts as dead after this silence, in milliseconds: three ping intervals of the relay. */
const SILENCE_MS = 60_000;
/** The same after the page has woken, in milliseconds: one ping interval, and time for the ping to arrive. */
const WOKEN_SILENCE_MS = 25_000;

/**
 * Watches one event stream. Calls `end` with a reason if the relay is silent for too long, or if the page is hidden.
 * Call `heard` at each sign of life, `rest` when nothing is being read, and `stop` at the end.
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
 * Returns a new random id for a client. With `perTab`, the id belongs to the tab: a reload keeps it, and a duplicate of
 * the tab gets another one. Call this once in a page. Outside of pages, `perTab` has no effect.
 */
export function newClientId({ perTab = false }: { readonly perTab?: boolean } = {}): string {
  if (!perTab || typeof sessionStorage === 'undefined') return randomId('client-');
  const id = sessionStorage.getItem(KEY) ?? randomId('client-');
  // The id is in the session storage only while no page of the tab is loaded. A duplicate copies the storage of a
  // loaded page, so it finds no id.
  const take = (): void => sessionStorage.removeItem(KEY);
  take();
  addEventListener('pagehide', () => sessionStorage.setItem(KEY, id));
  addEventListener('pageshow', take);
  return id;
}
