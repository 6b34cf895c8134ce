/**
 * Core's ConnectionStore and ReconnectStore over Redis, with a cache of the connections that this process read last.
 */
import { BoundedMap } from '../../core/collections.ts';
import { matchesConnection, type ConnectionFilter } from '../../core/connections/connection-filter.ts';
import {
  type ConnectRequest,
  type ConnectResult,
  type Leading,
  type ConnectionStore,
  type UserRow,
  compareQuiet,
} from '../../core/connections/connection-store.ts';
import { compareReconnects, type ReconnectStore } from '../../core/connections/reconnects.ts';
import type { Connection, DisconnectCause } from '../../core/connections/connection.ts';
import { refuseOlderHello } from '../../core/connections/hello-order.ts';
import { LINK_STREAM } from '../../core/history/message.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { LINK_MESSAGES, RECONNECT_CLIENTS, RECONNECT_SLOT_MS, RECONNECT_SLOTS } from '../../core/limits.ts';
import { DocumentReading } from '../../core/document-reading.ts';
import type { PageRequest, Position, Scan } from '../../core/page.ts';
import { advertisementOf, revisionOf } from './connections-actions.ts';
import { asOf, decodeConnection, predecessorsOf } from './connections-rows.ts';
import { createLooker, leaseViewOf, partOf, type LeaseView, type Looker } from './connections-index.ts';
import { mergedMembers, scanPage, type Listing } from './connections-pages.ts';
import type { SeenQueue } from './commands/transaction-writes.ts';
import { streamHash } from './history-rows.ts';
import type { RedisDeps } from './deps.ts';
import { partitionsOf, scattered } from './store-partitions.ts';
import type { Store } from './store.ts';
import { listOf, numberOr, textOr, type Fields, type ReadCommand, type Reply, numbersOf } from './replies.ts';

type Context = { readonly store: Store; readonly looker: Looker; readonly rowsOf: ConnectionsOf };
type ConnectionsOf = (keys: readonly ClientKey[]) => Promise<readonly (Connection | null)[]>;

/**
 * Creates core's ConnectionStore over Redis. Once the lease of a node is over, its links are shown as lost, until the
 * node renews its lease or the reaper marks the links as down. A sign of life from the node itself is accepted even
 * then.
 */
export function createRedisConnections(deps: RedisDeps): ConnectionStore {
  const { store, transactions } = deps;
  const known = createConnectionCache();
  const rowsOf: ConnectionsOf = (keys) => getConnections({ store, known }, keys);
  const context = { store, looker: createLooker(store), rowsOf };
  const act = (name: string, key: ClientKey, args: readonly (string | number)[]) =>
    store.act(store.partitionOfUser(key.userId), name, [hashOf(store, key), ...args]);
  const connectionOf = (fields: Fields): Connection | null => known.note(decodeConnection(fields));
  /** Stores what an act found about the client's queue, which the next act moves. */
  const see = (key: ClientKey, [link, fields]: readonly Reply[], advertised: SeenQueue['advertised']): void =>
    void transactions?.remembered.seen.set(clientKeyText(key), {
      link: textOr(link) ?? '',
      fields: Number(fields),
      advertised,
    });
  return {
    async connect(request) {
      const answer = await act('connections-connect', request, connectArgs(deps, request));
      if (answer === null) refuseOlderHello();
      const reply = listOf(answer);
      const result = connected(request, reply);
      const { epoch, actions } = known.note(result.connection);
      see(request, reply.slice(6), [String(epoch), revisionOf(store, actions)]);
      return result;
    },
    async touch(key, epoch) {
      const before = known.of(key, epoch);
      // The reply is null if the link is not up. If this process knows the rest of the row (`before`), the reply is the
      // time of this sign of life; otherwise it is the whole row.
      const reply = await act('connections-touch', key, [epoch, before ? revisionOf(store, before.actions) : '']);
      if (typeof reply === 'string' && before) return known.note({ ...before, lastSeenAt: Number(reply) });
      if (reply === null) known.forget(key, epoch);
      return connectionOf(reply);
    },
    async advertise(key, epoch, actions) {
      const before = known.of(key, epoch);
      const advertised = [...advertisementOf(store, actions), before ? '1' : ''];
      // The reply has one of the three forms that `touch` gets.
      const reply = await act('connections-advertise', key, [epoch, ...advertised]);
      if (typeof reply !== 'string' || !before) return connectionOf(reply);
      return known.note({ ...before, actions, lastSeenAt: Number(reply) });
    },
    async disconnect(key, epoch, cause, closeCode = null) {
      known.forget(key, epoch);
      const [row = null, ...queue] = listOf(await act('connections-disconnect', key, [epoch, cause, closeCode ?? '']));
      if (row !== null) see(key, queue, ['', '']);
      return decodeConnection(row);
    },
    get: rowsOf,
    lastSeen: (key) => known.last(key),
    list: (filter, page, reading = new DocumentReading()) => list(context, filter, page, reading),
    ofUsers: (userIds, first) => ofUsers(context, userIds, first),
    users: (page) => users(context, page),
    quietest: (first) => quietest(context, first),
  };
}

