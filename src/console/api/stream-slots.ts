/** Bounds the streams of all tabs: over HTTP/1.1 a browser has six connections to a relay, for requests as well. */

/** The number of tabs that may hold a stream. Two of the six connections are left for requests. */
const SLOTS = 4;

/** Releases a slot, so that another tab may take it. */
type Release = () => void;

/** Takes a slot; null when all are taken. Over HTTP/2, and in a browser without locks, every tab gets one. */
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

/** Whether all requests use one connection. A cached answer does not show its protocol, so all are examined. */
function isMultiplexed(): boolean {
  const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return entries.some((entry) => entry instanceof PerformanceResourceTiming && /^h[23]/.test(entry.nextHopProtocol));
}
