/**
 * What all client libraries share: clock, ids, JSON text, WebSocket class, states of a link, backoff, tokens, checks of
 * their options, advice on connections that fail, and the callbacks of programs.
 */
import type { DownFrame } from '../../protocol/frames.ts';
import { RawJson, trustJson } from '../../protocol/json.ts';

/**
 * A source of time and timers. `now` returns epoch milliseconds. `after` runs a function once, `ms` milliseconds later.
 * It returns a function that cancels the timer and may be called twice.
 */
export interface Clock {
  now(): number;
  after(ms: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms` milliseconds. Rejects with the signal's reason as soon as the signal is aborted. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    });
    signal?.addEventListener('abort', stop, { once: true });
  });
}

// Makes the ids that the client libraries need. It also works in pages without a secure context.

/** Returns the prefix and 128 random bits in hexadecimal: a valid callboard id. */
export function randomId(prefix: string): string {
  return prefix + randomDigits(16);
}

/**
 * Returns an id with 48 bits of time and 80 random bits. These ids sort by the millisecond of their creation (`now`,
 * epoch milliseconds). The relay keeps commands in the order of their ids, and appending to that order costs least.
 */
export function timeOrderedId(prefix: string, now: number): string {
  return prefix + Math.trunc(now).toString(16).padStart(12, '0') + randomDigits(10);
}

function randomDigits(count: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(count));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export type { RawJson };

/**
 * Wraps JSON text so that it is sent unchanged in place of a value. Numbers beyond double precision and the order of
 * members are preserved. The wrapped text must be the whole value: inside another value it is parsed and serialized
 * again. Throws SyntaxError when the text is not JSON.
 */
export function rawJson(text: string): RawJson {
  JSON.parse(text);
  return new RawJson(trustJson(text));
}

/**
 * Returns the text of a RawJson; for any other value, the result of JSON.stringify. Throws what JSON.stringify throws.
 */
export function jsonOf(value: unknown): string | undefined {
  return value instanceof RawJson ? value.text : JSON.stringify(value);
}

// The sockets of the client libraries, and the states of their links.

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
  if (!found) throw new TypeError('Pass the option WebSocket: this platform has none.');
  return found;
}

export type Welcome = Extract<DownFrame, { type: 'welcome' }>;

/**
 * The state of a link:
 *
 * - `connecting`: a socket is being opened. `attempt` counts the failures since the last stable link.
 * - `connected`: the relay sent `welcome`.
 * - `disconnected`: there is no link. `retryInMs` is the time until the next attempt, in milliseconds; null before
 *   `connect` is called.
 * - `closed`: the link is closed permanently, by `close()` (reason `client_closed`, or `closed` for a caller), or
 *   because the relay says not to reconnect or refuses a constant token.
 *
 * `reason` is the name of the close code if there was one, otherwise `connection_lost`, `connect_timeout`,
 * `connect_failed`, `heartbeat_lost`, `token_failed`, or `not_connected` before the first attempt. `message` tells a
 * person what happened and what helps.
 */
export type LinkStatus =
  | { readonly state: 'connecting'; readonly attempt: number }
  | { readonly state: 'connected'; readonly welcome: Welcome }
  | {
      readonly state: 'disconnected';
      readonly reason: string;
      readonly message: string;
      readonly retryInMs: number | null;
    }
  | { readonly state: 'closed'; readonly reason: string; readonly message: string };

/** The error with which a runtime's `ready()` and pending site requests reject when the link is closed permanently. */
export class LinkClosedError extends Error {
  readonly reason: string;

  constructor({ reason, message }: { readonly reason: string; readonly message: string }) {
    super(`The link is closed: ${reason}. ${message}`);
    this.name = 'LinkClosedError';
    this.reason = reason;
  }
}

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

/** Returns a token from the source. Rejects with what the token function throws, or with TypeError without a token. */
export async function takeToken(source: TokenSource | undefined): Promise<string> {
  const token = typeof source === 'function' ? await source() : source;
  if (typeof token !== 'string' || token === '') throw new TypeError('The token function gave no token.');
  return token;
}

/** Throws TypeError, with the address that was probably meant, unless `url` can be the address of a link. */
export function checkLinkUrl(url: unknown): void {
  const given = String(url);
  // Another path is accepted, because a proxy may map it to the relay's /connect.
  if (/^wss?:\/\/[^/]+\/./i.test(given)) return;
  const meant = /^(ws|http)s?:\/\/[^/]/i.test(given) ? given.replace(/^http/i, 'ws') : 'ws://127.0.0.1:4400';
  throw wrong('url', url, `an address such as ${meant.replace(/(\/connect)?\/*$/, '/connect')}`);
}

/** Throws TypeError, with the address that was probably meant, unless `url` is the base address of a relay. */
export function checkBaseUrl(url: unknown): void {
  const { protocol = '', host, pathname = '' } = partsOf(url);
  const path = pathname.replace(/\/(connect|graphql)?\/*$/, '');
  if (/^https?:$/.test(protocol) && path === pathname.replace(/\/+$/, '')) return;
  const meant = host ? `${protocol.replace('ws', 'http')}//${host}${path}` : 'http://127.0.0.1:4400';
  throw wrong('url', url, `an address such as ${meant}`);
}

/** Returns the parts of an absolute URL of HTTP or of a WebSocket; none for any other value. */
function partsOf(url: unknown): Partial<URL> {
  return /^(ws|http)s?:\/\/[^/]/i.test(String(url)) ? new URL(String(url)) : {};
}

/** Throws TypeError unless `token` is a token or a function. */
export function checkToken(token: unknown): void {
  if (typeof token === 'function' || (typeof token === 'string' && /^\S+$/.test(token))) return;
  const hint = token ? 'without "Bearer"' : 'is its environment variable set?';
  // A token is a secret, so it is not shown.
  throw wrong('token', typeof token, 'a token or a function that returns one', `: ${hint}`);
}

/** Throws TypeError if one of the named options is present and is not a function. */
export function checkCallbacks<T extends object>(options: T, names: readonly (keyof T & string)[]): void {
  for (const name of names)
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw wrong(name, options[name], 'a function');
}

/** Returns the error for an option with a wrong value. */
export function wrong(option: string, given: unknown, expected: string, hint = ''): TypeError {
  return new TypeError(
    `${option}: ${given instanceof Object ? typeof given : given} given, ${expected} expected${hint}`,
  );
}

// What helps when a connection fails.

/** What a person does about the end of a link, by its reason. */
const HELP: Readonly<Record<string, string | undefined>> = {
  unauthenticated: 'The relay refused the token. Use a new one: tokens expire, and belong to one relay.',
  forbidden: 'A client needs a token of a user with the scope "connect".',
  replaced: 'Another program connected with this clientId. Give each its own.',
};

/** The end of a link. `said`: what the relay, or the token function, said about it; null if nothing. */
type LinkDown = {
  readonly url: string;
  readonly reason: string;
  readonly said: string | null;
  /** Whether the relay had accepted the link. */
  readonly accepted: boolean;
};

/** Returns why a link is down, and what helps. */
export function linkAdvice({ url, reason, said, accepted }: LinkDown): string {
  const path = url.endsWith('/connect') ? '' : ' Its path ends in /connect.';
  const other = accepted || said !== null ? `The link to ${url} ended: ${reason}.` : unreachable(url) + path;
  return `${HELP[reason] ?? other}${said === null ? '' : ` (${said})`}`;
}

/** Returns the advice for a relay that does not answer. */
export function unreachable(url: string): string {
  return `No relay answers at ${url}. Does it run, and are host, port and path right?`;
}

/** Prints on the console what no callback of the program receives. */
export function warn(who: string, message: string): void {
  console.warn(`callboard: ${who}: ${message}`);
}

// Calls the callbacks of the program.

export type ErrorSink = (error: unknown) => void;

/** Runs a user's callback. Passes its errors and rejections to the sink, and ignores errors of the sink. */
export function guarded(run: () => unknown, onError: ErrorSink | undefined): void {
  try {
    const answer = run();
    if (answer instanceof Promise) answer.catch((error: unknown) => reportTo(onError, error));
  } catch (error) {
    reportTo(onError, error);
  }
}

function reportTo(onError: ErrorSink | undefined, error: unknown): void {
  try {
    const answer: unknown = onError?.(error);
    if (answer instanceof Promise) answer.catch(() => {});
  } catch {
    // The sink itself failed, so the error cannot be reported.
  }
}
