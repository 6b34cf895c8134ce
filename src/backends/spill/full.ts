/** The error that a spill store reports when it has no room. */
import { CallboardError } from '../../core/errors.ts';

/**
 * Creates the error for a payload that did not fit or could not be written. No reference to the payload exists. The
 * message does not reveal where the store is.
 */
export function full(message = 'The payload store is full.', cause?: unknown): CallboardError {
  const options = cause === undefined ? {} : { cause };
  return new CallboardError('store_full', message, { share: 'spilled_bytes', ...options });
}
