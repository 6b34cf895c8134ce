/** The prefix and 128 random bits in hexadecimal: a valid callboard id. Works in pages without a secure context too. */
export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
