import { createHash, createHmac, randomBytes, randomUUIDv7, timingSafeEqual } from 'node:crypto';
import type { Crypto } from '../core/crypto.ts';

/** core's Crypto over node:crypto. `key` signs cursors; every node of a deployment needs the same one. */
export function createCrypto(key: string | Uint8Array): Crypto {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return {
    randomId: () => randomUUIDv7(),
    randomToken: () => randomBytes(32).toString('base64url'),
    sha256: (text) => digest(text).toString('base64url'),
    sign: (text) => createHmac('sha256', key).update(text).digest('base64url'),
    // Digests have one length, so nothing of the texts' lengths shows and timingSafeEqual cannot throw.
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
