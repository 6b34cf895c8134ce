/**
 * Opens connections to Redis with our timeouts and retries, and logs when a connection is lost and restored.
 *
 * Only this file configures ioredis.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import calculateSlot from 'cluster-key-slot';
import { AbstractConnector, Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import { CallboardError } from '../../core/errors.ts';
import type { Log } from '../../core/ports.ts';
import type { Address, Login, RedisTarget } from './target.ts';

export type Client = Redis | Cluster;
/** The options of ioredis without `replyMapping`, which its overloads do not accept. */
export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * What a connection is used for. `mailbox`: blocking reads. `bus`: subscriptions. `commands`: everything else. A
 * connection that blocks or subscribes can do nothing else, so each purpose has a connection of its own.
 */
export type Purpose = 'commands' | 'mailbox' | 'bus';

/**
 * The time, in milliseconds, after which an unanswered command fails. The command may have run. Without this limit,
 * ioredis may wait for ever.
 */
const COMMAND_MS = 2_000;
/**
 * The longest duration of a blocking read, in milliseconds. It is little more than the BLOCK of the read, so that a
 * hanging connection is noticed soon.
 */
const BLOCKED_MS = 4_000;
/**
 * The time, in milliseconds, after which a connection that does not answer is replaced, because its other end may be
 * gone without closing it.
 */
const SILENT_MS = { commands: 3_000, bus: 3_000, mailbox: BLOCKED_MS } as const;
const CONNECT_MS = 5_000;
const RETRY_MS = 1_000;
/**
 * The interval at which a cluster's slot map is read again, in milliseconds. Slots may move to another master without
 * causing an error.
 */
const SLOTS_MS = 5_000;

/** How long a connection may take to close before it is destroyed, milliseconds. */
const DISCONNECT_MS = 2_000;
/** The channel on which a sentinel announces a new master. */
const SWITCHES = '+switch-master';
/** The most sentinels that one connection listens to. */
const SENTINELS = 10;
/** The longest delay between two attempts to reach an unavailable sentinel, in milliseconds. */
const SENTINEL_RETRY_MS = 10_000;

const retry = (attempt: number): number => Math.min(RETRY_MS, 50 * attempt);

/**
 * Creates a connection, which `connect` opens. While Redis is unavailable, commands fail at once, and the connection
 * reconnects by itself. No command is sent twice, not even SUBSCRIBE: the owner subscribes again at each `ready`. Each
 * outage is logged once. In a cluster, a connection for the bus goes to the node that `findNode` names; without
 * `findNode`, it goes to one node, and after each break to the next.
 */
export function connectTo(
  target: ConnectTarget,
  purpose: Purpose,
  log: Log,
  own: Pick<ClientOptions, 'enableReadyCheck'> & { readonly findNode?: FindNode | undefined } = {},
): Client {
  const { findNode, ...options } = own;
  return watched(followingLogin(clientOf(target, purpose, options, findNode), target.login), purpose, log);
}

/**
 * Returns the cluster node to connect to. Called before each attempt, and whenever Redis reports that the node no
 * longer serves the slot of a subscription. Null if the node is unknown; then any node is used.
 */
export type FindNode = () => Promise<Address | null>;

/** Whether the client is that of a cluster. */
export function isCluster(client: Client): client is Cluster {
  return 'nodes' in client;
}

/** Reads the slot map of a cluster again. Never rejects: if no node answers, the map stays unchanged. */
export function refreshSlots(cluster: Cluster): Promise<void> {
  return new Promise((resolve) => cluster.refreshSlotsCache(() => resolve()));
}

/** Returns the master that serves the slot of a key, by the last slot map, as `host:port`; null if it is unknown. */
export function servedBy(cluster: Cluster, key: string): string | null {
  return cluster.slots[calculateSlot(key)]?.[0] ?? null;
}

/** Makes the client use the target's present login, which may have been replaced, at each attempt after the first. */
function followingLogin<C extends Client>(client: C, login: Login): C {
  const follow = (redis: Redis): void => {
    // The user name is replaced even if it is null: a login without a user name must not keep the previous one.
    const use = (): void => void Object.assign(redis.options, { username: login.username, password: login.password });
    use();
    redis.on('close', use);
  };
  if (client instanceof Redis) follow(client);
  else client.on('+node', follow);
  return client;
}

/**
 * The certificates of a TLS connection as PEM: the authorities that sign the servers, and the certificate of the relay.
 */
export type RedisCertificates = {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
};

/** A target with its certificates. By default, the authorities that Node trusts, and no certificate of the relay. */
export type ConnectTarget = RedisTarget & { readonly certificates?: RedisCertificates | undefined };

function tlsOf({ tls, certificates = {} }: ConnectTarget): RedisCertificates | null {
  return tls ? { ...certificates } : null;
}

