import { RESERVATIONS_PER_SCOPE } from '../limits.ts';
import { compileGlob, type Glob } from './glob.ts';
import { defaultPolicy, type AdmissionScope, type Deed, type Policy } from './policy.ts';
import type { Caller } from './principal.ts';

/**
 * One rule. Each list holds globs, of which one must match; a list that is absent matches everything. `callers` are scopes of the
 * caller's token: `connect`, `invoke`, `host`, or `admin` for an administrator.
 */
export type PolicyRule = {
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  readonly users?: readonly string[] | undefined;
  readonly callers?: readonly string[] | undefined;
  readonly clientTypes?: readonly string[] | undefined;
  readonly actions?: readonly string[] | undefined;
};

/** An admission scope: users that share one capacity. `members` are globs of users. */
export type PolicyScope = { readonly id: string; readonly members: readonly string[]; readonly capacity: number };

export type PolicyFile = {
  readonly rules: readonly PolicyRule[];
  readonly scopes: readonly PolicyScope[];
  /** What a user that belongs to no scope may have reserved at once. */
  readonly userCapacity: number | null;
};

/**
 * The first rule that matches decides; without one, the default does. A file can only narrow: nobody but an administrator ever gets at
 * another user's clients through it. A user belongs to the first scope that names it, else to one of its own.
 */
export function compilePolicy(file: PolicyFile): Policy {
  const rules = file.rules.map(compileRule);
  return {
    decide(who, deed) {
      const usual = defaultPolicy.decide(who, deed);
      if (!usual.allowed) return usual;
      const rule = rules.find(({ matches }) => matches(who, deed));
      return rule?.effect === 'deny' ? { allowed: false, rule: rule.name } : usual;
    },
    scopeOf: compileScopes(file),
  };
}

type CompiledRule = Pick<PolicyRule, 'name' | 'effect'> & { matches(who: Caller, deed: Deed): boolean };

function compileRule(rule: PolicyRule): CompiledRule {
  const users = anyOf(rule.users);
  const callers = anyOf(rule.callers);
  const types = anyOf(rule.clientTypes);
  const actions = anyOf(rule.actions);
  // While the type is unknown (the client is away), a rule that asks for one is taken at its strictest: denied, never allowed by guess.
  const typeMatches = (type: string | null): boolean =>
    type === null ? rule.clientTypes === undefined || rule.effect === 'deny' : types(type);
  return {
    name: rule.name,
    effect: rule.effect,
    matches: (who, deed) =>
      users(deed.userId) && actions(deed.action) && typeMatches(deed.clientType) && scopesOf(who).some(callers),
  };
}

function anyOf(patterns: readonly string[] | undefined): Glob {
  if (!patterns) return () => true;
  const globs = patterns.map(compileGlob);
  return (text) => globs.some((matches) => matches(text));
}

/** The empty text stands for a caller without any scope, so that a rule that asks for none still meets it. */
function scopesOf(who: Caller): readonly string[] {
  if (who.kind === 'admin') return ['admin'];
  return who.scopes.size > 0 ? [...who.scopes] : [''];
}

function compileScopes(file: PolicyFile): (userId: string) => AdmissionScope {
  const scopes = file.scopes.map(({ id, members, capacity }) => ({ id, limit: capacity, has: anyOf(members) }));
  const taken = new Set(file.scopes.map(({ id }) => id));
  const own = file.userCapacity ?? RESERVATIONS_PER_SCOPE;
  return (userId) => {
    const scope = scopes.find(({ has }) => has(userId));
    if (scope) return { id: scope.id, limit: scope.limit };
    // A user named like a group must not be counted with it. No user and no group holds a "/".
    return { id: taken.has(userId) ? `user/${userId}` : userId, limit: own };
  };
}
