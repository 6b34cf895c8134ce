/** The port that makes each sign-in ticket valid for one use in the whole deployment. */
import type { MaybePromise } from '../maybe-promise.ts';

/** Remembers which tickets were used. Nothing else of a ticket is stored. */
export interface TicketStore {
  /**
   * Marks a ticket as used. Atomic. Returns true for the first call on any node, and false for each later one.
   * Remembers the ticket for at least `ttlMs`; after that time the ticket itself has expired.
   */
  take(ticketHash: string, ttlMs: number): MaybePromise<boolean>;
}
