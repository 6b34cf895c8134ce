/** The delays between reconnects: exponential with jitter. */

export type BackoffOptions = {
  /** Upper bound of the first wait, milliseconds. */
  readonly baseMs: number;
  /** Upper bound of every wait, milliseconds. */
  readonly capMs: number;
  /** 0 (included) to 1 (excluded). */
  readonly random: () => number;
};

/** The reconnect delays of PROTOCOL.md, section 9. Milliseconds. */
export const BACKOFF_BASE_MS = 500;
export const BACKOFF_CAP_MS = 30_000;

/**
 * Exponential backoff with full jitter: a random delay below a bound that doubles with each attempt (counted from 0) up
 * to the cap. The whole delay is random, so that the clients of a lost node do not reconnect at the same moment.
 */
export function backoffMs(attempt: number, { baseMs, capMs, random }: BackoffOptions): number {
  return Math.floor(random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30)));
}
