/** The storage port of connections: the link to which each client is bound, and what the client advertises. */
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
  /** See the members of `Connection`. */
  readonly places?: boolean;
  readonly linkAttempt?: number | undefined;
  readonly helloAt?: number | undefined;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
};

/**
 * How a client connected. `connected`: it had no row. `resumed`: the same instance has connected again, or opened a
 * second socket. `replaced`: the row was that of another instance, connected or not.
 */
export type ConnectResult = {
  readonly kind: 'connected' | 'resumed' | 'replaced';
  readonly connection: Connection;
  readonly previous: Connection | null;
};

/** A user and the number of its connections. */
export type UserRow = { readonly userId: string; readonly count: number };

/**
 * Stores connections. The backend sets the times. A row is deleted FORGET_MS after its link was lost. When the lease of
 * a node has run out, the rows of its links count as disconnected (`node_lost`). In every listing the position of a row
 * is its user and then its client.
 */
export interface ConnectionStore {
  /**
   * Atomic. Binds the client to this instance and node under a new epoch, and replaces any earlier binding. If the
   * client's row belongs to a later hello (`isOlderHello`), throws `stale_instance` and changes nothing, whether that
   * link is still open or not.
   */
  connect(request: ConnectRequest): MaybePromise<ConnectResult>;
  /** Atomic. Records a sign of life. Null if the epoch is not the current one, or if the link is down. */
  touch(key: ClientKey, epoch: number): MaybePromise<Connection | null>;
  /** Atomic. Replaces the advertised actions. Null if the epoch is not the current one, or if the link is down. */
  advertise(key: ClientKey, epoch: number, actions: readonly ActionAdvertisement[]): MaybePromise<Connection | null>;
  /**
   * Atomic. Marks the link as down, if the epoch is still the current one. So the late close of an old socket never
   * affects a newer link. Idempotent. Returns null if the epoch is not the current one. Returns null as well if the
   * link's node had died and another node has already marked the link as down while cleaning up;
   * `NodeListener.linksLost` reports such links. `closeCode`: see `Connection`; default null.
   */
  disconnect(
    key: ClientKey,
    epoch: number,
    cause: DisconnectCause,
    closeCode?: number | null,
  ): MaybePromise<Connection | null>;
  /** Returns one connection per key, in the order of the keys; null if there is no row. Reads all keys together. */
  get(keys: readonly ClientKey[]): MaybePromise<readonly (Connection | null)[]>;
  /**
   * Returns a connected client's row as this process last saw it, without asking the store; null if this process has
   * seen none. The row may be out of date. An admission that uses it passes it as `AdmitRequest.seen`, so that the
   * store checks it. Absent if the store's `get` answers in the same tick.
   */
  lastSeen?(key: ClientKey): Connection | null;
  /**
   * Lists connections, ordered by user and client. A page ends after SCAN_BUDGET rows that do not match. With a
   * `reading`, each row is read once for a whole document.
   */
  list(filter: ConnectionFilter, page: PageRequest, reading?: DocumentReading): MaybePromise<Scan<Connection>>;
  /**
   * Returns for each user, in the given order, the first connections and the total number. Reads all users together.
   */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly { readonly total: number; readonly rows: readonly Connection[] }[]>;
  /** Lists the users that have a row, with the number of their rows, ordered by user. */
  users(page: PageRequest): MaybePromise<Scan<UserRow>>;
  /**
   * Returns the connections that will be forgotten next, at most `first`: first those whose link was lost, by the time
   * of the loss, then those whose link is open, by the time of the last sign of life. Links of a dead node may come
   * later in this order until they are marked as lost.
   */
  quietest(first: number): MaybePromise<Leading<Connection>>;
}

/** The rows with the highest values of a measure. `complete`: whether all rows were compared. */
export type Leading<Row> = WithGaps & { readonly rows: readonly Row[]; readonly complete: boolean };

/** Compares connections for the order of `ConnectionStore.quietest`. Equal ones are ordered by user and client. */
export function compareQuiet(a: Connection, b: Connection): number {
  return forgottenAt(a) - forgottenAt(b) || compareClients(a, b);
}

/** Returns when a connection will be forgotten if its client does not reappear, in epoch milliseconds. */
function forgottenAt({ disconnectedAt, lastSeenAt }: Connection): number {
  return (disconnectedAt ?? lastSeenAt + DEAD_MS) + FORGET_MS;
}

/** Compares clients in order of user and client. */
export function compareClients(a: ClientKey, b: ClientKey): number {
  const [left, right] = a.userId === b.userId ? [a.clientId, b.clientId] : [a.userId, b.userId];
  return left < right ? -1 : left > right ? 1 : 0;
}
