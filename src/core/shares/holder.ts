/** Maps a requester to the holder under whose name its use of bounded resources is counted. */
import type { Principal } from '../auth/principal.ts';

/** The holder of all requesters without a token. User ids contain no "/", so no user has this name. */
const UNAUTHENTICATED = '/unauthenticated';
const GRANTS = '/grants/';
const ADMINS = '/admin/';

/**
 * Returns the holder for a requester. A user is its own holder, and each administrator's name has a holder. All
 * requesters without a token share one holder. The holders of grants share one holder for each owner of sites: a user
 * can create any number of grants, and each would otherwise have a guarantee of its own. This holder is not the owner
 * itself, so that viewers cannot use up the owner's shares.
 */
export function holderOf(principal: Principal | null): string {
  if (principal === null) return UNAUTHENTICATED;
  if (principal.kind === 'user') return principal.userId;
  return principal.kind === 'admin' ? `${ADMINS}${principal.name}` : `${GRANTS}${principal.ownerId}`;
}

/** Whether the holder is an administrator. Administrators may use the reserved part of each share. */
export function isAdministrator(holder: string): boolean {
  return holder.startsWith(ADMINS);
}
