/** The errors for large payloads that could not be stored. */
import { CallboardError } from '../../core/errors.ts';
import { SHARE_MESSAGE, type ShareRefusal } from '../../core/shares/share-bounds.ts';

/** The error codes of the system for a disk without room. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * Creates the error for a payload that did not fit or could not be written. Its message does not reveal where the store
 * is.
 */
export function full(message = 'The payload store is full.', cause?: unknown): CallboardError {
  const options = cause === undefined ? {} : { cause };
  return new CallboardError('store_full', message, { share: 'spilled_bytes', ...options });
}

/** Creates the error for a payload for which a share has no room. */
export function refusedRoom(refusal: ShareRefusal): CallboardError {
  if (refusal === 'store_full') return full();
  return new CallboardError(refusal, SHARE_MESSAGE[refusal], { share: 'spilled_bytes' });
}

/** Returns a CallboardError unchanged, and any other error of a write as `store_full`. */
export function asFull(cause: unknown): CallboardError {
  if (cause instanceof CallboardError) return cause;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = FULL.has(code) ? 'The payload store is full.' : 'The payload could not be stored.';
  return full(message, cause);
}
