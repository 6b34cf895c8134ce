import type { Clock } from '../core/clock.ts';
import { createRecent } from './recent.ts';

/** How many bad tokens one address may show in a minute. */
export const FAILURES_A_MINUTE = 20;
const ADDRESSES = 10_000;
const WINDOW_MS = 60_000;

/** Counts bad tokens by address, in windows of a minute, over at most 10 000 addresses. */
export type Failures = {
  /** How long this address must wait, milliseconds; 0 when it may try. */
  waitOf(address: string): number;
  count(address: string): void;
};

export function createFailures(clock: Clock): Failures {
  const windows = createRecent<{ readonly since: number; count: number }>({ clock, size: ADDRESSES, ms: WINDOW_MS });
  return {
    waitOf(address) {
      const window = windows.get(address);
      return window && window.count >= FAILURES_A_MINUTE ? Math.max(1, window.since + WINDOW_MS - clock.now()) : 0;
    },
    count(address) {
      const window = windows.get(address);
      if (window) window.count++;
      else windows.set(address, { since: clock.now(), count: 1 });
    },
  };
}
