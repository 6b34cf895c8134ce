/**
 * Randomness and digests as a port, so that core imports no `node:` module. All methods are synchronous; all but
 * `random*` are pure.
 */
export interface Crypto {
  /** Returns a time-ordered UUID (version 7): ids sort by time of creation. */
  randomId(): string;
  /** Returns 256 random bits as base64url (43 characters). */
  randomToken(): string;
  /** Returns the SHA-256 of the text as base64url (43 characters). */
  sha256(text: string): string;
  /** Returns the HMAC-SHA-256 of the text under the deployment's cursor key, as base64url (43 characters). */
  sign(text: string): string;
  /** Compares in a time that does not depend on where the texts differ. Texts of different length are unequal. */
  equal(a: string, b: string): boolean;
  toBase64Url(text: string): string;
  /** Decodes base64url. Undefined if the text is not base64url of UTF-8. */
  fromBase64Url(text: string): string | undefined;
}
