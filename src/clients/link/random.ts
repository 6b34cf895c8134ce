/** Makes the ids that the client libraries need. It also works in pages without a secure context. */

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
