/** Decides what a requester may see: all users or one, and all actions or those that its token names. */
import { fail, notFound } from '../errors.ts';
import { canonicalUser } from '../ids.ts';
import { matchesAny } from './patterns.ts';
import { type ActionPatterns, requireScope, type Principal } from './principal.ts';

/**
 * What a requester may list: the objects of `userId` (null: of all users), limited to those that concern the actions in
 * `actions` (absent: all actions).
 */
export type Sight = { readonly userId: string | null; readonly actions?: ActionPatterns };

/**
 * Returns what a requester with scope `invoke` may list, like `readScope`, but accepts tokens that are limited to some
 * actions. For listings that leave out everything about other actions and clients: see `seesAction` and
 * `seenConnection`.
 */
export function readSight(principal: Principal | null, userId: string | null | undefined): Sight {
  const requester = requireScope(principal, 'invoke');
  const named = userId === null || userId === undefined ? null : canonicalUser(userId);
  if (requester.kind === 'admin') return { userId: named };
  if (named !== null && named !== requester.userId) notFound();
  return { userId: requester.userId, ...seenActions(requester) };
}

/** Returns the user whose objects are listed, like `readSight`, for listings of one user. */
export function readUserInSight(principal: Principal | null, userId: string): string {
  return readSight(principal, userId).userId ?? notFound();
}

/** Returns the member `actions` if the requester's token is limited to some actions; an empty object otherwise. */
export function seenActions(principal: Principal | null): Pick<Sight, 'actions'> {
  return principal?.kind === 'user' && principal.actions ? { actions: principal.actions } : {};
}

/** Whether a requester with this sight may see the action. */
export function seesAction({ actions }: Pick<Sight, 'actions'>, action: string): boolean {
  return actions === undefined || matchesAny(actions, action);
}

/** Throws `forbidden` if the token is limited to some actions. Returns the argument otherwise. */
export function withoutLimit<T extends Pick<Sight, 'actions'>>(limited: T): T {
  return limited.actions === undefined
    ? limited
    : fail('forbidden', 'The token is limited to some actions, and this shows or reaches others too.');
}

/** Returns the user whose objects are listed, like `readScope`, for listings of one user. */
export function readUser(principal: Principal | null, userId: string): string {
  return readScope(principal, userId) ?? notFound();
}

/**
 * Returns the canonical user id, like `readUser`. If a user names another user, returns null instead of throwing, so
 * that an object of another user looks like one that does not exist.
 */
export function knownUser(principal: Principal | null, userId: string): string | null {
  withoutLimit(seenActions(principal));
  return knownInSight(principal, userId);
}

/**
 * Returns the canonical user id, like `knownUser`, but accepts tokens that are limited to some actions. For reads that
 * leave out what `readSight` says.
 */
export function knownInSight(principal: Principal | null, userId: string): string | null {
  const requester = requireScope(principal, 'invoke');
  const named = canonicalUser(userId);
  return requester.kind === 'admin' || named === requester.userId ? named : null;
}

/**
 * Returns the user whose objects a requester with scope `invoke` may list. An administrator may name any user, or none
 * (null: all users). A user gets its own objects only. If it names another user, throws `not_found`, as for an object
 * that does not exist. Throws `forbidden` if the token is limited to some actions; a listing that supports such tokens
 * calls `readSight` instead.
 */
export function readScope(principal: Principal | null, userId: string | null | undefined): string | null {
  return withoutLimit(readSight(principal, userId)).userId;
}
