import type { Principal } from '../auth/principal.ts';

/** Names of users hold no "/", so these holders are nobody's user. */
const UNAUTHENTICATED = '/unauthenticated';
const GRANTS = '/grants';

/**
 * Whose shares count what a requester holds: a user's own; for an administrator one of its name; one for all requesters without a token, and
 * one for all holders of grants of sites (a user could make any number of grants, and each would have a guarantee).
 */
export function holderOf(principal: Principal | null): string {
  if (principal === null) return UNAUTHENTICATED;
  if (principal.kind === 'user') return principal.userId;
  return principal.kind === 'admin' ? `/admin/${principal.name}` : GRANTS;
}
