/** Checks whether the requester may use a route at all. */
import { requireAdmin, requirePrincipal, requireScope, requireUser, type Principal } from '../core/auth/principal.ts';
import { fail } from '../core/errors.ts';
import type { Access, RestDirective } from './directive.ts';

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

/** Who may use a route, and the GraphQL field that answers users instead. */
export type RouteAccess = Pick<RestDirective, 'access' | 'forUsers'>;

/**
 * Checks whether the requester meets the route's access. Throws `unauthenticated` or `forbidden` otherwise. A user
 * learns which GraphQL field answers them.
 */
export function checkAccess({ access, forUsers }: RouteAccess, requester: Principal | null): void {
  if (access === 'ADMIN' && requester?.kind === 'user') fail('forbidden', accessWords({ access, forUsers }));
  CHECKS[access](requester);
}

/** Describes in words who may use a route, for the operation's description in the OpenAPI document. */
export function accessWords({ access, forUsers }: RouteAccess): string {
  const words = ACCESS_WORDS[access];
  return forUsers === null ? words : `${words} GraphQL answers users about their own data: field \`${forUsers}\`.`;
}

export const ACCESS_WORDS: Readonly<Record<Access, string>> = {
  ADMIN: 'This path is for administrators only.',
  INVOKE: 'Users with the scope `invoke`, for their own resources, and administrators.',
  HOST: 'Users with the scope `host`, for their own resources.',
  GRANT: 'The holder of a grant, within that grant, and the owner.',
  ANY: 'Every requester with a valid token.',
};
