/** Opens the Redis backend: connection, checks, namespace, clock and rooms. Its tests and `callboard.ts` begin here. */
import type { TicketStore } from '../../core/auth/principal.ts';
import type { Backend } from '../../core/backend.ts';
import { CallboardError } from '../../core/errors.ts';
import type { SpillStore } from '../../core/history/message.ts';
import { NODE_LEASE_MS } from '../../core/limits.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Metrics } from '../../core/metrics.ts';
import { silentLog, type Clock, type Log } from '../../core/ports.ts';
import type { Shares } from '../../core/shares/shares.ts';
import { createRedisAudit } from './audit.ts';
import { createRedisBus } from './bus.ts';
import { connectTo, createStoreClock, unavailable, type Client } from './client.ts';
import { describeTarget, readTarget, type RedisTarget } from './target.ts';
import { commandParts, type RedisParts } from './parts.ts';
import { createRedisCommands } from './commands/store.ts';
import { createRedisConnections, createRedisReconnects } from './connections.ts';
import { createRedisContexts } from './contexts.ts';
import { createRedisDedup } from './dedup.ts';
import { createRedisHistory } from './history.ts';
import { createRedisInspector } from './inspector.ts';
import { partitionOf } from './keys.ts';
import { createRedisNodes } from './nodes.ts';
import { loadPrograms } from './program/program.ts';
import {
  legacyFault,
  missingOfFirstNode,
  missingRights,
  readLegacyDepths,
  watchRights,
  type LegacyKeys,
  type RightsOptions,
} from './rights.ts';
import { sharesInUse } from './shares.ts';
import { createRedisSessions, createRedisSites } from './sites.ts';
import { createRedisSpill } from './spill.ts';
import { enterNamespace, proveDirectory, surveyRedis, type Durability } from './start-check.ts';
import { createStore, type Store } from './store.ts';
import { createRedisWaiters } from './waiters.ts';

/** The time, in milliseconds, within which the store must answer to count as ready. */
const READY_MS = 1_000;
/**
 * How long the first connection may take, milliseconds. Without this limit, connecting through sentinels would be tried
 * for ever.
 */
const OPEN_MS = 10_000;

/** A script that reads the time that acts use, from the Redis that has the key. */
const READ_TIME = `#!lua flags=no-writes
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
return string.format('%.0f', math.max(ms, tonumber(redis.call('HGET', KEYS[1], 'floor') or 0)))`;

/** A script that does nothing. It is declared as one that may write, so a Redis without memory refuses it. */
const MAY_GROW = '#!lua\nreturn 1';

export type RedisBackendOptions = {
  /** The address of Redis, in a form that `readTarget` accepts. */
  readonly url: string;
  readonly namespace: string;
  /** The number of partitions. It is fixed for a namespace. */
  readonly partitions: number;
  /** The durability that Redis must guarantee. Null accepts any that is better than `memory`. */
  readonly durability: Durability | null;
  readonly retentionMs: number;
  readonly streamMessages: number;
  readonly idempotencyWindowMs?: number | undefined;
  readonly scopeOf: (userId: string) => string;
  readonly sha256: (text: string) => string;
  /** A directory for large payloads that every node mounts; null if there is none. */
  readonly spillDir: string | null;
  /** The counters of what each user holds in this process. */
  readonly shares: Shares;
  readonly legacy: LegacyKeys;
  /** Whether to refuse the start if anything is left in the legacy keys. */
  readonly strictMigration: boolean;
  /** Timers of this machine. */
  readonly system: Clock;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
};

export type RedisBackend = {
  readonly backend: Backend;
  readonly store: Store;
  /** The clock of the deployment: for all times that are compared with times from the store. */
  readonly clock: Clock;
  /** The key that signs cursors. It is the same on every node. */
  readonly cursorKey: string;
  /** Keeps large payloads in Redis itself, for deployments without a shared directory. */
  readonly spill: SpillStore;
};

/**
 * Opens the store that several processes share. Throws `store_unavailable` if Redis cannot be reached. Throws
 * `invalid_argument` with every fault if Redis or the namespace does not fit these options. After an error nothing
 * stays open. Closing the backend closes everything.
 */
export async function openRedisBackend(options: RedisBackendOptions): Promise<RedisBackend> {
  const { log } = options;
  const target = readTarget(options.url);
  const start: { over: boolean; fault: Error | null } = { over: false, fault: null };
  // A failure before the store is open is reported once, by the error that is thrown.
  const warn: Log['warn'] = (...entry) => start.over && log.warn(...entry);
  const client = connectTo(target, 'commands', { ...silentLog, info: (...entry) => log.info(...entry), warn });
  client.on('error', (error: Error) => (start.fault = error));
  try {
    await within(options.system, OPEN_MS, [client.connect()]);
    const rights = { ...options, client, target };
    refuseMissing(await missingRights(rights));
    const survey = await surveyRedis(client, options.durability);
    const opened = await openOver(options, rights);
    log.info({ redis: describeTarget(target), ...survey, clockAheadMs: opened.aheadMs }, 'opened the shared store');
    start.over = true;
    return opened.redis;
  } catch (error) {
    client.disconnect();
    const refusal = unavailable(error);
    if (target.form === 'cluster' && refusal.code === 'store_unavailable')
      refuseMissing(await missingOfFirstNode({ ...options, target }, target));
    throw refusalOf(target, refusal, start.fault);
  }
}

/**
 * Returns the error with the address of the store and the last error of its connection. That error says more than the
 * error of the failed call.
 */
