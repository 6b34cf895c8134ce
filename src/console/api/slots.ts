/**
 * Bounds the streams that all tabs of one browser hold open. Over HTTP/1.1 a browser opens six connections to a relay,
 * so streams of six tabs would leave none for requests.
 */

/** The number of tabs that may hold a stream. Two of the six connections are left for requests. */
const SLOTS = 4;

/** Releases a slot, so that another tab may take it. */
export type Release = () => void;

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
