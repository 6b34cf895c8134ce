/** Limits how many times per second something may happen. */
import type { Clock } from '../link/clock.ts';

/**
 * Creates a token bucket that holds `perSecond` tokens at most and gains as many each second. The returned function
 * takes a token; it returns false when there is none.
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
