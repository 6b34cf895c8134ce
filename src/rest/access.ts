/** Checks whether the requester may use a route at all. */
import { requireAdmin, requirePrincipal, requireScope, requireUser, type Principal } from '../core/auth/principal.ts';
import type { Access } from './directive.ts';

/**
 * The check for each access, made before the rest of the request is read. Each throws `unauthenticated` or `forbidden`.
 * Whether a grant covers the requested session is checked by the resolvers.
 */
const CHECKS: Readonly<Record<Access, (requester: Principal | null) => void>> = {
  ADMIN: requireAdmin,
  INVOKE: (requester) => requireScope(requester, 'invoke'),
  HOST: (requester) => requireUser(requester, 'host'),
  GRANT: requirePrincipal,
  ANY: requirePrincipal,
};

/** Throws `unauthenticated` or `forbidden` when the requester does not meet the route's access. */
export function checkAccess(access: Access, requester: Principal | null): void {
  CHECKS[access](requester);
}

/** Shown in the OpenAPI document as each operation's description. */
export const ACCESS_WORDS: Readonly<Record<Access, string>> = {
  ADMIN: 'Administrators only.',
  INVOKE: 'Users with the scope `invoke`, for their own resources, and administrators.',
  HOST: 'Users with the scope `host`, for their own resources.',
  GRANT: 'The holder of a grant, within that grant, and the owner.',
  ANY: 'Every requester with a valid token.',
};
