import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { Log } from '../../core/log.ts';
import type { Login, RedisTarget } from './target.ts';
import type { Client } from './types.ts';

/** `mailbox`: blocking reads. `bus`: subscriptions. Each purpose has a connection of its own: one that blocks or listens does nothing else. */
export type Purpose = 'commands' | 'mailbox' | 'bus';

/** A command without an answer after this long fails, and may have run. Without this bound ioredis may wait for ever. */
const COMMAND_MS = 2_000;
/** So long a blocking read may take in all; on a connection that hangs it ends soon after its own BLOCK. */
const BLOCKED_MS = 4_000;
/** A connection on which nothing came for this long although something was asked is replaced: its far end may be gone without a word. */
const SILENT_MS = { commands: 3_000, bus: 3_000, mailbox: BLOCKED_MS } as const;
const CONNECT_MS = 5_000;
const RETRY_MS = 1_000;
/** Masters may change places without an error that would show it. */
const SLOTS_MS = 5_000;

/** The reply mapping is ioredis' ordinary one; its overloads want it absent. */
type Options = Omit<RedisOptions, 'replyMapping'>;

const retry = (attempt: number): number => Math.min(RETRY_MS, 50 * attempt);

/**
 * A connection that is not yet begun (`connect`). While Redis is away whatever is asked of it fails at once, nothing is sent twice, and it
 * comes back by itself. What goes wrong is logged once an outage.
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
    // After a failover the old master answers so until it is reached under its new name.
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

/** A failover that is told while ioredis still looks for the master ends a client for good. It begins anew unless its holder closed it. */
function reviving(client: Redis): Redis {
  let closed = false;
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect = false) => {
    closed ||= !reconnect;
    disconnect(reconnect);
  };
  const begin = (): void => {
    // What goes wrong is heard as an error, and comes here once more.
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

/** Without a listener ioredis writes errors to the console. What it adds to an error may hold the login: only code and message are logged. */
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
