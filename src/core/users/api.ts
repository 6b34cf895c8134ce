/** The interface of users. Types only. */
import type { Requester } from '../auth/principal.ts';
import type { PageArgs } from '../cursor.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Completeness, Page } from '../page.ts';

export type UserView = {
  readonly id: string;
  readonly connectionCount: number;
  readonly streamCount: number;
  readonly completeness: Completeness;
};

export interface Users {
  /** Lists the users that have a connection or a stream, in order of user id. Admin only. */
  list(requester: Requester, page: PageArgs): Promise<Page<UserView>>;
  /**
   * Returns the summary of a user, for an administrator or the user itself. Null if the requester is another user. For
   * an administrator null also means that nothing is known of the user.
   */
  get(requester: Requester, userId: string): MaybePromise<UserView | null>;
  /** Does the same as `get`, for several users, in order. One round trip. */
  many(requester: Requester, userIds: readonly string[]): MaybePromise<readonly (UserView | null)[]>;
}
