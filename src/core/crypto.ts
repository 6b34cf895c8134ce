/** Randomness and digests as a port, so that core needs no `node:` module. All methods are synchronous and pure but `random*`. */
export interface Crypto {
  /** A time-ordered UUID (version 7): sorts by creation. */
  randomId(): string;
  /** 256 random bits, base64url (43 characters). */
  randomToken(): string;
  /** SHA-256, base64url (43 characters). */
  sha256(text: string): string;
  /** HMAC-SHA-256 under the deployment's cursor key, base64url (43 characters). */
  sign(text: string): string;
  /** Compares in a time that does not depend on where the texts differ; unequal lengths are unequal. */
  equal(a: string, b: string): boolean;
  toBase64Url(text: string): string;
  /** Undefined when the text is not base64url of UTF-8. */
  fromBase64Url(text: string): string | undefined;
}
