import type { Clock } from '../link/clock.ts';

/**
 * A token bucket of `perSecond` per second and `perSecond` at once. The function returns false when the bucket is
 * empty.
 */
export function createThrottle(clock: Clock, perSecond: number): () => boolean {
  let tokens = perSecond;
  let at = clock.now();
  return () => {
    const now = clock.now();
    tokens = Math.min(perSecond, tokens + (Math.max(0, now - at) * perSecond) / 1000);
    at = now;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  };
}