function refusalOf(target: RedisTarget, error: CallboardError, fault: Error | null): CallboardError {
  if (error.code !== 'store_unavailable') return error;
  const message = `Redis at ${describeTarget(target)} cannot be used.`;
  return new CallboardError(error.code, message, { ...error.details, cause: reasonIn(fault) ?? error.cause });
}

/** Returns the reason of a connection error. In a cluster, only the last error of a node has the reason. */
function reasonIn(fault: Error | null): Error | null {
  const last = fault && 'lastNodeError' in fault ? fault.lastNodeError : null;
  return last instanceof Error ? last : fault;
}

function refuseMissing(rights: readonly string[]): void {
  if (rights.length === 0) return;
  throw new CallboardError('invalid_argument', rights.map((text) => `REDIS_URL: ${text}`).join('\n'));
}

async function openOver(
  options: RedisBackendOptions,
  access: RightsOptions,
): Promise<{ readonly redis: RedisBackend; readonly aheadMs: number }> {
  const { log, system, legacy } = options;
  const { client } = access;
  const rights = watchRights({ ...access, system, log });
  const store = createStore({ ...options, client, programs: loadPrograms(), failed: rights.noticed });
  const { cursorKey } = await enterNamespace(store);
  if (options.spillDir !== null) await proveDirectory(store, options.spillDir);
  const depths = () => readLegacyDepths((commands) => store.read(commands), legacy);
  const fault = options.strictMigration ? legacyFault(await depths()) : null;
  if (fault !== null) throw new CallboardError('invalid_argument', fault);
  const read = async (): Promise<number> => Number(await client.eval(READ_TIME, 1, store.key(0, 'meta')));
  const clock = await createStoreClock({ read, system, log });
  const rooms = openRooms(options, store, clock);
  const close = async (): Promise<void> => {
    clock.stop();
    await rooms.close?.();
    client.disconnect();
  };
  const backend = {
    ...rooms,
    async ready() {
      // The rights are checked first, because the checks below may fail for lack of a right without saying which.
      await within(system, READY_MS, [rights.check()]);
      await within(system, READY_MS, [answers(store), hasRoom(client, store), rooms.ready?.()]);
    },
    close,
  };
  if (!isComplete(backend)) {
    await close();
    throw new CallboardError('internal', `The Redis backend has no ${missing(backend).join(', ')}.`);
  }
  const spill = createRedisSpill({ ...options, store, clock });
  const { inspector } = backend;
  const withLegacy = { ...inspector, summary: async () => ({ ...(await inspector.summary()), ...(await depths()) }) };
  const redis = { backend: { ...backend, inspector: withLegacy }, store, clock, cursorKey, spill };
  return { redis, aheadMs: clock.ahead() };
}

function openRooms(options: RedisBackendOptions, store: Store, clock: Clock): Partial<Backend> {
  const { url, log } = options;
  // A mailbox has a new connection for each attempt; its reader logs failures.
  const target = readTarget(url);
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
}

async function answers(store: Store): Promise<void> {
  await store.readAll((partition) => [['EXISTS', store.key(partition, 'meta')]]);
}

/** Fails if a master has no memory left; `within` then throws `store_full`. */
async function hasRoom(client: Client, store: Store): Promise<void> {
  const partitions = Array.from({ length: store.partitions }, (_, partition) => store.key(partition, 'meta'));
  await Promise.all(partitions.map((key) => client.eval(MAY_GROW, 1, key)));
}

/**
 * Waits for all of `work`. Throws `store_unavailable` if that takes longer than `ms`, or the first failure as
 * `unavailable` converts it.
 */
async function within(system: Clock, ms: number, work: readonly MaybePromise<void>[]): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = system.after(ms, () => reject(unavailable(new Error(`no answer in ${ms} ms`))));
  try {
    await Promise.race([Promise.all(work), late]);
  } catch (error) {
    throw unavailable(error);
  } finally {
    cancel();
  }
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
 * Creates the Redis store of each room of core (history, commands, …), all over the same store and settings. The bus
 * and the mailboxes open connections of their own.
 */
export function createRedisRooms(parts: RedisParts): Partial<Backend> {
  const { held, waits, transactions } = commandParts(parts);
  const nodes = createRedisNodes({ ...parts, held, waits, transactions });
  const connections = createRedisConnections({ ...parts, transactions });
  const bus = createRedisBus({ ...parts, read: async (key) => (await connections.get([key]))[0] ?? null });
  return {
    nodes,
    waiters: createRedisWaiters({ ...parts, held, waits, transactions }),
    capabilities: { shared: true, exactDedupCounters: true, cheapStreamSummaries: true },
    connections,
    reconnects: createRedisReconnects(parts),
    contexts: createRedisContexts(parts),
    commands: createRedisCommands({ ...parts, held, waits, transactions }),
    inspector: createRedisInspector(parts, connections.get),
    history: createRedisHistory({ ...parts, held, waits, transactions }),
    dedup: createRedisDedup(parts),
    sites: createRedisSites(parts),
    audit: createRedisAudit(parts),
    sessions: createRedisSessions(parts),
    tickets: createRedisTickets(parts),
    bus,
    sharesInUse: () => sharesInUse(parts.store),
    /** Resolves once this node receives the events of other nodes. Waits while Redis is unavailable. */
    ready: () => bus.ready(),
    async close() {
      // The bus closes last, because nodes publish events while they leave.
      await nodes.close();
      bus.close();
    },
  };
}

// Core's TicketStore over Redis: one key for each sign-in ticket that was used. The key expires with its ticket.

function createRedisTickets({ store }: { readonly store: Store }): TicketStore {
  return {
    take: async (ticketHash, ttlMs) =>
      (await store.act(partitionOf(ticketHash, store.partitions), 'auth-take-ticket', [ticketHash, ttlMs])) === 1,
  };
}
