/** Finds the WebSocket class that the client libraries use, and defines the part of it that they need. */
import type { DownFrame } from '../../protocol/frames.ts';

/** The part of the standard WebSocket that the clients use. Browsers, Node and `ws` provide it. */
export interface SocketLike {
  readonly bufferedAmount: number;
  addEventListener(type: 'open' | 'message' | 'close' | 'error', listener: (event: SocketEvent) => void): void;
  send(text: string): void;
  close(code?: number, reason?: string): void;
}

export type SocketEvent = {
  readonly type: string;
  readonly data?: unknown;
  readonly code?: number;
  readonly reason?: string;
};

export type SocketConstructor = new (url: string, protocols: string) => SocketLike;

/** Returns the given constructor, or the platform's. Throws TypeError when there is neither. */
export function socketConstructor(given: SocketConstructor | undefined): SocketConstructor {
  const found = given ?? globalThis.WebSocket;
  if (!found) throw new TypeError('This platform has no WebSocket: pass one as the option WebSocket.');
  return found;
}

// Defines the states of a link, as users of the client libraries see them.

export type Welcome = Extract<DownFrame, { type: 'welcome' }>;

/**
 * The state of a link:
 *
 * - `connecting`: a socket is being opened. `attempt` counts the failures since the last stable link.
 * - `connected`: the relay sent `welcome`.
 * - `disconnected`: there is no link. `retryInMs` is the time until the next attempt, in milliseconds; null before
 *   `connect` is called.
 * - `closed`: the link is closed permanently, by `close()` (reason `client_closed`) or because the relay's close code
 *   says not to reconnect.
 *
 * `reason` is the name of the close code if there was one, otherwise `connection_lost`, `connect_timeout`,
 * `connect_failed`, `heartbeat_lost`, `token_failed`, or `not_connected` before the first attempt.
 */
export type LinkStatus =
  | { readonly state: 'connecting'; readonly attempt: number }
  | { readonly state: 'connected'; readonly welcome: Welcome }
  | { readonly state: 'disconnected'; readonly reason: string; readonly retryInMs: number | null }
  | { readonly state: 'closed'; readonly reason: string };

/** The error with which `ready()` and every pending wait reject when the link is closed permanently. */
export class LinkClosedError extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(`The link is closed: ${reason}.`);
    this.name = 'LinkClosedError';
    this.reason = reason;
  }
}

// Computes the delays between reconnects: exponential with jitter.

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

// Tokens of the client libraries: where they come from, and when they are renewed.

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
