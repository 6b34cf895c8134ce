/** Core's TicketStore over Redis: one key for each used sign-in ticket, which expires with the ticket. */
import type { TicketStore } from '../../core/auth/ticket-store.ts';
import { partitionOf } from './keys.ts';
import type { Store } from './store.ts';

export function createRedisTickets({ store }: { readonly store: Store }): TicketStore {
  return {
    take: async (ticketHash, ttlMs) =>
      (await store.act(partitionOf(ticketHash, store.partitions), 'auth-take-ticket', [ticketHash, ttlMs])) === 1,
  };
}
