/**
 * Opens connections to Redis with our timeouts and retries, and logs when one is lost and when it is back. Only this
 * file configures ioredis.
 */
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { Log } from '../../core/log.ts';
import type { Login, RedisTarget } from './target.ts';
import type { Client } from './types.ts';

/**
 * What a connection is used for. `mailbox`: blocking reads. `bus`: subscriptions. `commands`: everything else. A
 * connection that blocks or subscribes can do nothing else, so each purpose has a connection of its own.
 */
export type Purpose = 'commands' | 'mailbox' | 'bus';

/**
 * The time, in milliseconds, after which an unanswered command fails. It may have run. Without this bound ioredis may
 * wait for ever.
 */
const COMMAND_MS = 2_000;
/**
 * The longest time that a blocking read may take, milliseconds. It is a little more than the read's BLOCK, so that a
 * connection that hangs is noticed soon.
 */
const BLOCKED_MS = 4_000;
/**
 * The time, in milliseconds, after which a connection that does not answer is replaced: its other end may be gone
 * without having closed it.
 */
const SILENT_MS = { commands: 3_000, bus: 3_000, mailbox: BLOCKED_MS } as const;
const CONNECT_MS = 5_000;
const RETRY_MS = 1_000;
/**
 * The time between two readings of a cluster's map of slots, milliseconds. Slots may move to another master without an
 * error that shows it.
 */
const SLOTS_MS = 5_000;

/** The options of ioredis without `replyMapping`, which its overloads do not accept. */
type Options = Omit<RedisOptions, 'replyMapping'>;

const retry = (attempt: number): number => Math.min(RETRY_MS, 50 * attempt);

/**
 * Creates a connection, which `connect` opens. While Redis is away, commands fail at once, and the connection
 * reconnects by itself. No command is sent twice. Each outage is logged once.
 */
export function connectTo(target: RedisTarget, purpose: Purpose, log: Log): Client {
  return watched(target.form === 'cluster' ? clusterOf(target, purpose) : redisOf(target, purpose), purpose, log);
}

function common(login: Login, tls: boolean, purpose: Purpose): Options {
  return {
    ...(login.username !== null && { username: login.username }),
    ...(login.password !== null && { password: login.password }),
    ...(tls && { tls: {} }),
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    connectionName: `callboard-${purpose}`,
    socketTimeout: SILENT_MS[purpose],
    commandTimeout: purpose === 'mailbox' ? BLOCKED_MS : COMMAND_MS,
    ...(purpose === 'mailbox' && { blockingTimeout: BLOCKED_MS }),
  };
}

function redisOf(target: Exclude<RedisTarget, { form: 'cluster' }>, purpose: Purpose): Redis {
  const options: Options = {
    ...common(target.login, target.tls, purpose),
    db: target.db,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: retry,
    // After a failover the old master answers READONLY until the connection is made to the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  if (target.form === 'single') return new Redis({ ...options, ...target.at });
  const { username, password } = target.sentinelLogin;
  const client = new Redis({
    ...options,
    sentinels: [...target.sentinels],
    name: target.master,
    ...(username !== null && { sentinelUsername: username }),
    ...(password !== null && { sentinelPassword: password }),
    ...(target.tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
    sentinelRetryStrategy: retry,
    sentinelCommandTimeout: COMMAND_MS,
    failoverDetector: true,
  });
  return reviving(client);
}

/**
 * Connects a client again whenever it ends, unless its owner closed it. ioredis ends a client for good if a failover is
 * announced while it still looks for the master.
 */
function reviving(client: Redis): Redis {
  let closed = false;
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect = false) => {
    closed ||= !reconnect;
    disconnect(reconnect);
  };
  const begin = (): void => {
    // A failure is emitted as an error, and as another `end`, which leads here again.
    if (!closed) client.connect().catch(() => {});
  };
  client.on('end', () => void setTimeout(begin, RETRY_MS).unref());
  return client;
}

function clusterOf(target: Extract<RedisTarget, { form: 'cluster' }>, purpose: Purpose): Cluster {
  const options: Omit<ClusterOptions, 'redisOptions'> = {
    lazyConnect: true,
    enableOfflineQueue: false,
    clusterRetryStrategy: retry,
    slotsRefreshInterval: SLOTS_MS,
    slotsRefreshTimeout: COMMAND_MS,
  };
  return new Cluster([...target.nodes], { ...options, redisOptions: common(target.login, target.tls, purpose) });
}

/**
 * Adds a listener that logs the errors of a client; without one, ioredis writes them to the console. Only the code and
 * the message of an error are logged, because its other fields may contain the login.
 */
function watched<C extends Client>(client: C, purpose: Purpose, log: Log): C {
  let away = false;
  client.on('error', (error: NodeJS.ErrnoException) => {
    if (away) return;
    away = true;
    log.warn({ purpose, code: error.code, reason: error.message }, 'a connection to Redis is lost');
  });
  client.on('ready', () => {
    if (away) log.info({ purpose }, 'a connection to Redis is back');
    away = false;
  });
  return client;
}
