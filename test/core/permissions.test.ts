/** Tests who may invoke an action, as far as the policy decides it, against what the policy then decides. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicy, type PolicyFile, type PolicyRule } from '../../src/core/auth/policy-file.ts';
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import type { CallingPrincipal, Scope } from '../../src/core/auth/principal.ts';
import { permissions } from '../../src/core/calls/permissions.ts';
import { PERMITTED_ACTIONS } from '../../src/core/limits.ts';

const user = (...scopes: readonly Scope[]): CallingPrincipal => ({
  ...{ kind: 'user', userId: 'alice', scopes: new Set(scopes), expiresAt: null },
});
const admin: CallingPrincipal = { kind: 'admin', name: 'ops', expiresAt: null };
const file = (...rules: readonly Omit<PolicyRule, 'name'>[]): PolicyFile => ({
  rules: rules.map((rule, at) => ({ name: `rule-${at}`, ...rule })),
  ...{ scopes: [], userCapacity: null },
});

const verdicts = (...rules: readonly Omit<PolicyRule, 'name'>[]) => {
  const policy = rules.length === 0 ? defaultPolicy : compilePolicy(file(...rules));
  const [found] = permissions(policy, admin, { userId: 'alice', actions: ['tab.open'] });
  return Object.fromEntries((found?.callers ?? []).map(({ kind, verdict, message }) => [kind, [verdict, message]]));
};

describe('who may call', () => {
  it('is everybody but other users without a policy; what a grant allows is not known', () => {
    expect(verdicts()).toMatchObject({
      admin: ['pass', 'Any administrator.'],
      user: ['pass', /"invoke"/],
      mcp: ['pass', /"mcp"/],
      grant: ['unknown', /site/],
    });
  });

  it('follows the rules, which it names', () => {
    const denied = 'The policy rule "rule-0" denies it.';
    expect(verdicts({ effect: 'deny', actions: ['tab.*'], callers: ['mcp'] })).toMatchObject({
      admin: ['pass', expect.anything()],
      user: ['pass', expect.anything()],
      mcp: ['refuse', denied],
    });
    const all = verdicts({ effect: 'deny' });
    expect(Object.values(all)).toEqual(Array(4).fill(['refuse', denied]));
  });

  it('is not known where a rule names types of clients, or scopes that a token may have besides', () => {
    const decides = 'The policy rule "rule-0" decides by the type of the client or by other scopes of the token.';
    const unknown = ['unknown', decides];
    expect(verdicts({ effect: 'deny', clientTypes: ['mobile'] })).toMatchObject({
      admin: unknown,
      user: unknown,
      grant: unknown,
    });
    expect(verdicts({ effect: 'deny', callers: ['host'] })).toMatchObject({
      user: unknown,
      mcp: unknown,
      admin: ['pass', 'Any administrator.'],
    });
  });

  it('is told to the user itself and to administrators, for a bounded number of names', () => {
    const ask = (requester: CallingPrincipal, actions: readonly string[]) =>
      permissions(defaultPolicy, requester, { userId: 'alice', actions });
    expect(ask(user('invoke'), ['a', 'b']).map(({ action }) => action)).toEqual(['a', 'b']);
    expect(() => ask(user('connect'), ['a'])).toThrow('scope "invoke"');
    expect(() => ask({ ...user('invoke'), userId: 'bob' } as CallingPrincipal, ['a'])).toThrow(/no such/i);
    expect(() => ask(admin, Array(PERMITTED_ACTIONS + 1).fill('a'))).toThrow();
    expect(() => ask(admin, ['not a name\n'])).toThrow();
  });

  it('never promises what the policy refuses, nor refuses what it allows', () => {
    const words = fc.subarray(['connect', 'invoke', 'host', 'mcp', 'admin', '*'], { minLength: 1 });
    const types = fc.subarray(['browser', 'console', 'mobile', 'web'], { minLength: 1 });
    const rule = fc.record({
      effect: fc.constantFrom('allow' as const, 'deny' as const),
      callers: fc.option(words, { nil: undefined }),
      clientTypes: fc.option(types, { nil: undefined }),
      actions: fc.option(fc.constantFrom(['tab.*'], ['other']), { nil: undefined }),
    });
    const scopes = fc.subarray<Scope>(['connect', 'host']);
    fc.assert(
      fc.property(
        fc.array(rule, { maxLength: 4 }),
        scopes,
        fc.constantFrom('browser', 'mobile'),
        (rules, more, clientType) => {
          const policy = compilePolicy(file(...rules));
          const found = verdicts(...rules);
          const callers = { admin, user: user('invoke', ...more), mcp: user('invoke', 'mcp', ...more) };
          for (const [kind, caller] of Object.entries(callers)) {
            const [verdict] = found[kind] ?? [];
            const { allowed } = policy.decide(caller, { userId: 'alice', clientType, action: 'tab.open' });
            expect(verdict).toBe(verdict === 'unknown' ? 'unknown' : allowed ? 'pass' : 'refuse');
          }
        },
      ),
    );
  });
});