function connectArgs(deps: RedisDeps, request: ConnectRequest): string[] {
  const { userId, clientId, instanceId, nodeId, clientType, host, places, linkAttempt, metadata, actions } = request;
  const reported = [host ? '1' : '', metadata ?? '', ...advertisementOf(deps.store, actions)];
  const last = [linksOf(deps, userId), places ? '1' : '', String(linkAttempt ?? '')];
  return [userId, clientId, instanceId, nodeId, clientType, ...reported, ...last];
}

/**
 * Returns the text that says in which stream and for how long a user's link history is kept (see lib-links in
 * connections.lua).
 */
function linksOf({ store, retentionMs, linkMessages = LINK_MESSAGES }: RedisDeps, userId: string): string {
  const stream = streamHash(store, { userId, suffix: LINK_STREAM });
  return [store.hash(userId), stream, retentionMs, linkMessages].join(' ');
}

/** Decodes the reply of `connections-connect`: a list with the members below. `before` is the previous row. */
function connected(request: ConnectRequest, reply: readonly Reply[]): ConnectResult {
  const [epoch, now, replacedInstanceId, replacedAt, before, predecessors] = reply;
  const previous = decodeConnection(before ?? null);
  const resumed = previous?.instanceId === request.instanceId;
  const connection: Connection = {
    userId: request.userId,
    clientId: request.clientId,
    instanceId: request.instanceId,
    nodeId: request.nodeId,
    clientType: request.clientType,
    host: request.host,
    places: request.places === true,
    linkAttempt: request.linkAttempt,
    metadata: request.metadata,
    actions: request.actions,
    epoch: Number(epoch),
    connectedAt: Number(now),
    lastSeenAt: Number(now),
    disconnectedAt: null,
    disconnectCause: null,
    closeCode: null,
    replacedInstanceId: textOr(replacedInstanceId),
    replacedAt: numberOr(replacedAt),
    predecessors: predecessorsOf(predecessors),
  };
  return { kind: !previous ? 'connected' : resumed ? 'resumed' : 'replaced', connection, previous };
}

function hashOf(store: Store, { userId, clientId }: ClientKey): string {
  return store.hash(userId, clientId);
}

/** Lists the first connections of several users. Reads the indexes, once in each partition, and then the rows. */
async function ofUsers({ store, looker, rowsOf }: Context, userIds: readonly string[], first: number) {
  const looks = userIds.map((userId) => {
    const part = { ...partOf('conns', { prefix: [userId], after: null }, first), counted: true };
    return looker.look(store.partitionOfUser(userId), part);
  });
  const looked = await Promise.all(looks);
  const keys = looked.map(({ members }, i) =>
    members.map((member) => ({ userId: userIds[i] ?? '', clientId: member.split('\0')[1] ?? '' })),
  );
  const found = await rowsOf(keys.flat());
  let at = 0;
  return looked.map(({ count }, i) => {
    const own = found.slice(at, (at += keys[i]?.length ?? 0));
    const rows = own.filter((row) => row !== null);
    return { total: count - (own.length - rows.length), rows };
  });
}

async function list(
  { store, looker, rowsOf }: Context,
  filter: ConnectionFilter,
  page: PageRequest,
  reading: DocumentReading,
): Promise<Scan<Connection>> {
  const { userId, ...others } = filter;
  type Row = { readonly connection: Connection; readonly now: number };
  const listing: Listing<Row> = {
    kind: 'conns',
    prefix: userId === null ? [] : [userId],
    partitions: partitionsOf(store, userId),
    plain: Object.values(others).every((value) => value === null),
    wanted: null,
    bytes: ({ connection }) => bytesOf(connection),
    async load(members) {
      const found = await rowsOf(
        members.map(({ position: [user = '', clientId = ''] }) => ({ userId: user, clientId })),
      );
      return members.map(({ leases }, i) => {
        const connection = found[i];
        return connection ? { connection, now: leases.now } : null;
      });
    },
    keep: ({ connection, now }) => matchesConnection(filter, connection, now),
  };
  const scan = await scanPage({ looker, listing, reading }, page);
  return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: row.connection, position })) };
}

/**
 * Estimates of the memory that a connection without metadata (`ROW_BYTES`) and one of its actions (`ACTION_BYTES`)
 * take.
 */
