/** The storage port that makes each sign-in ticket valid only once in the whole deployment. */
import type { MaybePromise } from '../maybe-promise.ts';

/** Remembers which tickets were used. Nothing else about a ticket is stored. */
export interface TicketStore {
  /**
   * Marks a ticket as used. Atomic. Returns true on the first call, and false on every later call on any node.
   * Remembers the ticket for at least `ttlMs`; by then the ticket itself has expired.
   */
  take(ticketHash: string, ttlMs: number): MaybePromise<boolean>;
}
