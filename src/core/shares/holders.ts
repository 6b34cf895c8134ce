/** Decides against whose shares a requester's use is counted. */
import type { Principal } from '../auth/principal.ts';

/** User ids hold no "/", so these names cannot collide with a user. */
const UNAUTHENTICATED = '/unauthenticated';
const GRANTS = '/grants';

/**
 * The holder whose shares count a requester's use: the user itself, or a holder for each administrator's name. All
 * requesters without a token have one holder together, and so have all holders of site grants: a user can make any
 * number of grants, and each would have a guarantee.
 */
export function holderOf(principal: Principal | null): string {
  if (principal === null) return UNAUTHENTICATED;
  if (principal.kind === 'user') return principal.userId;
  return principal.kind === 'admin' ? `/admin/${principal.name}` : GRANTS;
}
