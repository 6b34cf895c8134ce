/** Implements core's port for randomness and digests with node:crypto. */
import { createHash, createHmac, createSecretKey, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Crypto } from '../core/crypto.ts';
import { createUuids } from './uuid.ts';

/** Creates the implementation. `key` signs cursors, so all nodes of a deployment need the same key. */
export function createCrypto(key: string | Uint8Array): Crypto {
  // A KeyObject is parsed once; a key given as bytes would be parsed at each signing.
  const secret = createSecretKey(Buffer.from(key));
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return {
    randomId: createUuids(),
    randomToken: () => randomBytes(32).toString('base64url'),
    sha256: (text) => hash('sha256', text, 'base64url'),
    sign: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
    // Digests all have the same length, so timing does not reveal the length of the texts and timingSafeEqual cannot
    // throw.
    equal: (a, b) => timingSafeEqual(digest(a), digest(b)),
    toBase64Url: (text) => Buffer.from(text, 'utf8').toString('base64url'),
    fromBase64Url(text) {
      if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined;
      try {
        return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64url'));
      } catch {
        return undefined;
      }
    },
  };
}
