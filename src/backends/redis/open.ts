/**
 * Opens the Redis backend: connection, checks, namespace, clock and rooms. Its tests and `callboard.ts` begin here.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
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
import { partitionOf, rootOf } from './keys.ts';
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

// The checks at the start: that every Redis master is fit for a deployment (version, eviction, durability), that all
// nodes use the same directory for large payloads, and that the namespace has the schema and the partitions of this
// node.

/**
 * What happens to acknowledged writes if the machine of Redis fails. `memory`: all may be lost. `aof_everysec`: at most
 * those of the last second. `aof_always`: none.
 */
export type Durability = 'memory' | 'aof_everysec' | 'aof_always';

type Survey = {
  readonly version: string;
  readonly durability: Durability;
  /** False if a Redis does not say how it writes to disk. */
  readonly proven: boolean;
};

/** The settings that one Redis reports about itself; null for each that it does not report. */
type Reported = {
  readonly at: string;
  readonly version: string;
  readonly policy: string | null;
  readonly appendonly: boolean | null;
  readonly appendfsync: string | null;
};

const MAJOR = 7;
const RANK: Readonly<Record<Durability, number>> = { memory: 0, aof_everysec: 1, aof_always: 2 };

/**
 * Checks that every master of Redis is fit for a deployment: its version, that it never evicts keys, and that it is as
 * durable as declared. Throws one `invalid_argument` that names every fault, or `store_unavailable` if Redis cannot be
 * asked. Reads only.
 */
export async function surveyRedis(client: Client, declared: Durability | null): Promise<Survey> {
  const all = await Promise.all(mastersOf(client).map(ask)).catch((error: unknown) => {
    throw unavailable(error);
  });
  const [first] = all;
  if (!first) throw unavailable(new Error('no master of the cluster is known'));
  const faults = [...new Set(all.flatMap((reported) => faultsOf(reported, declared)))];
  if (faults.length > 0) throw new CallboardError('invalid_argument', faults.join('\n'));
  const found = all.map(durabilityOf);
  const proven = found.every((one) => one !== null);
  const least = found.flatMap((one) => one ?? []).reduce((a, b) => (RANK[a] < RANK[b] ? a : b), 'aof_always');
  // The deployment promises what was declared, even if Redis is more durable.
  return { version: first.version, durability: declared ?? least, proven };
}

function mastersOf(client: Client): readonly Redis[] {
  return 'nodes' in client ? client.nodes('master') : [client];
}

async function ask(redis: Redis): Promise<Reported> {
  const info = fieldsOf(await redis.info());
  const config = await configOf(redis);
  const appendonly = config?.get('appendonly') ?? null;
  return {
    at: `${redis.options.host}:${redis.options.port}`,
    version: info.get('redis_version') ?? '0',
    policy: config?.get('maxmemory-policy') ?? info.get('maxmemory_policy') ?? null,
    appendonly: appendonly === null ? flagOf(info.get('aof_enabled')) : appendonly === 'yes',
    appendfsync: config?.get('appendfsync') ?? null,
  };
}

/** Reads the settings of a Redis; null if it denies CONFIG, as hosted Redis services do. */
async function configOf(redis: Redis): Promise<ReadonlyMap<string, string> | null> {
  const found = new Map<string, string>();
  for (const name of ['maxmemory-policy', 'appendonly', 'appendfsync']) {
    try {
      const reply = await redis.call('CONFIG', 'GET', name);
      if (Array.isArray(reply) && typeof reply[1] === 'string') found.set(name, reply[1]);
    } catch (error) {
      // An error that Redis answered is a denial; an error of the connection is an outage.
      if (error instanceof Error && error.name === 'ReplyError') return null;
      throw error;
    }
  }
  return found;
}

function faultsOf(reported: Reported, declared: Durability | null): string[] {
  const faults: string[] = [];
  const { at, version, policy } = reported;
  if (Number.parseInt(version, 10) < MAJOR)
    faults.push(`REDIS_URL: Redis ${MAJOR}.0 or newer is needed; ${at} is ${version}`);
  if (policy === null)
    faults.push(`REDIS_URL: ${at} does not say its maxmemory-policy: let its user read INFO memory or CONFIG GET`);
  else if (policy !== 'noeviction')
    faults.push(
      `REDIS_URL: ${at} has maxmemory-policy ${policy}: it may drop commands and reservations; set it to noeviction`,
    );
  const fault = durabilityFault(reported, declared);
  return fault === null ? faults : [...faults, `DURABILITY: ${fault}`];
}

function durabilityFault(reported: Reported, declared: Durability | null): string | null {
  if (declared === 'memory') return null;
  const { at } = reported;
  const found = durabilityOf(reported);
  if (found === null) {
    if (declared !== null) return null;
    return `${at} does not say how it writes to disk: declare aof_everysec, aof_always or memory`;
  }
  if (found === 'memory')
    return `${at} keeps no append-only file that is synced: set appendonly yes and appendfsync everysec, or declare memory`;
  if (declared !== null && RANK[found] < RANK[declared]) return `${declared} was declared, but ${at} has ${found}`;
  return null;
}

/**
 * Returns the durability that the settings give; null if Redis does not report enough. A Redis with snapshots alone can
 * lose minutes of writes. One with `appendfsync no` can lose all that the operating system has not written. Both count
 * as `memory`.
 */
