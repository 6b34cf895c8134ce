/** What a requester may see: the whole deployment, one user or a grant, and the users and actions in it. */
import { fail, notFound } from '../errors.ts';
import { canonicalUser } from '../ids.ts';
import { matchesAny } from './patterns.ts';
import { type ActionPatterns, requireScope, type Principal } from './principal.ts';

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

/**
 * Returns the user whose objects a requester with scope `invoke` may list. An administrator may name any user, or none
 * (null: all users). A user gets only its own objects; if it names another user, this throws `not_found`, as for an
 * absent object. Throws `forbidden` for a token that is limited to some actions: a listing that leaves out the others
 * calls `readSight` instead.
 */
export function readScope(principal: Principal | null, userId: string | null | undefined): string | null {
  return withoutLimit(readSight(principal, userId)).userId;
}
