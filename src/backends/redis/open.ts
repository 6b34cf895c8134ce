/** Opens the Redis backend for `callboard.ts` and for tests: connection, checks, namespace, clock and stores. */
import type { Backend } from '../../core/backend.ts';
import { CallboardError, fail } from '../../core/errors.ts';
import type { SpillStore } from '../../core/history/message.ts';
import { NODE_LEASE_MS } from '../../core/limits.ts';
import type { Metrics } from '../../core/metrics.ts';
import { NO_PAUSES } from '../../core/pauses/pause.ts';
import { silentLog, type Clock, type Log } from '../../core/ports.ts';
import type { DeviceStore } from '../../core/devices/device.ts';
import type { RevocationStore } from '../../core/revocations/revocation.ts';
import type { Shares } from '../../core/shares/shares.ts';
import { createRedisAudit } from './audit.ts';
import { createRedisBus } from './bus.ts';
import {
  connectTo,
  unavailable,
  type Client,
  type ConnectTarget,
  type FindNode,
  type Purpose,
  type RedisCertificates,
} from './client.ts';
import { createRedisCommands } from './commands/store.ts';
import { createRedisConnections, createRedisReconnects } from './connections.ts';
import { createRedisContexts } from './contexts.ts';
import { createRedisDedup } from './dedup.ts';
import { createRedisHistory } from './history.ts';
import { createRedisInspector } from './inspector.ts';
import { legacyFault, readLegacyDepths, type LegacyKeys } from './legacy.ts';
import { enterNamespace } from './namespace.ts';
import { createRedisNodes } from './nodes.ts';
import { connected, noteFaults, refusalOf, requireDatabase, withReason, within } from './open-connection.ts';
import { commandDeps, type RedisDeps } from './deps.ts';
import { loadPrograms } from './program/program.ts';
import type { RightsOptions } from './rights-commands.ts';
import { watchRights } from './rights-watch.ts';
import { missingOfFirstNode, missingRights } from './rights.ts';
import { sharesInUse } from './shares.ts';
import { createRedisSessions } from './sites-sessions.ts';
import { createRedisSites } from './sites.ts';
import { proveDirectory } from './spill-directory.ts';
import { createRedisSpill } from './spill.ts';
import { createStoreClock } from './store-clock.ts';
import { createStore, type Store } from './store.ts';
import { surveyRedis, watchSurvey, type Durability } from './survey.ts';
import { describeTarget, readTarget, replaceLogin } from './target.ts';
import { createRedisTickets } from './tickets.ts';
import { createRedisWaiters } from './waiters.ts';

/** The time, in milliseconds, within which the store must answer to count as ready. */
const READY_MS = 1_000;

/** A script that returns the time that acts use, read from the Redis that holds the key. */
const READ_TIME = `#!lua flags=no-writes
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
return string.format('%.0f', math.max(ms, tonumber(redis.call('HGET', KEYS[1], 'floor') or 0)))`;

/** A script that does nothing. Without flags Redis assumes that it writes, and refuses it if no memory is left. */
const MAY_GROW = '#!lua\nreturn 1';

export type RedisBackendOptions = {
  /** The address of Redis, in a form that `readTarget` accepts. */
  readonly url: string;
  /** The certificates for TLS. By default, the authorities that Node trusts. */
  readonly certificates?: RedisCertificates | undefined;
  readonly namespace: string;
  /** The number of partitions, which never changes for a namespace. */
  readonly partitions: number;
  /** The durability that Redis must guarantee. Null: any durability better than `memory`. */
  readonly durability: Durability | null;
  readonly retentionMs: number;
  readonly streamMessages: number;
  readonly idempotencyWindowMs?: number | undefined;
  readonly scopeOf: (userId: string) => string;
  readonly sha256: (text: string) => string;
  /** A directory for large payloads that all nodes mount; null if there is none. */
  readonly spillDir: string | null;
  /** The amounts of shares that each user holds in this process. */
  readonly shares: Shares;
  readonly legacy: LegacyKeys;
  /** Whether the start is refused if any commands are left in the legacy keys. */
  readonly strictMigration: boolean;
  /** The timers of this machine. */
  readonly system: Clock;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
};

/** An open connection to Redis, with the objects that all stores over it share. */
export type OpenRedis = Pick<Backend, 'ready' | 'close'> & {
  readonly store: Store;
  /** The clock of the deployment, for all times that are compared with times from the store. */
  readonly clock: Clock;
  /** The key that signs cursors, the same on every node. */
  readonly cursorKey: string;
  /** Stores large payloads in Redis itself, for deployments without a shared directory. */
  readonly spill: SpillStore;
  /** Adds the numbers of commands in the legacy keys to the summaries of an inspector. */
  withLegacyDepths(inspector: Backend['inspector']): Backend['inspector'];
  /** Creates another client of this Redis, which is not connected yet. `findNode`: see `connectTo`. */
  connect(purpose: Purpose, findNode?: FindNode): Client;
  /**
   * Uses the login of this address for all later connections. Returns false, and changes nothing, if the address
   * differs in anything else.
   */
  replaceLogin(url: string): boolean;
};

