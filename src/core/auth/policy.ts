/** The policy: the port that decides whether an invocation is permitted, and the default policy. */
import { RESERVATIONS_PER_SCOPE } from '../limits.ts';
import type { CallerRate } from '../rates.ts';
import type { CallingPrincipal } from './principal.ts';
import { seesAction, seenActions } from './sight.ts';

/**
 * How administrators may read payloads. `argument`: by arguments of listings and by `reveal`. `mutation`: by `reveal`
 * only, which needs a reason. `off`: not at all.
 */
export type RevealMode = 'argument' | 'mutation' | 'off';

/**
 * The invocation to decide about: an action on a client of this user. `clientType`: null if the client is not
 * connected.
 */
export type InvocationTarget = { readonly userId: string; readonly clientType: string | null; readonly action: string };

export type PolicyDecision = { readonly allowed: true } | { readonly allowed: false; readonly rule: string };

/**
 * An admission scope. Its reservations are counted together and limited to `limit`. `memberLimit`: the most
 * reservations of one member while more than three quarters of `limit` are in use; absent if the scope has one member
 * only.
 */
export type AdmissionScope = { readonly id: string; readonly limit: number; readonly memberLimit?: number };

/**
 * The rate at which a rule lets each caller call. `rule`: the name of the rule, which is part of the names of its
 * buckets.
 */
export type CallRate = Omit<CallerRate, 'caller'>;

/**
 * The policy that a node runs. `digest`: identifies it. `fault`: why a newer policy file is not used; null if the node
 * runs the newest file.
 */
export type PolicyReport = { readonly digest: string; readonly fault: string | null };

/** The deployment's policy. Pure: until the policy is replaced, the same arguments give the same result. */
export interface Policy {
  decide(requester: CallingPrincipal, target: InvocationTarget): PolicyDecision;
  /** Returns the admission scope of a user. Each user has exactly one. */
  scopeOf(userId: string): AdmissionScope;
  /** Returns the rate that limits such calls of the requester; null if none does. Absent if the policy has no rates. */
  rateOf?(requester: CallingPrincipal, target: InvocationTarget): CallRate | null;
  /** Absent if the surrounding program passed the policy: such a policy has no digest. */
  report?(): PolicyReport;
}

/** The prefix in the id of a user's own scope if a scope of the policy already has the user's id as its id. */
const OWN_SCOPE = 'user/';

/**
 * Returns the id of a user's own scope. `isTaken`: whether a scope of the policy has the user's id as its id. The
 * prefix then prevents that the user is counted in that scope.
 */
export function ownScopeId(userId: string, isTaken: boolean): string {
  // User ids and scope ids contain no "/".
  return isTaken ? OWN_SCOPE + userId : userId;
}

/** Whether the scope is the own scope of this user. */
export function isOwnScope(scopeId: string, userId: string): boolean {
  return scopeId === ownScopeId(userId, false) || scopeId === ownScopeId(userId, true);
}

const ALLOWED: PolicyDecision = { allowed: true };
const DENIED: PolicyDecision = { allowed: false, rule: 'default' };

/**
 * The policy without a policy file. Users may act on their own clients, and administrators on all clients. Each user
 * has a scope of its own.
 */
export const defaultPolicy: Policy = {
  decide: (requester, { userId }) => (requester.kind === 'admin' || requester.userId === userId ? ALLOWED : DENIED),
  scopeOf: (userId) => ({ id: userId, limit: RESERVATIONS_PER_SCOPE }),
};

/** Whether the caller's token may invoke this action. A token without patterns may invoke any action. */
export function tokenAllows(caller: CallingPrincipal, action: string): boolean {
  return seesAction(seenActions(caller), action);
}
