/** Digests secrets, so that they can be compared. */
import { hash } from 'node:crypto';

/** Returns a digest of a secret. Digests have one length, so comparing them does not reveal that of the secret. */
export function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
