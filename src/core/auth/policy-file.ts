/** Compiles a parsed policy file to a policy. */
import { RESERVATIONS_PER_SCOPE } from '../limits.ts';
import type { BucketRate } from '../rates.ts';
import { anyOf } from './patterns.ts';
import { defaultPolicy, type Policy, type InvocationTarget, ownScopeId, type AdmissionScope } from './policy.ts';
import type { CallingPrincipal } from './principal.ts';

/**
 * One rule. Each list contains patterns, one of which must match. An absent list matches everything. `callers` is
 * compared with the scopes of the caller's token (`connect`, `invoke`, `host`), or with `admin` for an administrator. A
 * call through the MCP bridge also has the scope `mcp`.
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
 * A rate rule. Each caller has a bucket that holds up to `burst` tokens and is refilled with `perSecond` tokens a
 * second. Each admitted call that matches the rule takes one token. The lists are those of PolicyRule.
 */
type PolicyRate = Omit<PolicyRule, 'effect'> & BucketRate;

/**
 * An admission scope: users who share one capacity of live commands. `members`: patterns of user ids. `memberCapacity`:
 * the most live commands of one member while more than three quarters of the capacity are in use; if absent, a tenth of
 * the capacity, but at least 1.
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
  /** The rate rules. The first rule that matches a call counts it. */
  readonly rates?: readonly PolicyRate[] | undefined;
  /** The capacity of a user who belongs to no scope; null: RESERVATIONS_PER_SCOPE. */
  readonly userCapacity: number | null;
};

/**
 * Compiles the rules to a policy. The first matching rule decides; if none matches, the default policy does. A file can
 * only restrict the default policy: it cannot give a user access to another user's clients. A user belongs to the first
 * scope with a matching member. If there is none, the user has a scope of its own.
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
 * Compiles the lists of a rule. `restricts`: whether the rule denies or counts calls. If the client is not connected,
 * its type is unknown. A rule that restricts and names client types then matches all the same; a rule that allows does
 * not match.
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

/**
 * Returns the texts with which the `callers` of a rule are compared. A caller without scopes gets the empty text,
 * because a rule without `callers` must match this caller too.
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
