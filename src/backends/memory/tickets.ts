/** Remembers in direct mode which sign-in tickets were used, so that no ticket is accepted twice. */
import type { TicketStore } from '../../core/auth/ticket-store.ts';
import type { Clock } from '../../core/ports.ts';

/**
 * Creates the store of used tickets. It stays small, because only a holder of the deployment's secret can sign a ticket
 * and tickets expire soon.
 */
export function createMemoryTickets(clock: Pick<Clock, 'now'>): TicketStore {
  const taken = new Map<string, number>();
  return {
    take(ticketHash, ttlMs) {
      const now = clock.now();
      // Tickets of one kind expire in the order in which they were used, so each ticket is checked about once.
      for (const [hash, until] of taken) {
        if (until > now) break;
        taken.delete(hash);
      }
      if (taken.has(ticketHash)) return false;
      taken.set(ticketHash, now + ttlMs);
      return true;
    },
  };
}
