/** The port of the spill store, which keeps large payloads outside the history. */
import type { CallboardError } from '../errors.ts';
import type { JsonText } from '../json.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/**
 * Refers to a stored payload. Immutable: the object expires at `expiresAt` (epoch milliseconds) whatever happens to the
 * reference.
 */
export type SpillRef = {
  readonly name: string;
  /** The length of the text as UTF-8, in bytes. */
  readonly bytes: number;
  /** The SHA-256 of the text, base64url. */
  readonly sha256: string;
  readonly expiresAt: number;
};

/**
 * The result of reading an object. `expired`: the object has expired, even if it still exists. `unavailable`: the
 * object is lost, damaged or unreadable.
 */
export type SpillRead =
  | { readonly state: 'present'; readonly text: JsonText }
  | { readonly state: 'expired' }
  | { readonly state: 'unavailable' };

/**
 * Stores payloads that are too large for a history message. A reference is returned only once the object is durable, so
 * a crash may leave an orphaned object but never a dangling reference.
 */
export interface SpillStore {
  /** Describes the store, without secrets. */
  readonly kind: string;
  /** Whether the relay removes objects from the store. It removes none from a store that the operator provides. */
  readonly managed: boolean;
  /**
   * Stores an object and counts its bytes for this user, in the share `spilled_bytes`. `expiresAt` is in epoch
   * milliseconds. Throws `share_exceeded` if the user holds more than their guarantee while room is short, and
   * `store_full` if there is no room; in both cases nothing is stored.
   */
  put(text: JsonText, expiresAt: number, userId: string): Promise<SpillRef>;
  /**
   * Returns the error that `put` would throw now for an object of this size; null if it would throw none. `unknown`:
   * the store can tell only by writing. Writes and counts nothing. A store without this method can never tell.
   */
  preview?(bytes: number, userId: string): MaybePromise<CallboardError | 'unknown' | null>;
  /**
   * Removes an object whose reference was not given to anyone, so that a refused request leaves nothing behind. Never
   * called on an unmanaged store.
   */
  discard(ref: SpillRef): MaybePromise<void>;
  /** Reads an object and checks its size and digest. Never throws for an invalid reference. */
  read(ref: SpillRef): Promise<SpillRead>;
  /** Removes the expired objects of a managed store and returns their number. An unmanaged store is not touched (0). */
  clean(): MaybePromise<number>;
}
