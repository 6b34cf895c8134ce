import { fail, notFound } from '../errors.ts';
import { canonicalUser } from '../ids.ts';

export type Scope = 'connect' | 'invoke' | 'host';

/**
 * Who asks, proven by a token. `expiresAt` (epoch milliseconds) is null for a configured admin token. An administrator's `name` is the one
 * configured with the token, `token-<n>` for a token without a name, or the subject of a JWT.
 */
export type Principal = Caller | GrantPrincipal;
/** Who may ask for more than a session of a site. */
export type Caller = AdminPrincipal | UserPrincipal;
export type AdminPrincipal = { readonly kind: 'admin'; readonly name: string; readonly expiresAt: number | null };
export type UserPrincipal = {
  readonly kind: 'user';
  readonly userId: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly expiresAt: number | null;
};
/** The holder of a grant of a site's session: may enter that session, and nothing else. */
export type GrantPrincipal = {
  readonly kind: 'grant';
  readonly sessionId: string;
  readonly grantId: string;
  /** The user whose session it is: what the holder sends counts as that user's. */
  readonly ownerId: string;
  readonly expiresAt: number;
};

/**
 * Turns a bearer token into a principal: the port that the HTTP ring implements and the gateway is given. Null: there was no token.
 * Throws `unauthenticated` (a bad or expired one) or `invalid_user` with status 401 (its subject is not canonical).
 */
export interface Authenticator {
  /** `address`: where the token came from. Failures are counted by it and slowed (`rate_limited`); without one they are not. */
  authenticate(token: string | null, address?: string): Promise<Principal | null>;
}

/** A text that stands for the asker in cursors and in counts of open streams. */
export function subjectOf(principal: Principal): string {
  if (principal.kind === 'grant') return `grant:${principal.grantId}`;
  return principal.kind === 'admin' ? `admin:${principal.name}` : `user:${principal.userId}`;
}

export function requirePrincipal(principal: Principal | null): Principal {
  return principal ?? fail('unauthenticated', 'A bearer token is needed.');
}

export function requireAdmin(principal: Principal | null): AdminPrincipal {
  const who = requirePrincipal(principal);
  return who.kind === 'admin' ? who : fail('forbidden', 'Only an administrator may do this.');
}

/** A user with this scope; an administrator names no user and is refused. */
export function requireUser(principal: Principal | null, scope: Scope): UserPrincipal {
  const who = requirePrincipal(principal);
  if (who.kind === 'grant') refuseGrant();
  if (who.kind !== 'user') fail('forbidden', 'A token of a user is needed: an administrator names no user.');
  return who.scopes.has(scope) ? who : fail('forbidden', `The scope "${scope}" is needed.`);
}

/** An administrator, or a user with this scope. */
export function requireScope(principal: Principal | null, scope: Scope): Caller {
  const who = requirePrincipal(principal);
  if (who.kind === 'grant') refuseGrant();
  return who.kind === 'admin' || who.scopes.has(scope) ? who : fail('forbidden', `The scope "${scope}" is needed.`);
}

function refuseGrant(): never {
  fail('forbidden', 'A grant opens its session and nothing else.');
}

/**
 * Whose things an asker with scope `invoke` means: an administrator may name any user or none (null: all users); a user means itself, and
 * naming another is the same 404 as naming nobody.
 */
export function readScope(principal: Principal | null, asked: string | null | undefined): string | null {
  const who = requireScope(principal, 'invoke');
  const named = asked === null || asked === undefined ? null : canonicalUser(asked);
  if (who.kind === 'admin') return named;
  return named === null || named === who.userId ? who.userId : notFound();
}

/** As `readScope`, where one user must be named. */
export function readUser(principal: Principal | null, asked: string): string {
  return readScope(principal, asked) ?? notFound();
}

/** As `readUser`, where a foreign object is to look like an absent one: null for a user that the asker is not. */
export function knownUser(principal: Principal | null, asked: string): string | null {
  const who = requireScope(principal, 'invoke');
  const named = canonicalUser(asked);
  return who.kind === 'admin' || named === who.userId ? named : null;
}
