import { RESERVATIONS_PER_SCOPE } from '../limits.ts';
import type { Caller } from './principal.ts';

/** What is about to be done: this action on a client of this user. The type is null while the client is not connected. */
export type Deed = { readonly userId: string; readonly clientType: string | null; readonly action: string };

export type Verdict = { readonly allowed: true } | { readonly allowed: false; readonly rule: string };

/** An admission scope: its reservations are counted together. */
export type AdmissionScope = { readonly id: string; readonly limit: number };

/** Central policy. Pure: the same question has the same answer for as long as the node runs. */
export interface Policy {
  decide(who: Caller, deed: Deed): Verdict;
  /** The one scope of a user. */
  scopeOf(userId: string): AdmissionScope;
}

/** Without a policy file: users on their own clients, administrators on any; each user its own scope. */
export const defaultPolicy: Policy = {
  decide: (who, { userId }) =>
    who.kind === 'admin' || who.userId === userId ? { allowed: true } : { allowed: false, rule: 'default' },
  scopeOf: (userId) => ({ id: userId, limit: RESERVATIONS_PER_SCOPE }),
};
