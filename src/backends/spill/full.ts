/** The error of a spill store without room. */
import { CallboardError } from '../../core/errors.ts';

/**
 * The error if there is no room for a payload or it could not be written; no reference to it exists. The message does
 * not reveal where the store is.
 */
export function full(message = 'The payload store is full.', cause?: unknown): CallboardError {
  const options = cause === undefined ? {} : { cause };
  return new CallboardError('store_full', message, { share: 'spilled_bytes', ...options });
}