const ROW_BYTES = 500;
const ACTION_BYTES = 1000;

function bytesOf({ metadata, actions }: Connection): number {
  return ROW_BYTES + (metadata?.length ?? 0) + actions.length * ACTION_BYTES;
}

async function users({ store, looker }: Context, page: PageRequest): Promise<Scan<UserRow>> {
  const partitions = partitionsOf(store);
  const part = partOf('connusers', { prefix: [], after: page.after }, page.first + 1);
  const looks = await Promise.all(partitions.map((partition) => looker.look(partition, part)));
  const members = mergedMembers(looks, partitions);
  const shown = members.slice(0, page.first);
  const rows = await Promise.all(
    shown.map(async ({ position, partition }) => {
      const userId = position[0] ?? '';
      const { min, max } = partOf('conns', { prefix: [userId], after: null }, 0);
      const count = await looker.read(['ZLEXCOUNT', store.key(partition, 'conns'), min, max]);
      return { row: { userId, count: Number(count) }, position };
    }),
  );
  const next: Position | null = members.length > shown.length ? (shown.at(-1)?.position ?? null) : null;
  return { rows: rows.filter(({ row }) => row.count > 0), next, gaps: [] };
}

/** Reads the connections that will be forgotten next, from the index of the times at which rows are forgotten. */
async function quietest({ store, looker, rowsOf }: Context, first: number): Promise<Leading<Connection>> {
  // `look` first forgets the rows that are due, so that they are not among the results.
  const nothing = partOf('conns', { prefix: [], after: null }, 0);
  await Promise.all(partitionsOf(store).map((partition) => looker.look(partition, nothing)));
  const found = await store.readAll((partition) => [['ZRANGE', store.key(partition, 'conngone'), 0, first - 1]]);
  const names = found.flat().flatMap((members) => listOf(members).map(String));
  const rows = await rowsOf(names.map(clientOf));
  const kept = rows.filter((row) => row !== null).sort(compareQuiet);
  return { rows: kept.slice(0, first), complete: true };
}

// Reads the rows of clients by key.

/** The most rows that one act reads. Redis answers no other request while an act runs. */
const READ_BATCH = 64;

type GetDeps = {
  readonly store: Store;
  readonly known: ConnectionCache;
};

/**
 * Reads the current connections of clients, one answer per key, in order. Takes one round trip in each partition. Redis
 * sends only the values that this process does not know yet.
 */
function getConnections(deps: GetDeps, keys: readonly ClientKey[]): Promise<readonly (Connection | null)[]> {
  const { store, known } = deps;
  return scattered(store, keys, {
    most: READ_BATCH,
    async ask(partition, some) {
      const found = new Map<ClientKey, Connection | null>();
      // An act answers `later` for rows beyond the limit of bytes of one call; the next act reads them.
      for (let left = some; left.length > 0;) {
        const before = left.map((key) => known.last(key));
        const args = left.flatMap(({ userId, clientId }, i) => {
          const one = before[i];
          return [store.hash(userId, clientId), one ? one.epoch : '', one ? revisionOf(store, one.actions) : ''];
        });
        // `over`: the nodes whose lease has expired.
        const [now, over, ...rows] = listOf(await store.act(partition, 'connections-get', args));
        const leases = leaseViewOf(now, over);
        const later: ClientKey[] = [];
        left.forEach((key, i) => {
          const row = rows[i] ?? null;
          if (listOf(row)[0] === 'later') later.push(key);
          else found.set(key, read({ known, leases, before: before[i] ?? null }, row));
        });
        left = later;
      }
      return some.map((key) => found.get(key) ?? null);
    },
  });
}

type Reading = { readonly known: ConnectionCache; readonly leases: LeaseView; readonly before: Connection | null };

/**
 * Decodes the reply for one client. It is `['row', <row>]`, or `['same', ...]` with the values that may have changed if
 * `before` contains the rest. Any other reply means that there is no row.
 */
function read({ known, leases, before }: Reading, row: Reply): Connection | null {
  const [kind, ...rest] = listOf(row);
  if (kind === 'row') return asOf(known.note(decodeConnection(rest[0] ?? null)), leases);
  if (kind !== 'same') {
    if (before) known.forget(before, before.epoch);
    return null;
  }
  const [nodeId, lastSeenAt, disconnectedAt, disconnectCause, closeCode] = rest;
  const stamps = {
    nodeId: String(nodeId),
    lastSeenAt: Number(lastSeenAt),
    disconnectedAt: numberOr(disconnectedAt),
    disconnectCause: textOr(disconnectCause) as DisconnectCause | null,
    closeCode: numberOr(closeCode),
  };
  const now = asOf(before, leases, stamps);
  if (now?.disconnectedAt === null) return known.note(now);
  // The link is no longer up.
  if (before) known.forget(before, before.epoch);
  return now;
}