function clientOf(target: ConnectTarget, purpose: Purpose, own: ClientOptions, findNode?: FindNode): Client {
  if (target.form !== 'cluster') return redisOf(target, purpose, own);
  if (purpose !== 'bus') return clusterOf(target, purpose);
  const options = reconnecting(common(target.login, target, purpose));
  return nodeOf(target.nodes, { tls: tlsOf(target), options, findNode });
}

function common(login: Login, target: ConnectTarget, purpose: Purpose): ClientOptions {
  const tls = tlsOf(target);
  return {
    ...(login.username !== null && { username: login.username }),
    ...(login.password !== null && { password: login.password }),
    ...(tls && { tls }),
    autoResendUnfulfilledCommands: false,
    // ioredis does not catch a failure of its own resubscription, which would end the process.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    connectionName: `callboard-${purpose}`,
    socketTimeout: SILENT_MS[purpose],
    commandTimeout: purpose === 'mailbox' ? BLOCKED_MS : COMMAND_MS,
    ...(purpose === 'mailbox' && { blockingTimeout: BLOCKED_MS }),
  };
}

function reconnecting(options: ClientOptions): ClientOptions {
  return { ...options, lazyConnect: true, enableOfflineQueue: false, retryStrategy: retry };
}

function redisOf(target: Exclude<ConnectTarget, { form: 'cluster' }>, purpose: Purpose, own: ClientOptions): Redis {
  const options: ClientOptions = {
    ...own,
    ...reconnecting(common(target.login, target, purpose)),
    db: target.db,
    // After a failover, the old master answers READONLY until the connection is made to the new master.
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
    ...(target.tls && { enableTLSForSentinelMode: true, sentinelTLS: { ...target.certificates } }),
    sentinelRetryStrategy: retry,
    sentinelCommandTimeout: COMMAND_MS,
  });
  return reviving(leavingOldMaster(client, target));
}

/** Ends the connection whenever a sentinel announces another master, so that the client connects to that master. */
function leavingOldMaster(client: Redis, target: Extract<ConnectTarget, { form: 'sentinel' }>): Redis {
  const options: ClientOptions = {
    ...reconnecting(common(target.sentinelLogin, target, 'bus')),
    connectionName: 'callboard-sentinel',
    enableReadyCheck: false,
    retryStrategy: (attempt) => Math.min(SENTINEL_RETRY_MS, 100 * 2 ** attempt),
  };
  let stop = (): void => {};
  client.on('connect', () => {
    stop();
    stop = watchFailover({ target, options, moved: () => client.disconnect(true) });
  });
  client.on('close', () => stop());
  return client;
}

type FailoverWatchOptions = {
  readonly target: Extract<RedisTarget, { form: 'sentinel' }>;
  /** The options of each connection to a sentinel. */
  readonly options: ClientOptions;
  /** Called each time a sentinel announces another master. */
  readonly moved: () => void;
};

/**
 * Listens to the sentinels of the address and to those that they know, until the returned function is called.
 * Announcements of a sentinel are missed while it is unavailable. The listener of ioredis is not used, because after a
 * break it subscribes again without catching a failure, which would end the process.
 */
function watchFailover({ target, options, moved }: FailoverWatchOptions): () => void {
  const sentinels = new Map<string, Redis>();
  let closed = false;
  const follow = async (sentinel: Redis): Promise<void> => {
    try {
      for (const address of await peersOf(sentinel, target.master)) add(address);
      await sentinel.subscribe(SWITCHES);
    } catch {
      sentinel.disconnect(true);
    }
  };
  const add = ({ host, port }: Address): void => {
    const name = `${host}:${port}`;
    if (closed || sentinels.has(name) || sentinels.size === SENTINELS) return;
    const sentinel = new Redis({ ...options, host, port });
    sentinels.set(name, sentinel);
    sentinel.on('error', () => {});
    sentinel.on('ready', () => void follow(sentinel));
    sentinel.on('message', (_channel: string, text: string) => {
      if (!closed && text.split(' ')[0] === target.master) moved();
    });
    // ioredis retries by itself.
    sentinel.connect().catch(() => {});
  };
  for (const address of target.sentinels) add(address);
  return () => {
    closed = true;
    for (const sentinel of sentinels.values()) sentinel.disconnect();
  };
}

/** Returns the other sentinels that watch the same master. Rejects if the sentinel does not answer. */
async function peersOf(sentinel: Redis, master: string): Promise<readonly Address[]> {
  const rows: unknown = await sentinel.call('sentinel', 'SENTINELS', master);
  return (Array.isArray(rows) ? rows : []).flatMap((row: unknown) => {
    const members = membersOf(row);
    const [host, port] = [members.get('ip'), Number(members.get('port'))];
    return host && port > 0 && !members.get('flags')?.includes('disconnected') ? [{ host, port }] : [];
  });
}

