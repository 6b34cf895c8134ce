/**
 * What all client libraries share: clock, ids, JSON text, WebSocket class, states of a link, backoff, tokens,
 * advice on connections that fail, and the callbacks of programs.
 */
import { JSON_DEPTH, MAX_FRAME_BYTES } from '../../protocol/bounds.ts';
import type { DownFrame } from '../../protocol/frames.ts';
import { trustJson, type JsonText } from '../../protocol/json.ts';

/**
 * A source of time and timers. `now` returns epoch milliseconds. `monotonic` returns elapsed milliseconds since any fixed
 * moment: a step of the wall clock does not change it. Where it is absent, `now` stands for it. `after` runs a function
 * once, `ms` milliseconds later. It returns a function that cancels the timer and may be called twice.
 */
export interface Clock {
  now(): number;
  monotonic?(): number;
  after(ms: number, run: () => void): () => void;
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    // A timer that is set to a longer time fires at once.
    const timer = setTimeout(run, Math.min(ms, LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Returns elapsed milliseconds, from which durations are computed. */
export function elapsed(clock: Clock): number {
  return clock.monotonic?.() ?? clock.now();
}

/** Resolves after `ms` milliseconds. Rejects with the signal's reason as soon as the signal is aborted. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = deferred();
  const cancel = clock.after(ms, resolve);
  return unlessAborted(signal, promise).finally(cancel);
}

type Deferred<T> = {
  readonly promise: Promise<T>;
  resolve(value: T | PromiseLike<T>): void;
  reject(reason?: unknown): void;
};

/** Returns a promise and the functions that settle it, as the newer `Promise.withResolvers` does. */
export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T | PromiseLike<T>) => void = () => {};
  let reject: (reason?: unknown) => void = () => {};
  const promise = new Promise<T>((...settle) => ([resolve, reject] = settle));
  return { promise, resolve, reject };
}

/** Settles as `work` does, or rejects with the signal's reason as soon as the signal is aborted. */
export function unlessAborted<T>(signal: AbortSignal | undefined, work: T | Promise<T>): Promise<T> {
  const { promise, resolve, reject } = deferred<T>();
  const stop = (): void => reject(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  void Promise.resolve(work).then(resolve, reject);
  return promise.finally(() => signal?.removeEventListener('abort', stop));
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

/** JSON text in the place of a value. */
export class RawJson {
  readonly text: JsonText;

  constructor(text: JsonText) {
    this.text = text;
  }

  /** Inside another value, the text is parsed. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

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

/** The bounds that the relay sets for frames and payloads. */
export type LinkBounds = { readonly maxFrameBytes: number; readonly maxDepth: number };

/** The bounds of the protocol. They apply before the first `welcome`, and over HTTP. */
export const BOUNDS: LinkBounds = { maxFrameBytes: MAX_FRAME_BYTES, maxDepth: JSON_DEPTH };

export function boundsOf({ max_frame_bytes, max_depth = JSON_DEPTH }: Welcome): LinkBounds {
  return { maxFrameBytes: max_frame_bytes, maxDepth: max_depth };
}

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

// What helps when a connection fails.

/** What a person does about the end of a link, by its reason. */
export type LinkHelp = Readonly<Record<string, string | undefined>>;

/** The end of a link. `said`: what the relay, or the token function, said about it; null if nothing. */
type LinkDown = {
  readonly url: string;
  readonly reason: string;
  readonly said: string | null;
  /** Whether the relay had accepted the link. */
  readonly accepted: boolean;
  readonly help: LinkHelp | undefined;
};

const TOKEN_REFUSED = 'The relay refused the token. Use a new one: tokens expire, and belong to one relay.';

/** Returns why a link is down, and what helps. */
export function linkAdvice({ url, reason, said, accepted, help }: LinkDown): string {
  const path = url.endsWith('/connect') ? '' : ' Its path ends in /connect.';
  const other = accepted || said !== null ? `The link to ${url} ended: ${reason}.` : unreachable(url) + path;
  const advice = reason === 'unauthenticated' ? TOKEN_REFUSED : help?.[reason];
  return `${advice ?? other}${said === null ? '' : ` (${said})`}${see(reason)}`;
}

/** Returns the advice for a relay that does not answer. */
export function unreachable(url: string): string {
  return `No relay answers at ${url}. Does it run, and are host, port and path right?${pageHint(url)}`;
}

/**
 * Returns what else may be wrong in a page of another origin. Browsers do not tell a page why a connection failed, so a
 * relay that refuses the page looks like one that is not there.
 */
export function pageHint(url: string): string {
  const { origin } = typeof location === 'undefined' ? {} : location;
  if (!origin || new URL(url.replace(/^ws/i, 'http')).origin === origin) return '';
  return ` If it runs: this page is of the origin ${origin}, which ALLOWED_ORIGINS of the relay must list.`;
}

/** Returns where a message is explained. */
export function see(anchor: string): string {
  return ` (docs/troubleshooting.md#${anchor})`;
}

/** Prints on the console what no callback of the program receives. */
export function warn(who: string, message: string, ...more: readonly unknown[]): void {
  console.warn(`callboard: ${who}: ${message}`, ...more);
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

/** Passes an error to the sink, and ignores what that throws. */
export function reportTo(onError: ErrorSink | undefined, error: unknown): void {
  if (onError) guarded(() => onError(error), undefined);
}
