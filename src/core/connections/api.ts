/** The interface for reading connections. Types only. */
import type { Requester } from '../auth/principal.ts';
import type { ConnectionEvent } from '../bus.ts';
import type { PageArgs } from '../cursor.ts';
import type { ClientKey } from '../ids.ts';
import type { Subscription } from '../live.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Page, Summary } from '../page.ts';
import type { DocumentReading } from '../reading.ts';
import type { Connection } from './connection.ts';
import type { ConnectionQuery } from './filter.ts';
import type { FlappingSample } from './reconnects.ts';

export interface Connections {
  /** Lists connections. Calls with the same `reading` share what they read of the store. */
  list(
    requester: Requester,
    query: ConnectionQuery,
    page: PageArgs,
    reading?: DocumentReading,
  ): Promise<Page<Connection>>;
  /** Returns a connection. Null if there is no such connection, or if it belongs to another user. */
  get(requester: Requester, key: ClientKey): Promise<Connection | null>;
  /**
   * Returns one connection per key, in order; null where there is no row. One round trip. For nested fields, after the
   * parent was authorized.
   */
  many(keys: readonly ClientKey[]): MaybePromise<readonly (Connection | null)[]>;
  /**
   * Returns for each user the page that `list` gives for `{ userId }`. For nested fields, after the parent was
   * authorized. `requester` only binds the cursors.
   */
  ofUsers(
    requester: Requester,
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly Summary<Connection>[]>;
  /** Returns how often each client reconnected in the last hour. One round trip. For nested fields. */
  reconnects(keys: readonly ClientKey[]): MaybePromise<readonly number[]>;
  /** Lists the clients that reconnected most in the last hour. Admin only. */
  flapping(requester: Requester, first: number): Promise<FlappingSample>;
  /**
   * Subscribes to future changes of the connections of one user. `userId` null: of all users; for administrators only.
   */
  events(requester: Requester, userId: string | null): Subscription<ConnectionEvent>;
}