/** Reads a list in which names and values alternate. */
function membersOf(row: unknown): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  if (Array.isArray(row)) for (let i = 0; i + 1 < row.length; i += 2) members.set(String(row[i]), String(row[i + 1]));
  return members;
}

/**
 * Reconnects a client whenever it ends, unless its owner closed it. ioredis ends a client, and does not reconnect, if a
 * failover is announced while the client is still looking for the master.
 */
function reviving(client: Redis): Redis {
  let closed = false;
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect = false) => {
    closed ||= !reconnect;
    disconnect(reconnect);
  };
  const begin = (): void => {
    // A failure is emitted as an error and as another `end`, which calls this function again.
    if (!closed) client.connect().catch(() => {});
  };
  client.on('end', () => void setTimeout(begin, RETRY_MS).unref());
  return client;
}

function clusterOf(target: Extract<ConnectTarget, { form: 'cluster' }>, purpose: Purpose): Cluster {
  const options: Omit<ClusterOptions, 'redisOptions'> = {
    lazyConnect: true,
    enableOfflineQueue: false,
    clusterRetryStrategy: retry,
    slotsRefreshInterval: SLOTS_MS,
    slotsRefreshTimeout: COMMAND_MS,
    // Certificates contain host names, which ioredis would replace by addresses.
    ...(target.tls && { dnsLookup: (name, found) => found(null, name) }),
  };
  const cluster = new Cluster([...target.nodes], {
    ...options,
    redisOptions: common(target.login, target, purpose),
  });
  cluster.on('+node', catchAsking);
  return cluster;
}

/**
 * Catches the failure of ASKING, which ioredis sends before a command while a slot moves. ioredis does not catch it, so
 * it would end the process. The command itself fails as well, and its caller gets that error.
 */
function catchAsking(node: Redis): void {
  const asking = node.asking.bind(node);
  node.asking = () => {
    const asked = asking();
    asked.catch(() => {});
    return asked;
  };
}

type NodeOptions = {
  readonly tls: RedisCertificates | null;
  readonly options: ClientOptions;
  readonly findNode: FindNode | undefined;
};

/**
 * Creates a connection to one node of a cluster, which `connect` opens. Each connection and reconnection goes to the
 * node that `findNode` names. If there is none, it goes to the next node of a list: first all of `nodes`, then the
 * nodes that the cluster last named.
 */
function nodeOf(nodes: readonly Address[], { tls, options, findNode }: NodeOptions): Redis {
  let known = nodes;
  let turn = Math.floor(Math.random() * nodes.length);
  const next = (): Address | undefined => known[turn++ % known.length];
  class NodeConnector extends AbstractConnector {
    constructor() {
      super(DISCONNECT_MS);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      const found = (await findNode?.()) ?? next();
      // `disconnect` was called in the meantime, and ioredis must open no connection then.
      if (!this.connecting) throw new Error('Connection is closed.');
      const { host = '', port = 0 } = found ?? {};
      const stream = tls ? connectTls({ ...tls, host, port }) : connect({ host, port });
      stream.once('error', (error) => (this.firstError = error));
      this.stream = stream;
      return stream;
    }
  }
  const client = new Redis({ ...options, Connector: NodeConnector });
  // Emitted when the node refuses or ends a sharded subscription because another node serves its slot.
  client.on('moved', () => {
    if (client.status === 'ready') client.disconnect(true);
  });
  client.on('ready', () => {
    client.cluster('SLOTS').then(
      (slots) => (known = [...nodes, ...nodesIn(slots)]),
      // Without an answer, the known nodes stay the same.
      () => {},
    );
  });
  return client;
}

/** Returns the distinct addresses in an answer of CLUSTER SLOTS. */
function nodesIn(slots: unknown): readonly Address[] {
  const found = new Map<string, Address>();
  for (const range of listIn(slots))
    for (const node of listIn(range).slice(2)) {
      const [host, port] = listIn(node);
      if (typeof host === 'string' && host !== '' && Number(port) > 0)
        found.set(`${host}:${Number(port)}`, { host, port: Number(port) });
    }
  return [...found.values()];
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * Logs the errors of a client; without a listener, ioredis would write them to the console. Only the code and the
 * message are logged, because other fields may contain the login.
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

/**
 * Returns the error for a requester: `store_full` if Redis has no memory left (it then refuses a call before running
 * any part of it), otherwise `store_unavailable`. The cause is the error of Redis or of the connection, for the log.
 */
export function unavailable(cause: unknown): CallboardError {
  if (cause instanceof CallboardError) return cause;
  if (cause instanceof Error && cause.message.startsWith('OOM'))
    return new CallboardError('store_full', 'The store has no room for more.', { cause, retryAfterMs: 1000 });
  return new CallboardError('store_unavailable', 'The store does not answer.', { cause, retryAfterMs: 1000 });
}
