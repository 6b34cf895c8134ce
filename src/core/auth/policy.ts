/** The policy: the port that decides whether an invocation is permitted, and the default policy. */
import { RESERVATIONS_PER_SCOPE } from '../limits.ts';
import type { CallerRate } from '../rates.ts';
import type { CallingPrincipal } from './principal.ts';
import { seesAction, seenActions } from './sight.ts';

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
export function ownScopeId(userId: string, isTaken: boolean): string {
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
