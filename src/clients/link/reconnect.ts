/** How long a link waits before it connects again, and the token with which it does. */
import { LONGEST_TIMER_MS, deferred, type Clock } from './platform.ts';

type BackoffOptions = {
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

/** A link or stream that was up for this time, in milliseconds, resets the backoff. */
export const STABLE_MS = 10_000;
/** The longest delay before a reconnect that the relay may ask for, in milliseconds. */
const LONGEST_AFTER_MS = 300_000;

/** Returns the delay before a reconnect, in milliseconds: what the relay asked for (`afterMs`), plus the backoff. */
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
 * Returns how long to wait before renewing a token, in milliseconds. The renewal precedes the expiry by a tenth of the
 * remaining time, at least 5 s and at most 60 s. The result is at least 5 s, so that a wrong clock or a token function
 * that keeps returning the same token does not cause a renewal storm.
 */
export function renewInMs(expiresAt: number, now: number): number {
  const left = expiresAt - now;
  const early = Math.min(60_000, Math.max(5_000, left / 10));
  return Math.min(LONGEST_TIMER_MS, Math.max(5_000, left - early));
}

/** Returns a token from the source. Rejects with what the token function throws, or with TypeError without a token. */
export async function takeToken(source: TokenSource | undefined): Promise<string> {
  const token = typeof source === 'function' ? await source() : source;
  if (!isToken(token)) throw new TypeError('The token function gave no token.');
  return token;
}

/** How long a token function may take before a connection or a renewal is tried again without it, in milliseconds. */
const TOKEN_MS = 15_000;

/** Like `takeToken`, but rejects when the token function takes too long: it may never settle its promise. */
export async function takeTokenInTime(source: TokenSource | undefined, clock: Clock): Promise<string> {
  const { promise: late, reject } = deferred<never>();
  const tooLong = new Error(`The token function did not return within ${TOKEN_MS} ms.`);
  const cancel = clock.after(TOKEN_MS, () => reject(tooLong));
  return Promise.race([takeToken(source), late]).finally(cancel);
}

/** Whether it is a token that a header can hold, of a length that a relay reads. */
export function isToken(token: unknown): token is string {
  return typeof token === 'string' && /^[!-~]{1,8192}$/.test(token);
}
