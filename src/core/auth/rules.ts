/** Compiles a policy from the rules that an operator writes in the policy file. Reads no file. */
import { RESERVATIONS_PER_SCOPE } from '../limits.ts';
import { compileGlob, type Glob } from './glob.ts';
import { defaultPolicy, ownScopeId, type AdmissionScope, type InvocationTarget, type Policy } from './policy.ts';
import type { CallingPrincipal } from './principal.ts';

/**
 * One rule. Each list holds globs, one of which must match; an absent list matches everything. `callers` matches the
 * scopes of the caller's token: `connect`, `invoke`, `host`, or `admin` for an administrator.
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
 * An admission scope: users that share one capacity (live commands). `members` are globs of users. `memberCapacity`: the
 * live commands of one member above three quarters of the capacity; absent: a tenth of the capacity, at least 1.
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
  /** The capacity of a user that belongs to no scope; null: RESERVATIONS_PER_SCOPE. */
  readonly userCapacity: number | null;
};

/**
 * Compiles the rules to a policy. The first matching rule decides; without one, the default policy does. A file can
 * only restrict the default policy: it never gives a user access to another user's clients. A user belongs to the first
 * scope with a matching member, otherwise to a scope of its own.
 */
export function compilePolicy(file: PolicyFile): Policy {
  const rules = file.rules.map(compileRule);
  return {
    decide(requester, target) {
      const usual = defaultPolicy.decide(requester, target);
      if (!usual.allowed) return usual;
      const rule = rules.find(({ matches }) => matches(requester, target));
      return rule?.effect === 'deny' ? { allowed: false, rule: rule.name } : usual;
    },
    scopeOf: compileScopes(file),
  };
}

type CompiledRule = Pick<PolicyRule, 'name' | 'effect'> & {
  matches(requester: CallingPrincipal, target: InvocationTarget): boolean;
};

function compileRule(rule: PolicyRule): CompiledRule {
  const users = anyOf(rule.users);
  const callers = anyOf(rule.callers);
  const types = anyOf(rule.clientTypes);
  const actions = anyOf(rule.actions);
  // While the type is unknown (the client is not connected), a deny rule with client types matches, and an allow rule
  // with client types does not.
  const typeMatches = (type: string | null): boolean =>
    type === null ? rule.clientTypes === undefined || rule.effect === 'deny' : types(type);
  return {
    name: rule.name,
    effect: rule.effect,
    matches: (requester, target) =>
      users(target.userId) &&
      actions(target.action) &&
      typeMatches(target.clientType) &&
      scopesOf(requester).some(callers),
  };
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
