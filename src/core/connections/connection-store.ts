/** The port of connections: which link of each client is bound, and what the client advertises. */
import type { ClientKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { DEAD_MS, FORGET_MS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { WithGaps } from '../completeness.ts';
import type { DocumentReading } from '../document-reading.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { ConnectionFilter } from './connection-filter.ts';
import type { ClientType, ActionAdvertisement, Connection, DisconnectCause } from './connection.ts';

export type ConnectRequest = ClientKey & {
  readonly instanceId: string;
  readonly nodeId: string;
  readonly clientType: ClientType;
  /** Whether the link's token has the scope `host`. */
  readonly host: boolean;
  /** As in Connection. */
  readonly places?: boolean;
  readonly linkAttempt?: number | undefined;
  readonly helloAt?: number | undefined;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
};

/**
 * How a client connected. `resumed`: the same instance reconnected (or opened a second socket). `replaced`: another
 * instance was live or remembered.
 */
export type ConnectResult = {
  readonly kind: 'connected' | 'resumed' | 'replaced';
  readonly connection: Connection;
  readonly previous: Connection | null;
};

/** A user and the number of its connections. */
export type UserRow = { readonly userId: string; readonly count: number };

/**
 * Stores connections. The backend sets the times. A row is forgotten FORGET_MS after its link was lost. A row counts as
 * disconnected (`node_lost`) once its node's lease has run out. In every listing the position of a connection is its
 * user, then its client.
 */
export interface ConnectionStore {
  /**
   * Atomic. Binds the client to this instance and node under a new epoch, and replaces any earlier binding. Throws
   * `stale_instance`, and changes nothing, if the client's row is of a later hello (`isOlderHello`), whether
   * that link is up or not.
   */
  connect(request: ConnectRequest): MaybePromise<ConnectResult>;
  /** Atomic. Records a sign of life. Null if the epoch is not the current one or the link is down. */
  touch(key: ClientKey, epoch: number): MaybePromise<Connection | null>;
  /** Atomic. Replaces the advertisements. Null if the epoch is not the current one or the link is down. */
  advertise(key: ClientKey, epoch: number, actions: readonly ActionAdvertisement[]): MaybePromise<Connection | null>;
  /**
   * Atomic. Marks the link as down if the epoch is still the current one, so the close of an old socket never affects a
   * newer link. Idempotent. Returns null if the epoch is not current. Also returns null if the link's node had died and
   * the node that cleaned up after it has already marked the link as down; `NodeListener.linksLost` reports such a
   * link. `closeCode`: see `Connection`; default null.
   */
  disconnect(
    key: ClientKey,
    epoch: number,
    cause: DisconnectCause,
    closeCode?: number | null,
  ): MaybePromise<Connection | null>;
  /** Returns one connection per key, in the order of the keys; null where there is no row. Reads all keys together. */
  get(keys: readonly ClientKey[]): MaybePromise<readonly (Connection | null)[]>;
  /**
   * Returns a live connection as this process last saw it, without asking the store; null if it knows none. It may be
   * out of date, so an admission that relies on it passes it as `AdmitRequest.seen` and the store checks it. A store
   * whose `get` answers in the same tick does not have this method.
   */
  lastSeen?(key: ClientKey): Connection | null;
  /**
   * Lists connections in order of user and client. A page is cut after SCAN_BUDGET rows that do not match. With a
   * `reading`, rows are read once for a whole document.
   */
  list(filter: ConnectionFilter, page: PageRequest, reading?: DocumentReading): MaybePromise<Scan<Connection>>;
  /**
   * Returns for each user, in the order given, the first connections in order and the total number. Reads all users
   * together.
   */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly { readonly total: number; readonly rows: readonly Connection[] }[]>;
  /** Lists the users that have a row, with the number of their rows, in order of user. */
  users(page: PageRequest): MaybePromise<Scan<UserRow>>;
  /**
   * Returns the connections that are forgotten next, at most `first`: lost links, the one lost longest ago first, then
   * those that are up, the one that was silent for longest first. The links of a node that died may come later until
   * they are marked as lost.
   */
  quietest(first: number): MaybePromise<Leading<Connection>>;
}

/** The rows that lead by a measure. `complete`: whether every row was looked at. */
export type Leading<Row> = WithGaps & { readonly rows: readonly Row[]; readonly complete: boolean };

/** Compares connections for `ConnectionStore.quietest`. Equal ones are in order of user and client. */
export function compareQuiet(a: Connection, b: Connection): number {
  return forgottenAt(a) - forgottenAt(b) || compareClients(a, b);
}

/** Returns when a connection is forgotten unless its client is heard from again, in epoch milliseconds. */
function forgottenAt({ disconnectedAt, lastSeenAt }: Connection): number {
  return (disconnectedAt ?? lastSeenAt + DEAD_MS) + FORGET_MS;
}

/** Compares clients in order of user and client. */
export function compareClients(a: ClientKey, b: ClientKey): number {
  const [left, right] = a.userId === b.userId ? [a.clientId, b.clientId] : [a.userId, b.userId];
  return left < right ? -1 : left > right ? 1 : 0;
}