export type RedisBackend = Omit<OpenRedis, 'ready' | 'close'> & { readonly backend: Backend };

/** Opens Redis and its stores for deployments in which Redis decides acts. Closing the backend closes everything. */
export async function openRedisBackend(options: RedisBackendOptions): Promise<RedisBackend> {
  const { ready, close, rooms, ...redis } = await openWith({ options, store: 'redis', open: openRooms });
  const backend = { ...rooms, ready, close };
  if (!isComplete(backend)) {
    await close();
    throw new CallboardError('internal', `The Redis backend has no ${missing(backend).join(', ')}.`);
  }
  return { ...redis, backend: { ...backend, inspector: redis.withLegacyDepths(backend.inspector) } };
}

/**
 * Opens Redis for relays that own partitions. Throws `store_unavailable` if Redis cannot be reached. Throws
 * `invalid_argument`, with all faults, if Redis or the namespace does not fit the options. After an error, everything
 * is closed again. `close` closes everything except the clients that `connect` created.
 */
export async function openRedis(options: RedisBackendOptions): Promise<OpenRedis> {
  const { rooms: _, ...redis } = await openWith({ options, store: 'owned', open: () => ({}) });
  return redis;
}

/** Opens the stores whose `ready` and `close` are called with those of Redis. */
type OpenRooms = (options: RoomsOptions, store: Store, clock: Clock) => Partial<Backend>;
type RoomsOptions = RedisBackendOptions & { readonly target: ConnectTarget };

type Opening = Pick<RightsOptions, 'store'> & { readonly options: RedisBackendOptions; readonly open: OpenRooms };

async function openWith({ options, store, open }: Opening): Promise<OpenRedis & { readonly rooms: Partial<Backend> }> {
  const { log } = options;
  const address = readTarget(options.url);
  const target = { ...address, certificates: options.certificates };
  const start: { over: boolean; fault: Error | null } = { over: false, fault: null };
  // Until the store is open, failures are not logged, because the thrown error reports them.
  const warn: Log['warn'] = (...entry) => start.over && log.warn(...entry);
  const client = connectTo(target, 'commands', { ...silentLog, info: (...entry) => log.info(...entry), warn });
  noteFaults(client, start);
  try {
    await connected(client, options, target);
    await requireDatabase(client, target);
    const rights = { ...options, store, client, target, fault: () => start.fault };
    refuseMissing(await missingRights(rights));
    const survey = await surveyRedis(client, options.durability);
    const opened = await openOver(options, rights, open);
    log.info({ redis: describeTarget(target), ...survey, clockAheadMs: opened.aheadMs }, 'opened the shared store');
    start.over = true;
    const connect: OpenRedis['connect'] = (purpose, findNode) => connectTo(target, purpose, log, { findNode });
    return { ...opened.redis, connect, replaceLogin: (url) => replaceLogin(address, readTarget(url)) };
  } catch (error) {
    client.disconnect();
    const refusal = unavailable(error);
    if (target.form === 'cluster' && refusal.code === 'store_unavailable')
      refuseMissing(await missingOfFirstNode({ ...options, store, target }, target));
    throw await refusalOf(target, refusal, start.fault);
  }
}

function refuseMissing(rights: readonly string[]): void {
  if (rights.length === 0) return;
  throw new CallboardError('invalid_argument', rights.map((text) => `REDIS_URL: ${text}`).join('\n'));
}

type OpenedOver = Omit<OpenRedis, 'replaceLogin' | 'connect'> & { readonly rooms: Partial<Backend> };

async function openOver(
  options: RedisBackendOptions,
  access: RightsOptions & { readonly fault: () => Error | null },
  open: OpenRooms,
): Promise<{ readonly redis: OpenedOver; readonly aheadMs: number }> {
  const { log, system, legacy } = options;
  const { client, target } = access;
  const rights = watchRights({ ...access, system, log });
  const store = createStore({ ...options, client, programs: loadPrograms(), failed: rights.noticed });
  const { cursorKey } = await enterNamespace(store, access.store ?? 'redis');
  if (options.spillDir !== null) await proveDirectory(store, options.spillDir);
  const depths = () => readLegacyDepths((commands) => store.read(commands), legacy);
  const fault = options.strictMigration ? legacyFault(await depths()) : null;
  if (fault !== null) throw new CallboardError('invalid_argument', fault);
  const read = async (): Promise<number> => Number(await client.eval(READ_TIME, 1, store.key(0, 'meta')));
  const clock = await createStoreClock({ read, system, log });
  const rooms = open({ ...options, target }, store, clock);
  const stopSurvey = watchSurvey({ client, declared: options.durability, system, log });
  const redis: OpenedOver = {
    ...{ rooms, store, clock, cursorKey },
    spill: createRedisSpill({ ...options, store, clock }),
    withLegacyDepths: (inspector) => ({
      ...inspector,
      summary: async () => ({ ...(await inspector.summary()), ...(await depths()) }),
    }),
    async ready() {
      // The rights are checked first, because the checks below may fail for lack of a right without naming it.
      try {
        await within(system, READY_MS, [rights.check()]);
        await within(system, READY_MS, [answers(store), hasRoom(client, store), rooms.ready?.()]);
      } catch (error) {
        throw withReason(error, access.fault());
      }
    },
    async close() {
      stopSurvey();
      clock.stop();
      await rooms.close?.();
      client.disconnect();
    },
  };
  return { redis, aheadMs: clock.ahead() };
}

