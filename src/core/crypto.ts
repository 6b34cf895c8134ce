/**
 * Randomness and digests as a port, so that core imports no `node:` module. All methods are synchronous; all but
 * `random*` are pure.
 */
export interface Crypto {
  /** A time-ordered UUID (version 7): ids sort by time of creation. */
  randomId(): string;
  /** 256 random bits, base64url (43 characters). */
  randomToken(): string;
  /** SHA-256, base64url (43 characters). */
  sha256(text: string): string;
  /** HMAC-SHA-256 under the deployment's cursor key, base64url (43 characters). */
  sign(text: string): string;
  /** Compares in a time that does not depend on where the texts differ. Texts of different length are unequal. */
  equal(a: string, b: string): boolean;
  toBase64Url(text: string): string;
  /** Undefined if the text is not base64url of UTF-8. */
  fromBase64Url(text: string): string | undefined;
}
