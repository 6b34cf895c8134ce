/** Finds the name under which a requester's use of bounded resources is counted. */
import type { Principal } from '../auth/principal.ts';

/** The holder of all requesters without a token. User ids hold no "/", so this name cannot collide with a user. */
const UNAUTHENTICATED = '/unauthenticated';
const GRANTS = '/grants/';
const ADMINS = '/admin/';

/**
 * Returns the holder to whom a requester's use is counted: the user itself, or a holder for each administrator's name.
 * All requesters without a token have one holder together. So have the holders of grants to all sites of one owner,
 * because a user can make any number of grants, and each would otherwise have a guarantee. They are apart from the
 * owner, so that a viewer cannot use up what the owner may hold.
 */
export function holderOf(principal: Principal | null): string {
  if (principal === null) return UNAUTHENTICATED;
  if (principal.kind === 'user') return principal.userId;
  return principal.kind === 'admin' ? `${ADMINS}${principal.name}` : `${GRANTS}${principal.ownerId}`;
}

/** Whether a holder is an administrator, who may use what is reserved of each share. */
export function isAdministrator(holder: string): boolean {
  return holder.startsWith(ADMINS);
}
