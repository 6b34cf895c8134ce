/**
 * Limits the number of event streams of all tabs, because over HTTP/1.1 a browser opens only six connections to a
 * relay, and requests need some of them.
 */

/** The maximum number of tabs with a stream. Two of the six connections remain for requests. */
const SLOTS = 4;

/** Releases a slot, so that another tab can take it. */
type Release = () => void;

/** Takes a slot; null if all are taken. Over HTTP/2, and in a browser without locks, every tab gets a slot. */
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
      // The browser holds the lock until the promise of this callback resolves.
      return new Promise<void>((release) => resolve(() => release()));
    });
  });
}

/**
 * Whether all requests share one connection. All recorded requests are examined, because a cached answer does not show
 * its protocol.
 */
function isMultiplexed(): boolean {
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return entries.some((entry) => entry instanceof PerformanceResourceTiming && /^h[23]/.test(entry.nextHopProtocol));
}
