/**
 * Counts failed tokens per address and in total. token-guard.ts decides how a request with a failed token is answered.
 */
import type { Clock } from '../core/clock.ts';
import { createTtlCache } from './ttl-cache.ts';

/** The limit of failed tokens per minute of one address. Beyond it, a failure is answered with `rate_limited`. */
export const FAILURES_A_MINUTE = 20;
/** The limit of failed tokens per minute over all addresses. Beyond it, a failure is answered with `rate_limited`. */
export const FAILURES_IN_ALL_A_MINUTE = 1_000;
/** The greatest number of addresses that are remembered. Beyond it, the oldest is forgotten. */
const ADDRESSES = 10_000;
const WINDOW_MS = 60_000;

/** Counts failed tokens per address and in total, in windows of one minute, for at most 10 000 addresses. */
export type AuthRateLimit = {
  /** Whether this address has reached its limit of failed tokens in the current minute. */
  over(address: string): boolean;
  /**
   * Counts one failed token. Returns 0 within the limits. Beyond a limit, returns the number of milliseconds for which
   * failures are answered with `rate_limited`.
   */
  count(address: string): number;
};

type Window = { readonly since: number; count: number };

export function createAuthRateLimit(clock: Clock): AuthRateLimit {
  const windows = createTtlCache<Window>({ clock, size: ADDRESSES, ms: WINDOW_MS });
  let all: Window = { since: clock.now(), count: 0 };
  const left = ({ since }: Window): number => Math.max(1, since + WINDOW_MS - clock.now());
  const fresh = (): Window => ({ since: clock.now(), count: 0 });
  const windowOf = (address: string): Window => {
    const known = windows.get(address);
    if (known) return known;
    const window = fresh();
    windows.set(address, window);
    return window;
  };
  return {
    over: (address) => (windows.get(address)?.count ?? 0) >= FAILURES_A_MINUTE,
    count(address) {
      const window = windowOf(address);
      // The window must not grow when the wall clock is set back.
      if (Math.abs(clock.now() - all.since) >= WINDOW_MS) all = fresh();
      window.count++;
      all.count++;
      if (window.count > FAILURES_A_MINUTE) return left(window);
      return all.count > FAILURES_IN_ALL_A_MINUTE ? left(all) : 0;
    },
  };
}
