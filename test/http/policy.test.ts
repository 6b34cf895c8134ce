/** Tests policy files: rules, admission scopes and globs. */
import { describe, expect, it } from 'vitest';
import { compileGlob } from '../../src/core/auth/patterns.ts';
import { compilePolicy, type PolicyRule } from '../../src/core/auth/policy-file.ts';
import type { InvocationTarget } from '../../src/core/auth/policy.ts';
import type { CallingPrincipal, Scope } from '../../src/core/auth/principal.ts';
const admin: CallingPrincipal = { kind: 'admin', name: 'token-1', expiresAt: null };
const user = (userId: string, ...scopes: Scope[]): CallingPrincipal => ({
  kind: 'user',
  userId,
  scopes: new Set(scopes),
  expiresAt: null,
});
const alice = user('alice', 'invoke');
const target = (over: Partial<InvocationTarget> = {}): InvocationTarget => ({
  userId: 'alice',
  clientType: 'browser',
  action: 'files.read',
  ...over,
});

function decide(
  rules: readonly Omit<PolicyRule, 'name'>[],
  requester: CallingPrincipal,
  what: InvocationTarget,
): boolean | string {
  const named = rules.map((rule, index) => ({ name: `r${index}`, ...rule }));
  const verdict = compilePolicy({ rules: named, scopes: [], userCapacity: null }).decide(requester, what);
  return verdict.allowed || verdict.rule;
}

describe('policy rules', () => {
  it.each([
    ['no rule leaves the default: own clients', [], alice, target(), true],
    ['no rule leaves the default: an administrator on any', [], admin, target({ userId: 'bob' }), true],
    ['a denied action names the rule', [{ effect: 'deny', actions: ['files.*'] }], alice, target(), 'r0'],
    ['another action passes', [{ effect: 'deny', actions: ['files.*'] }], alice, target({ action: 'ping' }), true],
    [
      'the first match decides',
      [{ effect: 'allow', actions: ['files.read'] }, { effect: 'deny' }],
      alice,
      target(),
      true,
    ],
    ['in order', [{ effect: 'deny' }, { effect: 'allow', actions: ['files.read'] }], alice, target(), 'r0'],
    ['by user', [{ effect: 'deny', users: ['bob', 'al*'] }], alice, target(), 'r0'],
    ['by user, another', [{ effect: 'deny', users: ['bob'] }], alice, target(), true],
    ['by caller scope', [{ effect: 'deny', callers: ['invoke'] }], alice, target(), 'r0'],
    ['administrators have the scope admin', [{ effect: 'deny', callers: ['admin'] }], admin, target(), 'r0'],
    [
      'a rule on users leaves administrators alone',
      [{ effect: 'deny', callers: ['invoke', 'host'] }],
      admin,
      target(),
      true,
    ],
    ['any caller means also one without scope', [{ effect: 'deny' }], user('alice'), target(), 'r0'],
    ['by client type', [{ effect: 'deny', clientTypes: ['browser'] }], alice, target(), 'r0'],
    ['by client type, another', [{ effect: 'deny', clientTypes: ['mobile'] }], alice, target(), true],
    [
      'an unknown type is denied where one would be',
      [{ effect: 'deny', clientTypes: ['mobile'] }],
      alice,
      target({ clientType: null }),
      'r0',
    ],
    [
      'an unknown type earns no exception',
      [{ effect: 'allow', clientTypes: ['browser'] }, { effect: 'deny' }],
      alice,
      target({ clientType: null }),
      'r1',
    ],
    ['no rule opens the clients of another user', [{ effect: 'allow' }], alice, target({ userId: 'bob' }), 'default'],
    [
      'all conditions of a rule must hold',
      [{ effect: 'deny', users: ['alice'], actions: ['wipe'] }],
      alice,
      target(),
      true,
    ],
  ] satisfies [string, Omit<PolicyRule, 'name'>[], CallingPrincipal, InvocationTarget, boolean | string][])(
    '%s',
    (_says, rules, requester, what, expected) => {
      expect(decide(rules, requester, what)).toBe(expected);
    },
  );
});

describe('admission scopes', () => {
  const policy = compilePolicy({
    rules: [],
    scopes: [
      { id: 'team', members: ['*@team.example', 'carol'], capacity: 3 },
      { id: 'rest', members: ['guest-*'], capacity: 1 },
      { id: 'late', members: ['carol'], capacity: 9 },
      { id: 'many', members: ['*@many.example'], capacity: 500 },
      { id: 'few', members: ['*@few.example'], capacity: 500, memberCapacity: 200 },
      { id: 'single', members: ['alone'], capacity: 5 },
    ],
    userCapacity: 50,
  });

  it.each([
    ['a@team.example', 'team', 3, 1],
    ['carol', 'team', 3, 1],
    ['guest-7', 'rest', 1, 1],
    ['dave', 'dave', 50, undefined],
    ['team', 'user/team', 50, undefined],
    ['erin@many.example', 'many', 500, 50],
    ['frank@few.example', 'few', 500, 200],
    ['alone', 'single', 5, undefined],
  ])('%s is counted in %s with a limit of %i', (userId, id, limit, memberLimit) => {
    expect(policy.scopeOf(userId)).toEqual({ id, limit, memberLimit });
  });
});

describe('globs', () => {
  it.each([
    ['*', '', true],
    ['*', 'anything', true],
    ['a*', 'abc', true],
    ['*c', 'abc', true],
    ['a*c', 'abc', true],
    ['a*c', 'ac', true],
    ['ab*ba', 'aba', false],
    ['a*b*c', 'a-b-c', true],
    ['a*b*c', 'a-c-b', false],
    ['a.c', 'abc', false],
    ['a', 'ab', false],
    ['(a+)+$', 'aaaa', false],
  ])('%s against %s: %s', (pattern, text, expected) => {
    expect(compileGlob(pattern)(text)).toBe(expected);
  });

  it('stay fast with hostile patterns', () => {
    const matches = compileGlob('*a'.repeat(64) + 'b');
    const before = process.cpuUsage();
    expect(matches('a'.repeat(10_000))).toBe(false);
    const { user, system } = process.cpuUsage(before);
    // An expression that backtracks would not end.
    expect((user + system) / 1000).toBeLessThan(2_000);
  });
});
