/**
 * Principals (who sends a request): their types, the checks of what each may see and do, the tokens of administrators,
 * and the port of used sign-in tickets. Also the port that decides whether an invocation is permitted, with the default
 * policy and the compiler of a policy file: its rules, admission scopes and patterns.
 */
import { fail, notFound } from '../errors.ts';
import { canonicalUser } from '../ids.ts';
import { RESERVATIONS_PER_SCOPE } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { BucketRate, CallerRate } from '../rates.ts';

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
};
/** What tells a signed token from others: its id (`jti`) and its time of issue (`iat`, in epoch milliseconds), if it has them. */
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

/**
 * Returns the user whose objects a requester with scope `invoke` may list. An administrator may name any user, or none
 * (null: all users). A user gets only its own objects; if it names another user, this throws `not_found`, as for an
 * absent object. Throws `forbidden` for a token that is limited to some actions: a listing that leaves out the others
 * calls `readSight` instead.
 */
export function readScope(principal: Principal | null, userId: string | null | undefined): string | null {
  return withoutLimit(readSight(principal, userId)).userId;
}

/**
 * What a requester may list: the objects of this user (null: of all users), and of those only what concerns these
 * actions. Without `actions` it may list all of them.
 */
export type Sight = { readonly userId: string | null; readonly actions?: ActionPatterns };

/**
 * Does the same as `readScope`, for a listing that leaves out whatever concerns an action or a client that the sight
 * does not have: see `seesAction` and `seenConnection`.
 */
export function readSight(principal: Principal | null, userId: string | null | undefined): Sight {
  const requester = requireScope(principal, 'invoke');
  const named = userId === null || userId === undefined ? null : canonicalUser(userId);
  if (requester.kind === 'admin') return { userId: named };
  if (named !== null && named !== requester.userId) notFound();
  return { userId: requester.userId, ...seenActions(requester) };
}

/** Does the same as `readSight`, for listings of one user, and returns the user. */
export function readUserInSight(principal: Principal | null, userId: string): string {
  return readSight(principal, userId).userId ?? notFound();
}

/** Returns the member `actions` if the token limits what the requester may see. */
export function seenActions(principal: Principal | null): Pick<Sight, 'actions'> {
  return principal?.kind === 'user' && principal.actions ? { actions: principal.actions } : {};
}

/** Whether a requester with these patterns may see the action. Without patterns it sees each. */
export function seesAction({ actions }: Pick<Sight, 'actions'>, action: string): boolean {
  return actions === undefined || matchesAny(actions, action);
}

/** Throws `forbidden` if the token is limited to some actions. */
export function withoutLimit<T extends Pick<Sight, 'actions'>>(limited: T): T {
  return limited.actions === undefined
    ? limited
    : fail('forbidden', 'The token is limited to some actions, and this shows or reaches others too.');
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
  withoutLimit(seenActions(principal));
  return knownInSight(principal, userId);
}