// A cache of the connections that this process read last, so that Redis need not send them again.

type ConnectionCache = ReturnType<typeof createConnectionCache>;

/** The most connections in the cache. It equals the default limit of links of a node. */
const CACHED_CONNECTIONS = 20_000;

/**
 * Creates an empty cache. Beyond CACHED_CONNECTIONS connections, the oldest are dropped. With the cache, the answer to
 * a sign of life need not repeat the advertised actions.
 */
function createConnectionCache() {
  const known = new BoundedMap<string, Connection>({ most: CACHED_CONNECTIONS });
  /** Returns the cached connection of this client; null if there is none. */
  const last = (key: ClientKey): Connection | null => known.get(clientKeyText(key)) ?? null;
  /** Returns the cached connection if it has this epoch; otherwise null. */
  const of = (key: ClientKey, epoch: number): Connection | null => {
    const connection = last(key);
    return connection?.epoch === epoch ? connection : null;
  };
  return {
    /** Caches a connection that is up. Returns its argument. */
    note<C extends Connection | null>(connection: C): C {
      if (connection === null || connection.disconnectedAt !== null) return connection;
      known.set(clientKeyText(connection), connection);
      return connection;
    },
    last,
    of,
    forget(key: ClientKey, epoch: number): void {
      if (of(key, epoch)) known.delete(clientKeyText(key));
    },
  };
}

/** The most clients whose counts one command reads. */
const COUNT_BATCH = 100;
/** The most clients that are read from each slot. */
const LEADERS = 200;

type ReconnectDeps = Pick<RedisDeps, 'store' | 'clock'>;

/** Creates core's ReconnectStore over Redis. Each client is counted in the partition of its user. */
export function createRedisReconnects(deps: ReconnectDeps): ReconnectStore {
  const { store } = deps;
  const counts = (clients: readonly ClientKey[]): Promise<readonly number[]> =>
    scattered(store, clients, {
      most: COUNT_BATCH,
      async ask(partition, some) {
        const names = some.map(({ userId, clientId }) => `${userId}\0${clientId}`);
        const slots = await store.read(slotsOf(deps, partition).map((slot) => ['ZMSCORE', slot, ...names]));
        return names.map((_, i) => slots.reduce((sum: number, scores) => sum + Number(listOf(scores)[i] ?? 0), 0));
      },
    });
  return {
    async note({ userId, clientId }, again) {
      const args = [userId, clientId, again ? '1' : null, RECONNECT_CLIENTS, RECONNECT_SLOT_MS, RECONNECT_SLOTS];
      await store.act(store.partitionOfUser(userId), 'connections-note-reconnect', args);
    },
    counts,
    async top(first) {
      const led = await Promise.all(partitionsOf(store).map((partition) => leadersIn(deps, partition)));
      const clients = led.flatMap(({ names }) => names).map(clientOf);
      const reconnects = await counts(clients);
      const rows = clients.map((client, i) => ({ ...client, reconnects: reconnects[i] ?? 0 })).sort(compareReconnects);
      return { rows: rows.slice(0, first), complete: led.every(({ complete }) => complete) };
    },
  };
}

/** Returns the keys of the slots of the last hour in a partition. */
function slotsOf({ store, clock }: ReconnectDeps, partition: number): readonly string[] {
  const now = clock.now();
  const began = now - (now % RECONNECT_SLOT_MS);
  return Array.from({ length: RECONNECT_SLOTS }, (_, i) =>
    store.key(partition, 'reconnects', String(began - i * RECONNECT_SLOT_MS)),
  );
}

/**
 * Finds the clients of a partition that reconnected most often in one of the slots. `complete`: whether these are all
 * clients that reconnected.
 */
async function leadersIn(deps: ReconnectDeps, partition: number) {
  const replies = await deps.store.read(
    slotsOf(deps, partition).flatMap((slot): ReadCommand[] => [
      ['ZCARD', slot],
      ['ZCOUNT', slot, '(0', '+inf'],
      ['ZREVRANGE', slot, 0, LEADERS - 1, 'WITHSCORES'],
    ]),
  );
  const names = new Set<string>();
  let complete = true;
  for (let i = 0; i < replies.length; i += 3) {
    const [clients, counted, leaders] = replies.slice(i, i + 3);
    if (Number(clients) >= RECONNECT_CLIENTS || Number(counted) > LEADERS) complete = false;
    for (const [name, reconnects] of numbersOf(leaders)) if (reconnects > 0) names.add(name);
  }
  return { names: [...names], complete };
}

function clientOf(name: string): ClientKey {
  const [userId = '', clientId = ''] = name.split('\0');
  return { userId, clientId };
}
