/** Tokens of the client libraries: where they come from, and when they are renewed. */

/**
 * A constant token, or a function that returns one. The function is called before each connection, each renewal and
 * each HTTP request.
 */
export type TokenSource = string | (() => string | Promise<string>);

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Returns how long to wait before renewing a token, in milliseconds. The renewal precedes the expiry by a tenth of the
 * remaining time, at least 5 s and at most 60 s. The result is at least 5 s, so that a wrong clock or a token function
 * that keeps returning the same token does not cause a renewal storm.
 */
export function renewInMs(expiresAt: number, now: number): number {
  const left = expiresAt - now;
  const early = Math.min(60_000, Math.max(5_000, left / 10));
  return Math.min(LONGEST_TIMER_MS, Math.max(5_000, left - early));
}

/**
 * Returns a token from the source. Rejects with what the token function throws, or with TypeError when it gives no
 * token.
 */
export async function takeToken(source: TokenSource): Promise<string> {
  const token = typeof source === 'string' ? source : await source();
  if (typeof token !== 'string' || token === '') throw new TypeError('The token function gave no token.');
  return token;
}
