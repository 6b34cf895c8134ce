import type { JsonText } from '../json.ts';
import type { Maybe } from '../maybe.ts';

/** Where a large payload lies. Immutable: the object expires at `expiresAt` (epoch milliseconds) whatever happens to its reference. */
export type SpillRef = {
  readonly name: string;
  readonly bytes: number;
  /** SHA-256 of the text, base64url. */
  readonly sha256: string;
  readonly expiresAt: number;
};

/** `expired`: the object is hidden from its expiry on, even while its file is still there. `unavailable`: lost, damaged or unreadable. */
export type SpillRead =
  | { readonly state: 'present'; readonly text: JsonText }
  | { readonly state: 'expired' }
  | { readonly state: 'unavailable' };

/**
 * Payloads too large to stand inline. A reference is given out only once the object is durable, so a crash leaves an orphan object and never
 * a dangling reference.
 */
export interface SpillStore {
  /** What it is, without secrets. */
  readonly kind: string;
  /** False for a store of the operator's own: callboard then never removes anything from it. */
  readonly managed: boolean;
  /**
   * Stores an object that counts for this user, in the share `spilled_bytes`. Throws `share_exceeded` where the user holds more than their
   * guarantee while room is short, and `store_full` when there is no room; then nothing is left behind.
   */
  put(text: JsonText, expiresAt: number, userId: string): Promise<SpillRef>;
  /**
   * Takes back an object whose reference nobody was given, so that what was refused leaves nothing behind. Never asked of an unmanaged store.
   */
  discard(ref: SpillRef): Maybe<void>;
  /** Checks size and digest before it answers. Never throws for a bad reference. */
  read(ref: SpillRef): Promise<SpillRead>;
  /** Removes expired objects of a managed store; how many. An unmanaged one is left alone (0). */
  clean(): Maybe<number>;
}
