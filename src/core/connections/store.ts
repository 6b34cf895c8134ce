import type { ClientKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { Maybe } from '../maybe.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { ActionAdvertisement, ClientType, Connection, ConnectionStatus, DisconnectCause } from './connection.ts';

export type ConnectRequest = ClientKey & {
  readonly instanceId: string;
  readonly nodeId: string;
  readonly clientType: ClientType;
  /** Whether the link's token held the scope `host`. */
  readonly host: boolean;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
};

/** `resumed`: the same instance came back (or took a second socket); `replaced`: another instance was live or remembered. */
export type ConnectResult = {
  readonly kind: 'connected' | 'resumed' | 'replaced';
  readonly connection: Connection;
  readonly previous: Connection | null;
};

export type ConnectionFilter = {
  readonly userId: string | null;
  readonly nodeId: string | null;
  readonly status: ConnectionStatus | null;
};

/** Position of a connection in every listing: its user, then its client. */
export type UserRow = { readonly userId: string; readonly count: number };

/**
 * Who is connected. The backend stamps the times. A row is forgotten FORGET_MS after its link was lost; a row whose node went silent
 * counts as disconnected (`node_lost`) once the node's lease ran out.
 */
export interface ConnectionStore {
  /** Atomic. Binds the client to this instance and node under a new epoch, whatever was bound before. */
  connect(request: ConnectRequest): Maybe<ConnectResult>;
  /** Atomic. Notes a sign of life; null when the epoch is not the present one or the link is down. */
  touch(key: ClientKey, epoch: number): Maybe<Connection | null>;
  /** Atomic. Replaces the advertisements; null as for `touch`. */
  advertise(key: ClientKey, epoch: number, actions: readonly ActionAdvertisement[]): Maybe<Connection | null>;
  /**
   * Atomic. Marks the link as down, only under this epoch: an old socket's close never takes down a newer link. Idempotent. Null also where
   * the others took the link's node for dead and marked it before: whoever did was told (`linksLost`).
   */
  disconnect(key: ClientKey, epoch: number, cause: DisconnectCause): Maybe<Connection | null>;
  /** One answer per key, in the order asked; null where there is no row. One round trip. */
  get(keys: readonly ClientKey[]): Maybe<readonly (Connection | null)[]>;
  /** In order of (user, client). */
  list(filter: ConnectionFilter, page: PageRequest): Maybe<Scan<Connection>>;
  /** Per user asked for: the first connections in order, and how many there are in all. One round trip. */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): Maybe<readonly { readonly total: number; readonly rows: readonly Connection[] }[]>;
  /** Users that have a row, with how many, in order of user. */
  users(page: PageRequest): Maybe<Scan<UserRow>>;
}
