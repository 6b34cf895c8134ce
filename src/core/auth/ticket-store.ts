/** The port that makes each sign-in ticket valid for one use in the whole deployment. */
import type { MaybePromise } from '../maybe-promise.ts';

/** Remembers which tickets were used. Nothing else of a ticket is stored. */
export interface TicketStore {
  /**
   * Marks a ticket as used. True for exactly one caller among all nodes, and false from then on, for at least `ttlMs`.
   * After that the ticket itself has expired. Atomic.
   */
  take(ticketHash: string, ttlMs: number): MaybePromise<boolean>;
}
