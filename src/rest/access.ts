import { requireAdmin, requirePrincipal, requireScope, requireUser, type Principal } from '../core/auth/principal.ts';
import type { Access } from './directive.ts';

/**
 * What each access asks of the asker, before anything else of a request is looked at. Each throws `unauthenticated` or `forbidden`.
 * A grant's reach is for the resolvers to judge.
 */
const CHECKS: Readonly<Record<Access, (who: Principal | null) => void>> = {
  ADMIN: requireAdmin,
  INVOKE: (who) => requireScope(who, 'invoke'),
  HOST: (who) => requireUser(who, 'host'),
  GRANT: requirePrincipal,
  ANY: requirePrincipal,
};

/** Throws where this asker may not ask at all. */
export function checkAccess(access: Access, who: Principal | null): void {
  CHECKS[access](who);
}

/** For readers of the interface's description. */
export const ACCESS_WORDS: Readonly<Record<Access, string>> = {
  ADMIN: 'Administrators only.',
  INVOKE: 'Users with the scope `invoke` on what is theirs, and administrators.',
  HOST: 'Users with the scope `host` on what is theirs.',
  GRANT: 'Holders of a grant within it, and the owner.',
  ANY: 'Every asker with a token.',
};
