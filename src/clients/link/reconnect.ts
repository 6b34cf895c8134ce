/** Computes the delays before reconnects and token renewals, and gets tokens from their source. */
import { LONGEST_TIMER_MS, deferred, type Clock } from './platform.ts';

type BackoffOptions = {
  /** The upper bound of the first delay, in milliseconds. */
  readonly baseMs: number;
  /** The upper bound of every delay, in milliseconds. */
  readonly capMs: number;
  /** A source of random numbers from 0 (included) to 1 (excluded). */
  readonly random: () => number;
};

/** The upper bound of the first delay before a reconnect, in milliseconds (PROTOCOL.md, section 9). */
export const BACKOFF_BASE_MS = 500;
/** The upper bound of all delays before a reconnect, in milliseconds (PROTOCOL.md, section 9). */
export const BACKOFF_CAP_MS = 30_000;

/**
 * Returns the delay before an attempt (counted from 0), in milliseconds: a random time below a bound that doubles with
 * each attempt, up to the cap. The whole delay is random (full jitter), so that the clients of a lost node do not all
 * reconnect at once.
 */
export function backoffMs(attempt: number, { baseMs, capMs, random }: BackoffOptions): number {
  return Math.floor(random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30)));
}

/** After a link or stream was up for this time, in milliseconds, the backoff begins again. */
export const STABLE_MS = 10_000;
/** The longest delay before a reconnect that the relay may request, in milliseconds. */
const LONGEST_AFTER_MS = 300_000;

/**
 * Returns the delay before a reconnect, in milliseconds: the delay that the relay requested (`afterMs`) plus the
 * backoff.
 */
export function reconnectMs(attempt: number, afterMs: number, random = Math.random): number {
  const jitter = backoffMs(attempt, { baseMs: BACKOFF_BASE_MS, capMs: BACKOFF_CAP_MS, random });
  return Math.min(LONGEST_AFTER_MS, Math.max(0, afterMs)) + jitter;
}

/**
 * A token, or a function that returns one. The function is called before each connection, each renewal and each HTTP
 * request.
 */
export type TokenSource = string | (() => string | Promise<string>);

/**
 * Returns how long to wait before renewing a token, in milliseconds. The token is renewed before it expires: by a tenth
 * of the remaining time, but at least 5 s and at most 60 s. The result is at least 5 s. Otherwise a wrong clock, or a
 * token function that keeps returning the same token, would cause endless renewals.
 */
export function renewInMs(expiresAt: number, now: number): number {
  const left = expiresAt - now;
  const early = Math.min(60_000, Math.max(5_000, left / 10));
  return Math.min(LONGEST_TIMER_MS, Math.max(5_000, left - early));
}

/**
 * Returns a token from the source. Rejects with what the token function throws, and with TypeError if there is no
 * token.
 */
export async function takeToken(source: TokenSource | undefined): Promise<string> {
  const token = typeof source === 'function' ? await source() : source;
  if (!isToken(token)) throw new TypeError('The token function gave no token.');
  return token;
}

/** The timeout of a token function, in milliseconds. After it, the connection or the renewal is tried again later. */
const TOKEN_MS = 15_000;

/**
 * Returns a token like `takeToken`, but rejects after TOKEN_MS, because a token function may never settle its promise.
 */
export async function takeTokenInTime(source: TokenSource | undefined, clock: Clock): Promise<string> {
  const { promise: late, reject } = deferred<never>();
  const tooLong = new Error(`The token function did not return within ${TOKEN_MS} ms.`);
  const cancel = clock.after(TOKEN_MS, () => reject(tooLong));
  return Promise.race([takeToken(source), late]).finally(cancel);
}

/** Whether the value is a token that a header can contain and that is not too long for a relay. */
export function isToken(token: unknown): token is string {
  return typeof token === 'string' && /^[!-~]{1,8192}$/.test(token);
}
