/** What the libraries need of the runtime: clock, random numbers, and JSON text that stays as it is. */
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
 * Returns an id like `randomId`. These ids sort by the millisecond of their creation (`now`, epoch milliseconds). An id
 * has 48 bits of time and 80 random bits. The relay keeps commands in the order of their ids, and appending to that
 * order costs least.
 */
export function timeOrderedId(prefix: string, now: number): string {
  return prefix + Math.trunc(now).toString(16).padStart(12, '0') + randomDigits(10);
}

function randomDigits(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  );
}

// Wraps JSON text that is sent and received unchanged, for numbers that a double cannot hold.

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
