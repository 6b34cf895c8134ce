/** A constant token, or a function that is asked before each connection and each renewal. */
export type TokenSource = string | (() => string | Promise<string>);

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * When to renew a token, milliseconds from now: before its end by a tenth of what is left, at least 5 s and at most a minute. Never sooner
 * than in 5 s, so that a wrong clock or a token that is given again and again makes no storm.
 */
export function renewInMs(expiresAt: number, now: number): number {
  const left = expiresAt - now;
  const early = Math.min(60_000, Math.max(5_000, left / 10));
  return Math.min(LONGEST_TIMER_MS, Math.max(5_000, left - early));
}

/** Rejects with what the function threw, or when it gave no token. */
export async function takeToken(source: TokenSource): Promise<string> {
  const token = typeof source === 'string' ? source : await source();
  if (typeof token !== 'string' || token === '') throw new TypeError('The token function gave no token.');
  return token;
}
