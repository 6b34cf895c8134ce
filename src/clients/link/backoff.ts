export type BackoffOptions = {
  /** Upper bound of the first wait, milliseconds. */
  readonly baseMs: number;
  /** Upper bound of every wait, milliseconds. */
  readonly capMs: number;
  /** 0 (included) to 1 (excluded). */
  readonly random: () => number;
};

/** The waits of PROTOCOL.md, section 9. */
export const BACKOFF_BASE_MS = 500;
export const BACKOFF_CAP_MS = 30_000;

/**
 * Full jitter: a random time below a bound that doubles with each attempt (counted from 0) up to the cap. All of the time is random, so
 * that the clients of a node that went away do not come back together.
 */
export function backoffMs(attempt: number, { baseMs, capMs, random }: BackoffOptions): number {
  return Math.floor(random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30)));
}
