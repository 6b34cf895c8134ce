/**
 * The types of principals (who sends a request), the checks of what a principal may see and do, the tokens of
 * administrators, and the port of used sign-in tickets.
 */
import { fail, notFound } from '../errors.ts';
import { canonicalUser } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/** `mcp`: may call actions as an agent does, through the MCP bridge, and nothing else. */
export type Scope = 'connect' | 'invoke' | 'host' | 'mcp';

/** The principal of a request; null if it has none. */
export type Requester = Principal | null;

/**
 * An authenticated requester. `expiresAt` (epoch milliseconds) is null for a configured admin token. An administrator's
 * `name` is the one configured with the token, `token-<n>` for a token without a name, or the subject of a JWT.
 */
export type Principal = CallingPrincipal | GrantPrincipal;
/** A principal that is not limited to one session of a site. */
export type CallingPrincipal = AdminPrincipal | UserPrincipal;
export type AdminPrincipal = { readonly kind: 'admin'; readonly name: string; readonly expiresAt: number | null };
export type UserPrincipal = {
  readonly kind: 'user';
  readonly userId: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly expiresAt: number | null;
  /** Patterns of the only actions that the token may invoke. Absent: the token does not limit them. */
  readonly actions?: readonly string[];
};
/** The holder of a grant: it may access one session of a site, and nothing else. */
export type GrantPrincipal = {
  readonly kind: 'grant';
  readonly sessionId: string;
  readonly grantId: string;
  /** The user who owns the session. Requests of the holder are counted for this user. */
  readonly ownerId: string;
  readonly expiresAt: number;
};

/**
 * Turns a bearer token into a principal; null if there is no token. The HTTP layer implements this port and passes it
 * to the gateway. Throws `unauthenticated` (the token is invalid or expired) or `invalid_user` with status 401 (its
 * subject is not canonical).
 */
export interface Authenticator {
  /**
   * Authenticates a token. `address`: the peer that sent the token. Failures are counted for each address, and too many
   * of them cause `rate_limited`. Without an address nothing is counted.
   */
  authenticate(token: string | null, address?: string): Promise<Principal | null>;
}

/** Returns a text that identifies the requester: in cursors, logs and counts of open streams. */
export function subjectOf(principal: Principal): string {
  if (principal.kind === 'grant') return `grant:${principal.grantId}`;
  return principal.kind === 'admin' ? `admin:${principal.name}` : `user:${principal.userId}`;
}

export function requirePrincipal(principal: Principal | null): Principal {
  return principal ?? fail('unauthenticated', 'A bearer token is needed.');
}

export function requireAdmin(principal: Principal | null): AdminPrincipal {
  const requester = requirePrincipal(principal);
  return requester.kind === 'admin' ? requester : fail('forbidden', 'This requires an administrator.');
}

/** Returns the requester if it is a user with this scope. Throws `unauthenticated` or `forbidden` otherwise. */
export function requireUser(principal: Principal | null, scope: Scope): UserPrincipal {
  const requester = requirePrincipal(principal);
  if (requester.kind === 'grant') refuseGrant();
  if (requester.kind !== 'user')
    fail('forbidden', 'A token of a user is required: an administrator token names no user.');
  return requester.scopes.has(scope) ? requester : fail('forbidden', `The scope "${scope}" is required.`);
}

/**
 * Returns the requester if it is an administrator or a user with this scope. Throws `unauthenticated` or `forbidden`
 * otherwise.
 */
export function requireScope(principal: Principal | null, scope: Scope): CallingPrincipal {
  const requester = requirePrincipal(principal);
  if (requester.kind === 'grant') refuseGrant();
  return requester.kind === 'admin' || requester.scopes.has(scope)
    ? requester
    : fail('forbidden', `The scope "${scope}" is required.`);
}

/** Refuses the holder of a grant. */
export function refuseGrant(): never {
  fail('forbidden', 'A grant opens its session and nothing else.');
}

/**
 * Returns the user whose objects a requester with scope `invoke` may list. An administrator may name any user, or none
 * (null: all users). A user gets only its own objects; if it names another user, this throws `not_found`, as for an
 * absent object.
 */
export function readScope(principal: Principal | null, userId: string | null | undefined): string | null {
  const requester = requireScope(principal, 'invoke');
  const named = userId === null || userId === undefined ? null : canonicalUser(userId);
  if (requester.kind === 'admin') return named;
  return named === null || named === requester.userId ? requester.userId : notFound();
}

/** Does the same as `readScope`, for listings of one user. */
export function readUser(principal: Principal | null, userId: string): string {
  return readScope(principal, userId) ?? notFound();
}

/**
 * Does the same as `readUser`, but returns null if the requester is a user and names another one. A foreign object then
 * looks like an absent one.
 */
export function knownUser(principal: Principal | null, userId: string): string | null {
  const requester = requireScope(principal, 'invoke');
  const named = canonicalUser(userId);
  return requester.kind === 'admin' || named === requester.userId ? named : null;
}

// Parses the configured tokens of administrators, which may have names. It does not compare or verify tokens.

/**
 * The configured token of an administrator. `name` appears in logs and in the principal; null: the token has no name.
 */
export type AdminToken = { readonly name: string | null; readonly token: string };

/** The minimum length of a named token, in characters, without its name. */
export const NAMED_TOKEN_MIN = 16;
/**
 * Matches `name=token`. The token must hold a character other than `=`, so that a bare token with base64 padding is not
 * read as a name.
 */
const NAMED = /^([A-Za-z][A-Za-z0-9_-]{0,63})=(?=.*[^=])(.+)$/s;

/**
 * Parses `name=token` or a bare token. A name is a letter and up to 63 letters, digits, `_` and `-`, followed by `=`
 * and a token that does not consist of `=` alone. Any other text is a bare token, even if it holds a `=`, as padded
 * base64 does.
 */
export function parseAdminToken(text: string): AdminToken {
  const [, name = null, token = text] = NAMED.exec(text) ?? [];
  return { name, token };
}

// The port that makes each sign-in ticket valid for one use in the whole deployment.

/** Remembers which tickets were used. Nothing else of a ticket is stored. */
export interface TicketStore {
  /**
   * Marks a ticket as used. Atomic. Returns true for the first call on any node, and false for each later one.
   * Remembers the ticket for at least `ttlMs`; after that time the ticket itself has expired.
   */
  take(ticketHash: string, ttlMs: number): MaybePromise<boolean>;
}

// The program that makes a call in a requester's name.

/**
 * The program that made a call, as it described itself: evidence, and never an authorization. `kind`: the interface
 * through which it called. Make it with `callerLabel`.
 */
export type CallerLabel = { readonly kind: 'mcp'; readonly name: string; readonly version: string | null };

const LABEL_CHARS = 64;

/** Returns the program of a label with its version, as one text for people; null without a label. */
export function programOf(label: CallerLabel | undefined): string | null {
  if (!label) return null;
  return label.version === null ? label.name : `${label.name} ${label.version}`;
}

/** Makes a label: name and version without control characters, cut at 64 characters. */
export function callerLabel({ kind, name, version }: CallerLabel): CallerLabel {
  const bounded = (text: string): string => text.replaceAll(/\p{Cc}/gu, '').slice(0, LABEL_CHARS);
  return { kind, name: bounded(name), version: version === null ? null : bounded(version) };
}
