/** Computes digests of secrets for comparison. */
import { hash } from 'node:crypto';

/**
 * Returns a digest of a secret. All digests have the same length, so comparing them does not reveal the length of the
 * secret.
 */
export function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
