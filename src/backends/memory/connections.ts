/** Core's ConnectionStore in memory: the open links of clients, and the links that were lost a short time ago. */
import type { Clock } from '../../core/clock.ts';
import { endCauseAt, succession, type Connection, type DisconnectCause } from '../../core/connections/connection.ts';
import { matchesConnection, type ConnectionFilter } from '../../core/connections/filter.ts';
import type { ConnectionStore, ConnectRequest, ConnectResult, UserRow } from '../../core/connections/store.ts';
import { endedRow, openedRow } from '../../core/delivery/link-rows.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { ClientKey } from '../../core/ids.ts';
import { DEAD_MS } from '../../core/limits.ts';
import { scanSorted, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import { createRows, type ConnectionRow, type LinkEnded } from './connections-rows.ts';

export type MemoryConnectionsOptions = {
  readonly clock: Clock;
  /** Whether a node's lease is still valid. If it is absent, every node counts as alive. */
  readonly nodeAlive?: ((nodeId: string) => boolean) | undefined;
  /**
   * Called when a client's row is forgotten, and when another instance of the client takes the row over. Drops the data
   * that depends on the row.
   */
  readonly onGone?: ((key: ClientKey) => void) | undefined;
  /** Retains a row of a user's link history. */
  readonly retain?: ((row: NewMessage) => void) | undefined;
};

/** Core's ConnectionStore, with methods that answer in the same tick. */
export interface MemoryConnections extends ConnectionStore {
  /** Returns the client's row. Unlike the other reads, it forgets no expired rows. */
  peek(key: ClientKey): Connection | null;
  connect(request: ConnectRequest): ConnectResult;
  touch(key: ClientKey, epoch: number): Connection | null;
  advertise(key: ClientKey, epoch: number, actions: Connection['actions']): Connection | null;
  disconnect(key: ClientKey, epoch: number, cause: DisconnectCause, closeCode?: number | null): Connection | null;
  get(keys: readonly ClientKey[]): readonly (Connection | null)[];
  list(filter: ConnectionFilter, page: PageRequest): Scan<Connection>;
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): readonly { readonly total: number; readonly rows: readonly Connection[] }[];
  users(page: PageRequest): Scan<UserRow>;
}

/**
 * Creates the store of connections for one process. Rows are kept by user and client, in order, so that the cost of a
 * page depends on its length. Every method but `peek` first forgets the rows that have expired, so that no answer shows
 * or counts them.
 */
export function createMemoryConnections({
  clock,
  nodeAlive = () => true,
  onGone = () => {},
  retain = () => {},
}: MemoryConnectionsOptions): MemoryConnections {
  const onEnded: LinkEnded = (connection, end, endedAt) => retain(endedRow(connection, end, endedAt));
  const rows = createRows({ clock, nodeAlive, onForgotten: onGone, onEnded });
  let lastEpoch = 0;

  const connect = (request: ConnectRequest): ConnectResult => {
    const previous = rows.find(request)?.connection ?? null;
    const now = clock.now();
    const resumed = previous?.instanceId === request.instanceId;
    if (previous && !resumed) onGone(request);
    const { replacedInstanceId, replacedAt, predecessors } = succession(previous, request.instanceId, now);
    // All members are in one literal, because members that a spread adds would take more memory.
    const connection: Connection = {
      userId: request.userId,
      clientId: request.clientId,
      instanceId: request.instanceId,
      nodeId: request.nodeId,
      clientType: request.clientType,
      host: request.host,
      metadata: request.metadata,
      actions: request.actions,
      // All clients use one counter, so that a client gets no epoch twice even if its row was forgotten.
      epoch: ++lastEpoch,
      connectedAt: now,
      lastSeenAt: now,
      disconnectedAt: null,
      disconnectCause: null,
      closeCode: null,
      replacedInstanceId,
      replacedAt,
      predecessors,
    };
    if (previous?.disconnectedAt === null) {
      const cause = endCauseAt(previous, now);
      onEnded(previous, { cause, closeCode: null }, cause === 'heartbeat_lost' ? previous.lastSeenAt + DEAD_MS : now);
    }
    rows.put(connection);
    retain(openedRow(connection, previous));
    return { kind: !previous ? 'connected' : resumed ? 'resumed' : 'replaced', connection, previous };
  };

  /** Returns the row of a client if its link is up and has this epoch; otherwise null. */
  const up = (key: ClientKey, epoch: number): ConnectionRow | null => {
    const row = rows.find(key);
    return row?.lostAt === null && row.connection.epoch === epoch ? row : null;
  };

  return {
    connect,
    peek: rows.peek,
    touch(key, epoch) {
      const row = up(key, epoch);
      return row && rows.put({ ...row.connection, lastSeenAt: clock.now() });
    },
    advertise(key, epoch, actions) {
      const row = up(key, epoch);
      return row && rows.replace(row, { ...row.connection, actions });
    },
    disconnect(key, epoch, cause, closeCode = null) {
      const row = rows.find(key);
      if (!row || row.connection.epoch !== epoch) return null;
      return row.connection.disconnectedAt === null ? rows.lose(row, { cause, closeCode }) : row.connection;
    },
    get: (keys) => keys.map((key) => rows.find(key)?.connection ?? null),
    list(filter, page) {
      const now = clock.now();
      const keep = (connection: Connection): boolean => matchesConnection(filter, connection, now);
      return scanSorted(rows.from(filter.userId, page.after), page, positionOf, keep);
    },
    ofUsers: (userIds, first) => userIds.map((userId) => rows.first(userId, first)),
    users: (page) => scanSorted(rows.users(page.after), page, ({ userId }) => [userId]),
  };
}

function positionOf({ userId, clientId }: Connection): Position {
  return [userId, clientId];
}
