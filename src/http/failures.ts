import type { Clock } from '../core/clock.ts';
import { createRecent } from './recent.ts';

/** How many failed tokens one address may show in a minute before their answers say `rate_limited`; and all addresses together. */
export const FAILURES_A_MINUTE = 20;
export const FAILURES_IN_ALL_A_MINUTE = 1_000;
const ADDRESSES = 10_000;
const WINDOW_MS = 60_000;

/** Counts failed tokens by address and in all, in windows of a minute, over at most 10 000 addresses. */
export type Failures = {
  /** Whether this address showed as many failed tokens in this minute as it may. */
  over(address: string): boolean;
  /** Counts one more. How long failures are answered with `rate_limited`, milliseconds; 0: not yet. */
  count(address: string): number;
};

type Window = { readonly since: number; count: number };

export function createFailures(clock: Clock): Failures {
  const windows = createRecent<Window>({ clock, size: ADDRESSES, ms: WINDOW_MS });
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
      // A wall clock that was set back must not make the window longer.
      if (Math.abs(clock.now() - all.since) >= WINDOW_MS) all = fresh();
      window.count++;
      all.count++;
      if (window.count > FAILURES_A_MINUTE) return left(window);
      return all.count > FAILURES_IN_ALL_A_MINUTE ? left(all) : 0;
    },
  };
}
