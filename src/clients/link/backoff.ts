/** Computes the delays between reconnects: exponential with jitter. */

export type BackoffOptions = {
  /** The upper bound of the first delay, in milliseconds. */
  readonly baseMs: number;
  /** The upper bound of every delay, in milliseconds. */
  readonly capMs: number;
  /** A source of random numbers from 0 (included) to 1 (excluded). */
  readonly random: () => number;
};

/** The upper bound of the first reconnect delay, in milliseconds (PROTOCOL.md, section 9). */
export const BACKOFF_BASE_MS = 500;
/** The upper bound of every reconnect delay, in milliseconds (PROTOCOL.md, section 9). */
export const BACKOFF_CAP_MS = 30_000;

/**
 * Returns the delay before an attempt (counted from 0), in milliseconds. It is random, below a bound that doubles with
 * each attempt up to the cap. The whole delay is random (full jitter), so that the clients of a lost node do not
 * reconnect at the same moment.
 */
export function backoffMs(attempt: number, { baseMs, capMs, random }: BackoffOptions): number {
  return Math.floor(random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30)));
}
