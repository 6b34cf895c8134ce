/** Tests the policy that is replaced while a node runs. */
import { expect, it } from 'vitest';
import {
  LivePolicy,
  policyDigest,
  scopeMapDigest,
  scopeMapOf,
  type ScopeMove,
} from '../../src/core/auth/live-policy.ts';
import type { UserPrincipal } from '../../src/core/auth/principal.ts';
import type { PolicyFile } from '../../src/core/auth/policy-file.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';

const { sha256 } = createCrypto('');
const ALICE: UserPrincipal = { kind: 'user', userId: 'alice', scopes: new Set(['invoke']), expiresAt: null };
const WIPE = { userId: 'alice', clientType: null, action: 'notes.wipe' };
const file = (given: Partial<PolicyFile> = {}): PolicyFile => ({ rules: [], scopes: [], userCapacity: null, ...given });
const NO_WIPE = file({ rules: [{ name: 'no-wipe', effect: 'deny', actions: ['*.wipe'] }] });
const SUPPORT = { id: 'support', members: ['*@support.example'], capacity: 5 };

function opened(first: PolicyFile | null, scopeMove: ScopeMove = 'restart') {
  const told: string[] = [];
  const log = { ...silentLog, error: (_: object, text: string) => void told.push(text) };
  return { told, policy: new LivePolicy(first, { sha256, log, scopeMove }) };
}

it('decides by the new file from the next call on, as a whole', () => {
  const { policy } = opened(null);
  const { decide, scopeOf, rateOf } = policy;
  expect([decide(ALICE, WIPE), rateOf(ALICE, WIPE)]).toEqual([{ allowed: true }, null]);
  const rates = [{ name: 'slow', burst: 1, perSecond: 1 }];
  policy.replace({ ...NO_WIPE, rates, userCapacity: 3 });
  expect(decide(ALICE, WIPE)).toEqual({ allowed: false, rule: 'no-wipe' });
  expect(rateOf(ALICE, WIPE)).toEqual({ rule: 'slow', burst: 1, perSecond: 1 });
  expect(scopeOf('alice')).toEqual({ id: 'alice', limit: 3 });
  policy.replace(null);
  expect([decide(ALICE, WIPE), rateOf(ALICE, WIPE)]).toEqual([{ allowed: true }, null]);
});

it('refuses a file that would move users between scopes, and takes one that changes capacities only', () => {
  const { policy } = opened(file({ scopes: [SUPPORT] }));
  for (const scopes of [
    [],
    [{ ...SUPPORT, members: ['*'] }],
    [{ ...SUPPORT, id: 'help' }],
    [{ ...SUPPORT, id: 'alice', members: ['bob'] }, SUPPORT],
  ])
    expect(() => policy.replace({ ...NO_WIPE, scopes })).toThrow('Restart the relay with this file.');
  expect(policy.decide(ALICE, WIPE)).toEqual({ allowed: true });
  policy.replace(file({ scopes: [{ ...SUPPORT, capacity: 9 }] }));
  expect(policy.scopeOf('a@support.example')).toMatchObject({ id: 'support', limit: 9 });
});

it.each<[ScopeMove, string]>([
  ['restart', 'Restart the relay with this file.'],
  ['restarts', 'one after the other'],
  ['namespace', 'another NAMESPACE'],
])('says what moves users to other scopes instead: %s', (scopeMove, how) => {
  const { policy } = opened(file({ scopes: [SUPPORT] }), scopeMove);
  expect(() => policy.replace(file())).toThrow(how);
  const digests = [null, file({ scopes: [SUPPORT] }), file({ scopes: [{ ...SUPPORT, capacity: 9 }] })].map((one) =>
    scopeMapDigest(one, sha256),
  );
  expect(new Set(digests).size).toBe(2);
});

it('reports its digest, and a fault until the next file that it takes', () => {
  const { policy, told } = opened(NO_WIPE);
  const digest = policyDigest(NO_WIPE, sha256);
  expect(policy.report()).toEqual({ digest, fault: null });
  policy.refuse('rules: wrong');
  policy.refuse('rules: wrong');
  expect([policy.report(), told.length]).toEqual([{ digest, fault: 'rules: wrong' }, 1]);
  policy.replace(NO_WIPE);
  expect(policy.report()).toEqual({ digest, fault: null });
});

it('gives policies that decide alike one digest, and others different ones', () => {
  const digests = [null, file({ rates: [] }), NO_WIPE, file({ userCapacity: 3 }), file({ scopes: [SUPPORT] })];
  expect(new Set(digests.map((one) => policyDigest(one, sha256))).size).toBe(4);
  expect(scopeMapOf(null)).toBe('[]');
});
