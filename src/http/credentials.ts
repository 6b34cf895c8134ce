/** Holds the parts with which a relay checks credentials. All of them are replaced together. */
import type { TicketStore } from '../core/auth/ticket-store.ts';
import type { Clock } from '../core/clock.ts';
import { createAuthenticator, type AuthOptions, type ReplaceableAuthenticator } from './auth.ts';
import { MetricsToken } from './metrics-token.ts';
import { createTicketDesk, type TicketDesk } from './sign-in-tickets.ts';

export type GivenCredentials = Omit<AuthOptions, 'clock'> & { readonly metricsToken?: string | null };

export type RelayCredentials = {
  readonly bearer: ReplaceableAuthenticator;
  readonly metricsToken: MetricsToken;
  readonly tickets: TicketDesk;
  replace(next: Pick<GivenCredentials, 'adminTokens' | 'secret' | 'previousSecret' | 'metricsToken'>): void;
};

/** Creates the parts that check credentials. `clock`: the clock by which tokens expire. */
export function createCredentials(
  given: GivenCredentials,
  { clock, tickets: store }: { readonly clock: Clock; readonly tickets: TicketStore },
): RelayCredentials {
  const bearer = createAuthenticator({ ...given, clock });
  const metricsToken = new MetricsToken(given.metricsToken ?? null);
  const tickets = createTicketDesk(given, store, () => clock.now());
  return {
    ...{ bearer, metricsToken, tickets },
    replace(next) {
      bearer.replace(next);
      metricsToken.replace(next.metricsToken ?? null);
      tickets.replace(next);
    },
  };
}