/** Does the same as `knownUser`, for a read that leaves out what `readSight` leaves out. */
export function knownInSight(principal: Principal | null, userId: string): string | null {
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

// The policy: the port that decides whether an invocation is permitted, and the default policy.

/**
 * How administrators read payloads. `argument`: by the arguments of listings and by `reveal`; `mutation`: by `reveal`
 * alone, which needs a reason; `off`: not at all.
 */
export type RevealMode = 'argument' | 'mutation' | 'off';

/**
 * The invocation to decide on: this action on a client of this user. `clientType` is null while the client is not
 * connected.
 */
export type InvocationTarget = { readonly userId: string; readonly clientType: string | null; readonly action: string };

export type PolicyDecision = { readonly allowed: true } | { readonly allowed: false; readonly rule: string };

/**
 * An admission scope: its reservations are counted together, against `limit`. `memberLimit`: the most reservations of
 * one member while more than three quarters of `limit` are in use; absent: the scope has one member.
 */
export type AdmissionScope = { readonly id: string; readonly limit: number; readonly memberLimit?: number };

/** The rate of the calls of each caller that a rule counts. `rule`: the name of the rule, which names the buckets. */
export type CallRate = Omit<CallerRate, 'caller'>;

/**
 * Which policy a node runs. `digest` names it. `fault`: why a changed policy file is not used; null: the node runs the
 * file as it is.
 */
export type PolicyReport = { readonly digest: string; readonly fault: string | null };

/** The deployment's policy. Pure: the same arguments give the same result until the policy is replaced. */
export interface Policy {
  decide(requester: CallingPrincipal, target: InvocationTarget): PolicyDecision;
  /** Returns the admission scope of a user; each user has exactly one. */
  scopeOf(userId: string): AdmissionScope;
  /** Returns the rate that bounds such calls of the requester; null if none does. Absent: no call has a rate. */
  rateOf?(requester: CallingPrincipal, target: InvocationTarget): CallRate | null;
  /** Absent: the policy is that of a program, and has no digest. */
  report?(): PolicyReport;
}

/** The prefix of the id of a user's own scope. It is used only if a scope of the policy has the user's id as its id. */
const OWN_SCOPE = 'user/';

/**
 * Returns the id of a user's own scope. `isTaken`: whether a scope of the policy has the same id as the user. The user
 * must not be counted in that scope.
 */
function ownScopeId(userId: string, isTaken: boolean): string {
  // Neither users nor the ids of a policy's scopes hold a "/".
  return isTaken ? OWN_SCOPE + userId : userId;
}

/** Whether a scope is that of this user alone. */
export function isOwnScope(scopeId: string, userId: string): boolean {
  return scopeId === ownScopeId(userId, false) || scopeId === ownScopeId(userId, true);
}

const ALLOWED: PolicyDecision = { allowed: true };
const DENIED: PolicyDecision = { allowed: false, rule: 'default' };

/**
 * The policy without a policy file: users may act on their own clients, administrators on any; each user has a scope of
 * its own.
 */
export const defaultPolicy: Policy = {
  decide: (requester, { userId }) => (requester.kind === 'admin' || requester.userId === userId ? ALLOWED : DENIED),
  scopeOf: (userId) => ({ id: userId, limit: RESERVATIONS_PER_SCOPE }),
};

/** Whether the token of the caller may invoke this action. Tokens without patterns may invoke any. */
export function tokenAllows(caller: CallingPrincipal, action: string): boolean {
  return seesAction(seenActions(caller), action);
}

const COMPILED = new WeakMap<ActionPatterns, Glob>();

/** Whether a text matches one of the patterns, which are compiled once for each list. */
export function matchesAny(patterns: ActionPatterns, text: string): boolean {
  const known = COMPILED.get(patterns) ?? anyOf(patterns);
  COMPILED.set(patterns, known);
  return known(text);
}

// Compiles a policy from the parsed policy file.

/**
 * One rule. Each list holds globs, one of which must match; an absent list matches everything. `callers` matches the
 * scopes of the caller's token: `connect`, `invoke`, `host`, or `admin` for an administrator. Calls through the MCP bridge
 * also have the scope `mcp`.
 */
export type PolicyRule = {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly users?: readonly string[] | undefined;
  readonly callers?: readonly string[] | undefined;
  readonly clientTypes?: readonly string[] | undefined;
  readonly actions?: readonly string[] | undefined;
};

/**
 * A rate rule: each caller has a bucket of `burst` tokens, and gets `perSecond` tokens a second. Each admitted call that
 * the rule matches takes one. The lists are those of PolicyRule.
 */
export type PolicyRate = Omit<PolicyRule, 'effect'> & BucketRate;

/**
 * An admission scope: users that share one capacity (live commands). `members` are globs of users. `memberCapacity`:
 * the most live commands of one member while more than three quarters of the capacity are in use; absent: a tenth of
 * the capacity, at least 1.
 */
export type PolicyScope = {
  readonly id: string;
  readonly members: readonly string[];
  readonly capacity: number;
  readonly memberCapacity?: number | undefined;
};

const MEMBER_PART = 1 / 10;

export type PolicyFile = {
  readonly rules: readonly PolicyRule[];
  readonly scopes: readonly PolicyScope[];
  /** The first one that matches counts a call. */
  readonly rates?: readonly PolicyRate[] | undefined;
  /** The capacity of a user that belongs to no scope; null: RESERVATIONS_PER_SCOPE. */
  readonly userCapacity: number | null;
};

/**
 * Compiles the rules to a policy. The first matching rule decides; without one, the default policy does. A file can
 * only restrict the default policy: it never gives a user access to another user's clients. A user belongs to the first
 * scope with a matching member, otherwise to a scope of its own.
 */
export function compilePolicy(file: PolicyFile): Policy {
  const rules = file.rules.map((rule) => ({ rule, matches: compileMatch(rule, rule.effect === 'deny') }));
  const { rates = [] } = file;
  return {
    decide(requester, target) {
      const usual = defaultPolicy.decide(requester, target);
      if (!usual.allowed) return usual;
      const rule = rules.find(({ matches }) => matches(requester, target))?.rule;
      return rule?.effect === 'deny' ? { allowed: false, rule: rule.name } : usual;
    },
    scopeOf: compileScopes(file),
    ...(rates.length > 0 && { rateOf: compileRates(rates) }),
  };
}

type Matches = (requester: CallingPrincipal, target: InvocationTarget) => boolean;

function compileRates(rates: readonly PolicyRate[]): NonNullable<Policy['rateOf']> {
  const rules = rates.map((rule) => {
    const { name, burst, perSecond } = rule;
    return { rate: { rule: name, burst, perSecond }, matches: compileMatch(rule, true) };
  });
  return (requester, target) => rules.find(({ matches }) => matches(requester, target))?.rate ?? null;
}

/**
 * Compiles the lists of a rule. `restricts`: the rule refuses or counts calls, so it also matches while the type of the
 * client is unknown, because the client is not connected. A rule that allows and names client types does not.
 */
function compileMatch(rule: Omit<PolicyRule, 'effect'>, restricts: boolean): Matches {
  const users = anyOf(rule.users);
  const callers = anyOf(rule.callers);
  const types = anyOf(rule.clientTypes);
  const actions = anyOf(rule.actions);
  const typeMatches = (type: string | null): boolean =>
    type === null ? rule.clientTypes === undefined || restricts : types(type);
  return (requester, target) =>
    users(target.userId) &&
    actions(target.action) &&
    typeMatches(target.clientType) &&
    scopesOf(requester).some(callers);
}

function anyOf(patterns: readonly string[] | undefined): Glob {
  if (!patterns) return () => true;
  const globs = patterns.map(compileGlob);
  return (text) => globs.some((matches) => matches(text));
}

/**
 * Returns the texts that the `callers` of a rule are compared with. A caller without scopes gets the empty text, so
 * that a rule without `callers` applies to it too.
 */
function scopesOf(requester: CallingPrincipal): readonly string[] {
  if (requester.kind === 'admin') return ['admin'];
  return requester.scopes.size > 0 ? [...requester.scopes] : [''];
}

function compileScopes(file: PolicyFile): (userId: string) => AdmissionScope {
  const scopes = file.scopes.map((scope) => ({ scope: admissionScope(scope), has: anyOf(scope.members) }));
  const taken = new Set(file.scopes.map(({ id }) => id));
  const own = file.userCapacity ?? RESERVATIONS_PER_SCOPE;
  return (userId) => {
    const found = scopes.find(({ has }) => has(userId));
    if (found) return found.scope;
    return { id: ownScopeId(userId, taken.has(userId)), limit: own };
  };
}

function admissionScope({ id, members, capacity, memberCapacity }: PolicyScope): AdmissionScope {
  const hasOneMember = members.length === 1 && !members.some((glob) => glob.includes('*'));
  if (hasOneMember) return { id, limit: capacity };
  return { id, limit: capacity, memberLimit: memberCapacity ?? Math.max(1, Math.floor(capacity * MEMBER_PART)) };
}

// Compiles patterns with `*`, as policies use them.

/**
 * Whether the text matches the pattern. `*` matches any run of characters, also an empty one; every other character
 * matches itself.
 */
type Glob = (text: string) => boolean;

/** Compiles a pattern. Matching does not backtrack: for each `*` it takes time linear in the length of the text. */
export function compileGlob(pattern: string): Glob {
  const parts = pattern.split('*');
  const first = parts[0] ?? '';
  if (parts.length === 1) return (text) => text === first;
  const last = parts[parts.length - 1] ?? '';
  const middle = parts.slice(1, -1).filter((part) => part !== '');
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    return inOrder(middle, text.slice(first.length, text.length - last.length));
  };
}

function inOrder(parts: readonly string[], text: string): boolean {
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return true;
}
