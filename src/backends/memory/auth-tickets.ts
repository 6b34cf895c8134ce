/** The sign-in tickets that were used, in direct mode. */
import type { TicketStore } from '../../core/auth/ticket-store.ts';
import type { Clock } from '../../core/clock.ts';

/** Tickets are signed with the secret of the deployment and expire soon, so few are kept at a time. */
export function createMemoryTickets(clock: Pick<Clock, 'now'>): TicketStore {
  const taken = new Map<string, number>();
  return {
    take(ticketHash, ttlMs) {
      const now = clock.now();
      for (const [hash, until] of taken) if (until <= now) taken.delete(hash);
      if (taken.has(ticketHash)) return false;
      taken.set(ticketHash, now + ttlMs);
      return true;
    },
  };
}
