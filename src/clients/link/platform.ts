/** The platform features that the client libraries use: a clock, timers, promises and sockets. */

/**
 * A source of time and timers. `now`: epoch milliseconds. `monotonic`: elapsed milliseconds since any fixed moment,
 * which do not change with the wall clock; if absent, `now` is used instead. `after`: runs a function once, `ms`
 * milliseconds later, and returns a function that cancels the timer and may be called more than once.
 */
export interface Clock {
  now(): number;
  monotonic?(): number;
  after(ms: number, run: () => void): () => void;
}

export const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    // A longer delay would make the timer fire at once.
    const timer = setTimeout(run, Math.min(ms, LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Returns elapsed milliseconds, for measuring durations. */
export function elapsed(clock: Clock): number {
  return clock.monotonic?.() ?? clock.now();
}

/** Resolves after `ms` milliseconds. If the signal is aborted, rejects at once with the signal's reason. */
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

/** Returns a promise and the functions that settle it, like `Promise.withResolvers`, which older platforms lack. */
export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T | PromiseLike<T>) => void = () => {};
  let reject: (reason?: unknown) => void = () => {};
  const promise = new Promise<T>((...settle) => ([resolve, reject] = settle));
  return { promise, resolve, reject };
}

/** Settles like `work`. If the signal is aborted first, rejects at once with the signal's reason. */
export function unlessAborted<T>(signal: AbortSignal | undefined, work: T | Promise<T>): Promise<T> {
  const { promise, resolve, reject } = deferred<T>();
  const stop = (): void => reject(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  void Promise.resolve(work).then(resolve, reject);
  return promise.finally(() => signal?.removeEventListener('abort', stop));
}

// The sockets of the client libraries.

/** The members of the standard WebSocket that the libraries use. Browsers, Node and the package `ws` provide them. */
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

/** Returns the given constructor, or the platform's. Throws TypeError if there is neither. */
export function socketConstructor(given: SocketConstructor | undefined): SocketConstructor {
  const found = given ?? globalThis.WebSocket;
  if (!found) throw new TypeError('Pass the option WebSocket: this platform has none.');
  return found;
}
