/**
 * Makes ids for the client libraries. `crypto.randomUUID` is not used, because pages without a secure context (plain
 * HTTP) do not have it.
 */

/** Returns the prefix and 128 random bits in hexadecimal, which is a valid id for the relay. */
export function randomId(prefix: string): string {
  return prefix + randomDigits(16);
}

/**
 * Returns the prefix, 48 bits of time and 80 random bits. Such ids sort by the millisecond of their creation (`now`,
 * epoch milliseconds). The relay orders commands by id, and appending at the end of this order costs least.
 */
export function timeOrderedId(prefix: string, now: number): string {
  return prefix + Math.trunc(now).toString(16).padStart(12, '0') + randomDigits(10);
}

function randomDigits(count: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(count));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