function durabilityOf({ appendonly, appendfsync }: Reported): Durability | null {
  if (appendonly === false || appendfsync === 'no') return 'memory';
  if (appendonly === null || appendfsync === null) return null;
  return appendfsync === 'always' ? 'aof_always' : 'aof_everysec';
}

function flagOf(text: string | undefined): boolean | null {
  return text === undefined ? null : text === '1';
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

// Checks that all nodes of a deployment use the same directory for large payloads.

const MARKER = '.callboard-directory';
/** The length of a UUID as text, in characters. */
const ID_CHARS = 36;

/**
 * Proves that the directory is the one that all nodes of the deployment mount: it has a marker file with an id that the
 * store knows. The first node creates the marker. Throws `invalid_argument` if it is another directory, or cannot be
 * written.
 */
export async function proveDirectory(store: Store, root: string): Promise<void> {
  const key = rootOf(store.namespace);
  const known = await store.read([['HGET', key, 'spill']]);
  const found = await markerOf(root, known[0] === null);
  if (found !== null) await store.read([['HSETNX', key, 'spill', found]]);
  const [expected] = await store.read([['HGET', key, 'spill']]);
  if (found === null || found !== expected)
    throw new CallboardError(
      'invalid_argument',
      'SPILL_DIR: this is not the directory that the other nodes of the deployment use: mount one on all of them',
    );
}

/**
 * Reads the id in the directory's marker; null if there is no marker. `create`: creates the marker if it is missing.
 */
async function markerOf(root: string, create: boolean): Promise<string | null> {
  const path = join(root, MARKER);
  try {
    if (create) {
      await mkdir(root, { recursive: true, mode: 0o700 });
      await createMarker(path);
    }
    const id = await readFile(path, 'utf8');
    return id.length === ID_CHARS ? id : null;
  } catch (error) {
    unlessCode('ENOENT')(error);
    return null;
  }
}

/**
 * Writes the marker under another name and then links it to its own, so that another node that starts at the same time
 * reads a whole id or none.
 */
async function createMarker(path: string): Promise<void> {
  const id = randomUUID();
  const draft = `${path}.${id}`;
  await writeFile(draft, id, { flag: 'wx', mode: 0o600 });
  try {
    await link(draft, path).catch(unlessCode('EEXIST'));
  } finally {
    await rm(draft, { force: true });
  }
}

function unlessCode(expected: string): (error: unknown) => void {
  return (error) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (code !== expected)
      throw new CallboardError('invalid_argument', `SPILL_DIR: the directory cannot be used (${code})`, {
        cause: error,
      });
  };
}

// Opens the namespace in Redis: schema, partitions, and the secret that signs cursors.

/** The version of the data in Redis. Every change that older nodes would misread increments it. */
export const SCHEMA = 10;

type Namespace = {
  /**
   * The secret that signs the cursors of the deployment. All nodes have the same, so each accepts the others' cursors.
   */
  readonly cursorKey: string;
};

/**
 * Opens the namespace. The first node sets its partitions and its schema, and every later node must have the same.
 * Throws `invalid_argument` if they differ, and then changes nothing.
 */
export async function enterNamespace(store: Store): Promise<Namespace> {
  const root = rootOf(store.namespace);
  const fixed = { schema: SCHEMA, partitions: store.partitions };
  const written = await hold(store, root, { ...fixed, cursor: secret() });
  check(store, written);
  const metas = Array.from({ length: store.partitions }, (_, partition) => store.key(partition, 'meta'));
  for (const meta of await Promise.all(metas.map((key) => hold(store, key, { ...fixed, store: secret() }))))
    check(store, meta);
  const { cursor } = written;
  if (!cursor) throw new CallboardError('internal', 'The namespace could not be read back.');
  return { cursorKey: cursor };
}

/** Sets the fields that are not set yet, and returns all of them. */
async function hold(
  store: Store,
  key: string,
  fields: Readonly<Record<string, string | number>>,
): Promise<Readonly<Record<string, string | null>>> {
  const names = Object.keys(fields);
  const set = Object.entries(fields).map(([name, value]) => ['HSETNX', key, name, value] as const);
  const replies = await store.read([...set, ['HMGET', key, ...names]]);
  const values = replies.at(-1);
  if (!Array.isArray(values)) throw new CallboardError('internal', 'Redis answered HMGET without a list.');
  return Object.fromEntries(names.map((name, i) => [name, typeof values[i] === 'string' ? values[i] : null]));
}

function check({ namespace, partitions }: Store, written: Readonly<Record<string, string | null>>): void {
  const faults: string[] = [];
  if (written['schema'] !== String(SCHEMA))
    faults.push(
      `NAMESPACE: the data of "${namespace}" has schema ${written['schema']}, this version needs schema ${SCHEMA}: choose another namespace`,
    );
  if (written['partitions'] !== String(partitions))
    faults.push(
      `PARTITIONS: the namespace "${namespace}" was created with ${written['partitions']}, not ${partitions}: partitions are fixed for a namespace`,
    );
  if (faults.length > 0) throw new CallboardError('invalid_argument', faults.join('\n'));
}

function secret(): string {
  return randomBytes(32).toString('base64url');
}
