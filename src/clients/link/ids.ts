/**
 * Makes the ids that the client libraries need. Does not use `crypto.randomUUID`, which pages without a secure context
 * (plain HTTP) do not have.
 */

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
