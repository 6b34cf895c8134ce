/** Core's ConnectionStore in memory: the open links of clients, and the links that were lost a short time ago. */
import { endedRow, openedRow } from '../../core/commands/link-history.ts';
import { matchesConnection, type ConnectionFilter } from '../../core/connections/connection-filter.ts';
import {
  compareQuiet,
  type ConnectRequest,
  type ConnectResult,
  type ConnectionStore,
  type Leading,
  type UserRow,
} from '../../core/connections/connection-store.ts';
import {
  endCauseAt,
  succession,
  type ActionAdvertisement,
  type Connection,
  type DisconnectCause,
  type LinkEnd,
} from '../../core/connections/connection.ts';
import { isOlderHello, refuseOlderHello } from '../../core/connections/hello-order.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { ClientKey } from '../../core/ids.ts';
import { DEAD_MS, FORGET_MS } from '../../core/limits.ts';
import { scanSorted, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import type { Clock } from '../../core/ports.ts';
import { List, type ListItem } from './linked-list.ts';
import { createSortedMap, type SortedMap } from './sorted-map.ts';

const NO_ACTIONS: Connection['actions'] = [];

type MemoryConnectionsOptions = {
  readonly clock: Clock;
  /** Whether a node's lease is still valid. If the function is absent, every node counts as alive. */
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
  /**
   * Stores a connection as it was before a restart, replaces any earlier row, and makes later links get a higher epoch.
   */
  restore(connection: Connection): void;
  /** Makes every later link get an epoch above this one. */
  skipEpochs(upTo: number): void;
  readonly lastEpoch: number;
  /** Reads all connections in order of user and client, from after a position. */
  all(after: Position | null): IteratorObject<Connection>;
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
  quietest(first: number): Leading<Connection>;
}

/**
 * Creates the store of connections for one process. Rows are kept by user and client, in order, so that the cost of a
 * page depends on the rows that it reads. Every method but `peek` first forgets the rows that have expired, so that no
 * answer shows or counts them.
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
    if (isOlderHello(request, previous)) refuseOlderHello();
    const now = clock.now();
    const resumed = previous?.instanceId === request.instanceId;
    if (previous && !resumed) onGone(request);
    const { replacedInstanceId, replacedAt, predecessors } = succession(previous, request.instanceId, now);
    // All members are in one object literal, because members that a spread adds take more memory.
    const connection: Connection = {
      userId: request.userId,
      clientId: request.clientId,
      instanceId: request.instanceId,
      nodeId: request.nodeId,
      clientType: request.clientType,
      host: request.host,
      places: request.places === true,
      linkAttempt: request.linkAttempt,
      helloAt: request.helloAt,
      metadata: request.metadata,
      actions: sameActions(previous?.actions ?? NO_ACTIONS, request.actions),
      // All clients share one counter, so that a client whose row was forgotten never gets the same epoch again.
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
    restore(connection) {
      lastEpoch = Math.max(lastEpoch, connection.epoch);
      rows.restore(connection);
    },
    skipEpochs(upTo) {
      lastEpoch = Math.max(lastEpoch, upTo);
    },
    get lastEpoch() {
      return lastEpoch;
    },
    all: (after) => rows.from(null, after),
    touch(key, epoch) {
      const row = up(key, epoch);
      return row && rows.put({ ...row.connection, lastSeenAt: clock.now() });
    },
    advertise(key, epoch, actions) {
      const row = up(key, epoch);
      return row && rows.replace(row, { ...row.connection, actions: sameActions(row.connection.actions, actions) });
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
    quietest: (first) => ({ rows: rows.quietest(first), complete: true }),
  };
}

function positionOf({ userId, clientId }: Connection): Position {
  return [userId, clientId];
}

/**
 * Returns `before` if both lists advertise the same actions, otherwise `after`. So the list of a client that only
 * reconnected stays the same object.
 */
export function sameActions(before: Connection['actions'], after: Connection['actions']): Connection['actions'] {
  const isSame = before.length === after.length && after.every((action, index) => isSameAction(action, before[index]));
  return isSame ? before : after;
}

function isSameAction(a: ActionAdvertisement, b: ActionAdvertisement | undefined): boolean {
  if (b === undefined) return false;
  return (
    a.name === b.name &&
    a.summary === b.summary &&
    a.description === b.description &&
    a.version === b.version &&
    a.checksArguments === b.checksArguments &&
    a.schema === b.schema &&
    a.metadata === b.metadata &&
    JSON.stringify([a.guards, a.effects]) === JSON.stringify([b.guards, b.effects])
  );
}

// Holds the connection rows of direct mode in order, drops expired ones, and reads pages of them.

/**
 * A connection with its position in one of two lists. While the link is up, `lostAt` is null and `place` is a node of
 * the list of live rows, ordered by last sign of life. Afterwards `place` is a node of the list of lost rows, ordered
 * by the time of loss.
 */
type ConnectionRow = {
  readonly user: User;
  connection: Connection;
  lostAt: number | null;
  place: ListItem<ConnectionRow> | null;
};
/**
 * The rows of one user. `first` caches the last result of the method `first`; null if a row of the user has changed
 * since.
 */
type User = { readonly userId: string; readonly clients: SortedMap<ConnectionRow>; first: First | null };
type First = { readonly most: number; readonly rows: readonly Connection[]; readonly nodes: readonly string[] };

type RowsOptions = {
  readonly clock: Clock;
  readonly nodeAlive: (nodeId: string) => boolean;
  /** Called for each row that is forgotten. */
  readonly onForgotten: (key: ClientKey) => void;
  /**
   * Called once for each link whose end this store records. A link that was silent is recorded when its row is
   * forgotten, at the latest.
   */
  readonly onEnded: LinkEnded;
};

/** Receives the end of a link. `endedAt`: when the link ended, in epoch milliseconds. */
type LinkEnded = (connection: Connection, end: LinkEnd, endedAt: number) => void;

/**
 * Creates the rows of the connection store, ordered by user and client. `put` and every read except `peek` first forget
 * the rows that have expired.
 */
function createRows({ clock, nodeAlive, onForgotten, onEnded }: RowsOptions) {
  const users = createSortedMap<User>();
  const live = new List<ConnectionRow>();
  const lost = new List<ConnectionRow>();

  /**
   * Marks the link as down. A link that was silent for too long counts as down from DEAD_MS after its last sign of
   * life, and any other link from now on.
   */
  const lose = (row: ConnectionRow, end: LinkEnd): Connection => {
    const lostAt = row.lostAt ?? clock.now();
    if (row.lostAt === null) move(row, { from: live, to: lost, lostAt });
    onEnded(row.connection, end, lostAt);
    return replace(row, {
      ...row.connection,
      disconnectedAt: lostAt,
      disconnectCause: end.cause,
      closeCode: end.closeCode,
    });
  };
  const observe = (row: ConnectionRow): Connection =>
    row.lostAt !== null || nodeAlive(row.connection.nodeId)
      ? row.connection
      : lose(row, { cause: 'node_lost', closeCode: null });
  const forget = (): void => {
    for (const { connection, lostAt } of forgetDue({ users, live, lost }, clock.now())) {
      if (connection.disconnectedAt === null && lostAt !== null)
        onEnded(connection, { cause: 'heartbeat_lost', closeCode: null }, lostAt);
      onForgotten({ userId: connection.userId, clientId: connection.clientId });
    }
  };

  return {
    find(key: ClientKey): ConnectionRow | undefined {
      forget();
      const row = users.get(key.userId)?.clients.get(key.clientId);
      if (row) observe(row);
      return row;
    },
    /** Returns the client's connection, like `find`, but forgets no rows. Returns null for a row that has expired. */
    peek(key: ClientKey): Connection | null {
      const row = users.get(key.userId)?.clients.get(key.clientId);
      return row && forgottenAt(row) > clock.now() ? observe(row) : null;
    },
    /** Stores a link that has just shown a sign of life. Replaces the connection of the client's row, or adds a row. */
    put(connection: Connection): Connection {
      forget();
      const row = rowOf(users, connection);
      move(row, { from: row.lostAt === null ? live : lost, to: live, lostAt: null });
      return replace(row, connection);
    },
    replace,
    lose,
    restore(connection: Connection): void {
      const row = rowOf(users, connection);
      const lostAt = connection.disconnectedAt;
      move(row, { from: row.lostAt === null ? live : lost, to: lostAt === null ? live : lost, lostAt });
      replace(row, connection);
    },
    /** Reads the connections of one user, or of all if `userId` is null, ordered by (user, client). */
    *from(userId: string | null, after: Position | null): Generator<Connection> {
      forget();
      const [afterUser = null, afterClient = null] = after ?? [];
      const one = userId === null ? undefined : users.get(userId);
      for (const user of userId === null ? users.values({ from: afterUser }) : one ? [one] : []) {
        const start = user.userId === afterUser ? afterClient : null;
        for (const row of user.clients.values({ after: start })) yield observe(row);
      }
    },
    *users(after: Position | null): Generator<UserRow> {
      forget();
      for (const { userId, clients } of users.values({ after: after?.[0] ?? null })) {
        yield { userId, count: clients.size };
      }
    },
    /** Returns the connections that are forgotten next, in the order of `ConnectionStore.quietest`. */
    quietest(most: number): readonly Connection[] {
      forget();
      // The rows are read first, because `observe` may move a row from one list to the other.
      const found = [lost, live].flatMap((rows) => [...Iterator.from(rows).take(most)]);
      return found.map(observe).sort(compareQuiet).slice(0, most);
    },
    /**
     * Returns the first `most` connections of one user, and how many there are. Returns the same array as the last call
     * with the same `most`, unless since then a row of the user has changed or the node of one of these connections has
     * died.
     */
    first(userId: string, most: number): { readonly total: number; readonly rows: readonly Connection[] } {
      forget();
      const user = users.get(userId);
      if (!user) return { total: 0, rows: [] };
      const total = user.clients.size;
      const known = user.first;
      const enough = known !== null && known.most >= Math.min(most, total) && known.nodes.every(nodeAlive);
      const rows = enough ? known.rows : firstOf(user, most, observe);
      return { total, rows: rows.length > most ? rows.slice(0, most) : rows };
    },
  };
}

/** Replaces the connection of a row without counting this as a sign of life. */
function replace(row: ConnectionRow, connection: Connection): Connection {
  row.connection = connection;
  row.user.first = null;
  return connection;
}

function firstOf(user: User, most: number, observe: (row: ConnectionRow) => Connection): readonly Connection[] {
  const rows = [...user.clients.values().take(most)].map(observe);
  const nodes = new Set(rows.filter((row) => row.disconnectedAt === null).map(({ nodeId }) => nodeId));
  user.first = { most, rows, nodes: [...nodes] };
  return rows;
}

/** Returns the row of this connection's client, and creates it if there is none. */
function rowOf(users: SortedMap<User>, connection: Connection): ConnectionRow {
  const { userId, clientId } = connection;
  const user = users.get(userId) ?? { userId, clients: createSortedMap<ConnectionRow>(), first: null };
  const row = user.clients.get(clientId) ?? { user, connection, lostAt: null, place: null };
  users.set(userId, user);
  user.clients.set(clientId, row);
  return row;
}

type Move = { readonly from: List<ConnectionRow>; readonly to: List<ConnectionRow>; readonly lostAt: number | null };

function move(row: ConnectionRow, { from, to, lostAt }: Move): void {
  if (row.place) from.remove(row.place);
  row.lostAt = lostAt;
  row.place = to.push(row);
}

type RowIndexes = {
  readonly users: SortedMap<User>;
  readonly live: List<ConnectionRow>;
  readonly lost: List<ConnectionRow>;
};

/**
 * Forgets the rows that have expired, and returns them. A link that is silent but was never closed counts as lost
 * DEAD_MS after its last sign of life.
 */
function forgetDue({ users, live, lost }: RowIndexes, now: number): readonly ConnectionRow[] {
  const forgotten: ConnectionRow[] = [];
  for (let row = live.first?.value; row && silentSince(row) <= now; row = live.first?.value) {
    move(row, { from: live, to: lost, lostAt: silentSince(row) });
  }
  for (let head = lost.first; head && forgottenAt(head.value) <= now; head = lost.first) {
    lost.remove(head);
    const { user, connection } = head.value;
    user.clients.delete(connection.clientId);
    user.first = null;
    if (user.clients.size === 0) users.delete(connection.userId);
    forgotten.push(head.value);
  }
  return forgotten;
}

function silentSince({ connection }: ConnectionRow): number {
  return connection.lastSeenAt + DEAD_MS;
}

function forgottenAt(row: ConnectionRow): number {
  return (row.lostAt ?? silentSince(row)) + FORGET_MS;
}
