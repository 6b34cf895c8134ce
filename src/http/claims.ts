/** Reads the claims of a verified token: who the requester is, and what it may do. */
import type { JWTPayload } from 'jose';
import type { Principal, Scope } from '../core/auth/principal.ts';
import { fail } from '../core/errors.ts';
import { isCanonicalUser } from '../core/ids.ts';

/** How to read the claims of an issuer. */
export type ClaimRules = {
  /** The claim with the user's id. `email` counts only with `email_verified: true`. */
  readonly user: string;
  /** The claims that may hold the scopes. Only the first one that is present counts. */
  readonly scopes: readonly string[];
  /** The text with which the names of the relay's scopes begin, such as `callboard:`. Other names are ignored. */
  readonly prefix: string;
};

export const DEFAULT_CLAIMS: ClaimRules = { user: 'sub', scopes: ['scope', 'scp', 'permissions'], prefix: '' };

/** The number of seconds by which the clock of an issuer may be behind or ahead. */
export const TOLERANCE_SECONDS = 30;

const SCOPES: ReadonlySet<string> = new Set<Scope>(['connect', 'invoke', 'host']);

/**
 * Returns the principal of these claims, which must include `exp` and the user's claim. The principal expires
 * `TOLERANCE_SECONDS` after `exp`, when the relay begins to refuse the token. Throws `invalid_user` (401) if the user
 * is not canonical, and `unauthenticated` if the email address is not verified.
 */
export function principalOf(claims: JWTPayload, rules: ClaimRules): Principal {
  const user = claims[rules.user];
  if (rules.user === 'email' && claims['email_verified'] !== true)
    fail('unauthenticated', 'The email address of the token is not verified.', { tokenFault: 'email_unverified' });
  if (typeof user !== 'string' || !isCanonicalUser(user))
    fail('invalid_user', 'The user of the token is not a canonical user.', { status: 401, tokenFault: 'subject' });
  const names = scopesOf(claims, rules);
  const expiresAt = Math.min(((claims.exp ?? 0) + TOLERANCE_SECONDS) * 1000, Number.MAX_SAFE_INTEGER);
  if (names.includes('admin')) return { kind: 'admin', name: user, expiresAt };
  return { kind: 'user', userId: user, scopes: new Set(names.filter(isScope)), expiresAt };
}

/** Returns the scopes that the claims name. A claim is a text of names with spaces between them, or a list of names. */
function scopesOf(claims: JWTPayload, { scopes, prefix }: ClaimRules): readonly string[] {
  const claim = scopes.map((name) => claims[name]).find((value) => value !== undefined);
  const names: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
  return names.flatMap((name) =>
    typeof name === 'string' && name.startsWith(prefix) ? [name.slice(prefix.length)] : [],
  );
}

function isScope(name: string): name is Scope {
  return SCOPES.has(name);
}
