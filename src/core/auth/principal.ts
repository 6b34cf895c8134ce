/** Principals: who sends a request, the port that authenticates them, and the checks of what each may do. */
import { fail } from '../errors.ts';

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
export type AdminPrincipal = {
  readonly kind: 'admin';
  readonly name: string;
  readonly expiresAt: number | null;
  /** Absent: the token is configured, and can only be removed from the configuration. */
  readonly token?: TokenIdentity;
};
export type UserPrincipal = {
  readonly kind: 'user';
  readonly userId: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly expiresAt: number | null;
  readonly token?: TokenIdentity;
  /** The only actions that the token may invoke and see. Absent: the token does not limit them. */
  readonly actions?: ActionPatterns;
  /** Which tools an agent with this token is shown. Absent: all. */
  readonly toolChoice?: ToolChoice;
  /** The only client as which the token may connect. Absent: the token is not that of a device. */
  readonly device?: DeviceLimits;
};
/** The client that a token of a device may be. `actions`: patterns of what it may advertise; null: anything. */
export type DeviceLimits = {
  readonly clientId: string;
  readonly clientType: string;
  readonly actions: ActionPatterns | null;
};
/**
 * What tells a signed token from others: its id (`jti`) and its time of issue (`iat`, in epoch milliseconds), if it has
 * them. A token of a device counts as issued when the device was enrolled.
 */
export type TokenIdentity = { readonly id: string | null; readonly issuedAt: number | null };
/** Patterns of actions with `*`: see `compileGlob`. An action must match one of them. */
export type ActionPatterns = readonly string[];
/**
 * Which tools an agent is shown: the built-in ones, those of actions, or both; of those of actions, the ones whose
 * names begin with `prefix`. It makes a list small and is no right: `actions` limits what a token may invoke and see.
 */
export type ToolChoice = { readonly tools: 'all' | 'builtin' | 'actions'; readonly prefix: string };
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

const TOOL_PREFIX = /^[A-Za-z0-9_]{1,40}$/;

/** Reads which tools to show. `undefined`: not given. Returns what is wrong, as a text that begins with the name. */
export function readToolChoice(tools: unknown, prefix: unknown): ToolChoice | string {
  if (tools !== undefined && tools !== 'builtin' && tools !== 'actions') return 'tools: expected builtin or actions.';
  if (prefix === undefined) return { tools: tools ?? 'all', prefix: '' };
  if (typeof prefix !== 'string' || !TOOL_PREFIX.test(prefix))
    return 'prefix: expected 1 to 40 letters, digits and "_", with which names of tools begin.';
  if (tools === 'builtin') return 'prefix: concerns the tools of actions, and tools=builtin leaves these out.';
  return { tools: tools ?? 'all', prefix };
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