const openRooms: OpenRooms = (options, store, clock) => {
  const { log, target } = options;
  // A mailbox opens a new connection for each attempt, so its reader logs the failures once.
  const connect = (purpose: 'mailbox' | 'bus'): Client =>
    connectTo(target, purpose, purpose === 'mailbox' ? silentLog : log);
  return createRedisRooms({
    ...options,
    bounds: options.shares.bounds,
    store,
    clock,
    connect,
    oneServer: target.form !== 'cluster',
    leaseMs: NODE_LEASE_MS,
  });
};

async function answers(store: Store): Promise<void> {
  await store.readAll((partition) => [['EXISTS', store.key(partition, 'meta')]]);
}

/** Fails if some master has no memory left. `within` then throws `store_full`. */
async function hasRoom(client: Client, store: Store): Promise<void> {
  const partitions = Array.from({ length: store.partitions }, (_, partition) => store.key(partition, 'meta'));
  await Promise.all(partitions.map((key) => client.eval(MAY_GROW, 1, key)));
}

const PORTS = [
  ...(['capabilities', 'connections', 'contexts', 'commands', 'waiters', 'nodes', 'inspector', 'history'] as const),
  ...(['dedup', 'sites', 'sessions', 'audit', 'bus', 'ready', 'close'] as const),
] satisfies readonly (keyof Backend)[];

function missing(rooms: Partial<Backend>): readonly string[] {
  return PORTS.filter((port) => rooms[port] === undefined);
}

function isComplete(rooms: Partial<Backend>): rooms is Backend {
  return missing(rooms).length === 0;
}

/**
 * Creates the Redis store of each room of core (history, commands, …), over one common store and settings. The bus and
 * the mailboxes open their own connections.
 */
export function createRedisRooms(deps: RedisDeps): Partial<Backend> {
  const { held, waits, transactions } = commandDeps(deps);
  const nodes = createRedisNodes({ ...deps, held, waits, transactions });
  const connections = createRedisConnections({ ...deps, transactions });
  const bus = createRedisBus({ ...deps, read: async (key) => (await connections.get([key]))[0] ?? null });
  return {
    nodes,
    waiters: createRedisWaiters({ ...deps, held, waits, transactions }),
    capabilities: { shared: true, allWaits: false, exactDedupCounters: true, cheapStreamSummaries: true },
    connections,
    reconnects: createRedisReconnects(deps),
    contexts: createRedisContexts(deps),
    commands: createRedisCommands({ ...deps, held, waits, transactions }),
    inspector: createRedisInspector(deps, connections.get),
    history: createRedisHistory({ ...deps, held, waits, transactions }),
    dedup: createRedisDedup(deps),
    sites: createRedisSites(deps),
    audit: createRedisAudit(deps),
    pauses: NO_PAUSES,
    sessions: createRedisSessions(deps),
    tickets: createRedisTickets(deps),
    revocations: NO_REVOCATIONS,
    devices: NO_DEVICES,
    bus,
    sharesInUse: () => sharesInUse(deps.store),
    /** Resolves once this node receives the events of other nodes. Waits while Redis is unavailable. */
    ready: () => bus.ready(),
    async close() {
      // The bus closes last, because nodes publish events while they leave.
      await nodes.close();
      bus.close();
    },
  };
}

/** The answers of this store for revocations, which it does not support. */
const NO_REVOCATIONS: RevocationStore = {
  add: () => fail('not_supported', 'This store keeps no revocations: use STORE=owned, or replace SECRET.'),
  after: () => [],
};

/** The answers of this store for devices, which it does not support. */
const noDevices = (): never => fail('not_supported', 'This store keeps no devices: use STORE=owned.');
const NO_DEVICES: DeviceStore = {
  ...{ begin: noDevices, find: noDevices, decide: noDevices, ofKey: noDevices, use: noDevices },
  ...{ get: noDevices, rename: noDevices, remove: noDevices },
  list: () => ({ rows: [], next: null, gaps: [] }),
};
