/** Principals: who sends a request, the port that authenticates them, and checks of what each may do. */
import { fail } from '../errors.ts';

/** What a token permits. `mcp`: invoking actions as an agent, through the MCP bridge, and nothing else. */
export type Scope = 'connect' | 'invoke' | 'host' | 'mcp';

/** The principal of a request; null if it has none. */
export type Requester = Principal | null;

/**
 * An authenticated requester. `expiresAt`: epoch milliseconds; null for a configured admin token. `name` of an
 * administrator: the name configured with the token, `token-<n>` for a configured token without a name, or the subject
 * of a JWT.
 */
export type Principal = CallingPrincipal | GrantPrincipal;
/** A principal that is not limited to one site session. */
export type CallingPrincipal = AdminPrincipal | UserPrincipal;
export type AdminPrincipal = {
  readonly kind: 'admin';
  readonly name: string;
  readonly expiresAt: number | null;
  /** Absent for a configured token. Such a token cannot be revoked, only removed from the configuration. */
  readonly token?: TokenIdentity;
};
export type UserPrincipal = {
  readonly kind: 'user';
  readonly userId: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly expiresAt: number | null;
  readonly token?: TokenIdentity;
  /** The patterns of the actions that the token may invoke and see. Absent: all actions. */
  readonly actions?: ActionPatterns;
  /** The tools that an agent with this token gets. Absent: all tools. */
  readonly toolChoice?: ToolChoice;
  /** The client as which the token may connect. Absent if the token is not that of a device. */
  readonly device?: DeviceLimits;
};
/**
 * The limits of a device's token: the client as which it may connect. `actions`: patterns of the actions that it may
 * advertise; null: any actions.
 */
export type DeviceLimits = {
  readonly clientId: string;
  readonly clientType: string;
  readonly actions: ActionPatterns | null;
};
/**
 * What identifies a signed token: its id (`jti`) and its time of issue (`iat`, in epoch milliseconds), each null if the
 * token has none. The time of issue of a device's token is the time at which the device was enrolled.
 */
export type TokenIdentity = { readonly id: string | null; readonly issuedAt: number | null };
/** Patterns of action names with `*` (see `compileGlob`). An action must match one of them. */
export type ActionPatterns = readonly string[];
/**
 * Which tools an agent gets. `tools`: the built-in tools, the tools of actions, or both. `prefix`: only tools of
 * actions whose names begin with it. This makes the list short and is not a right: `actions` limits what the token may
 * invoke and see.
 */
export type ToolChoice = { readonly tools: 'all' | 'builtin' | 'actions'; readonly prefix: string };
/** The holder of a grant. It may access one session of a site and nothing else. */
export type GrantPrincipal = {
  readonly kind: 'grant';
  readonly sessionId: string;
  readonly grantId: string;
  /** The user who owns the session. The holder's requests are counted as this user's. */
  readonly ownerId: string;
  readonly expiresAt: number;
};

/**
 * Turns a bearer token into a principal; null if there is no token. The HTTP layer implements this port and passes it
 * to the gateway. Throws `unauthenticated` if the token is invalid or expired, and `invalid_user` with status 401 if
 * its subject is not a valid user id.
 */
export interface Authenticator {
  /**
   * Authenticates a token. `address`: the address of the peer that sent the token. Failures are counted for each
   * address; too many of them cause `rate_limited`. If `address` is absent, failures are not counted.
   */
  authenticate(token: string | null, address?: string): Promise<Principal | null>;
}

/** Returns a text that identifies the requester, for cursors, logs and the count of open streams. */
export function subjectOf(principal: Principal): string {
  if (principal.kind === 'grant') return `grant:${principal.grantId}`;
  return principal.kind === 'admin' ? `admin:${principal.name}` : `user:${principal.userId}`;
}

const TOOL_PREFIX = /^[A-Za-z0-9_]{1,40}$/;

/**
 * Reads the choice of tools from two members, each undefined if absent. If one is invalid, returns an error text that
 * begins with its name.
 */
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
