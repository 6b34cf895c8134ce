/** Starts the processes of a fault run: Redis, relays and clients, with the proxies between them. */
import { join } from 'node:path';
import { watchMachine } from './processes/machine-watch.ts';
import { OwnerWatch } from './processes/owner-watch.ts';
import { startRedis, type RedisServer } from '../../test/kit/redis.ts';
import { startRedisForm, type ProxiedRedis } from '../../test/kit/redis-forms.ts';
import { startRedisPair, type RedisPair } from '../../test/kit/redis-pair.ts';
import { startRedisSentinel, type RedisSentinel } from '../../test/kit/redis-sentinel.ts';
import { makeDataFolder, type DataFolder } from './processes/data-folder.ts';
import { start, type Proc } from './processes/processes.ts';
import { startProxy, type Proxy } from './processes/proxy.ts';
import { SECRET, startRelay, type Relay } from './processes/relays.ts';
import type { FaultKind, Plan } from './plan/plan.ts';
import { makeSmallDisk, type SmallDisk } from './processes/small-disk.ts';

export type Who = { readonly user: string; readonly client: string };

/** A client process. All its boots have the same clients, but each boot has new instances. */
export type ClientProcess = {
  readonly proc: Proc;
  /**
   * Starts the process again. `forging`: whether other instances report the unfinished commands of the previous boot,
   * which they never received, before the honest clients connect.
   */
  restart(how?: { readonly forging: boolean }): Promise<void>;
};

/** All parts of a run except its driver. */
export type World = AsyncDisposable & {
  readonly folder: string;
  readonly relays: readonly Relay[];
  readonly who: readonly Who[];
  readonly clients: readonly ClientProcess[];
  /** The proxy before the relays, through which clients connect to any relay that accepts. */
  readonly front: Proxy;
  /** The Redis server; null in direct mode and under a sentinel. */
  readonly redis: RedisServer | null;
  readonly sentinel: RedisSentinel | null;
  /** The master and its replica; null if the plan has no such pair. */
  readonly pair: RedisPair | null;
  /** The Redis with counting proxies; null if the plan has no form of it. */
  readonly proxied: ProxiedRedis | null;
  /** Returns the URLs of the servers that receive writes now: none in direct mode, several in a cluster. */
  storeUrls(): Promise<readonly string[]>;
  /** The proxies to Redis, one for each relay in the relays' order; empty in direct mode and under a sentinel. */
  readonly redisProxies: readonly Proxy[];
  /** The folder of large payloads; null if the plan has none. */
  readonly spill: SmallDisk | null;
  /** The data directory of the relay; null if the relay has none. */
  readonly data: DataFolder | null;
  /** Watches the owners of partitions; null if the plan has no aimed faults. */
  readonly owners: OwnerWatch | null;
};

export type WorldOptions = {
  readonly folder: string;
  readonly direct: boolean;
  readonly durable?: boolean;
  readonly owned?: boolean;
  readonly plan: Plan;
  readonly commands: number;
  readonly source?: string | undefined;
};

/** The minimum size of the file system for large payloads, in bytes. */
const SPILL_BYTES = 256 * 1024 * 1024;
/** The number of slot groups of relays that own partitions in a cluster: two for each master. */
const SLOT_GROUPS = '6';
/** The relays' namespace in Redis. */
export const NAMESPACE = 'faults';
const NAMES = ['north', 'east', 'west'];
const USERS = ['ann', 'ben', 'cleo', 'dan', 'eve', 'fay'];
const CLIENTS = ['desk', 'phone', 'robot', 'sheet'];
/** The number of processes among which the clients are divided. */
const CLIENT_PROCESSES = 2;

export async function startWorld(options: WorldOptions): Promise<World> {
  const { folder, direct, durable = false, owned = false, plan, commands, source } = options;
  await using ends = new AsyncDisposableStack();
  const { redis, sentinel, pair, proxied } = direct ? NO_STORE : await startStore(ends, plan);
  const single = pair ?? redis;
  const watched = single ? [single] : (sentinel ?? proxied)?.servers;
  ends.use(watchMachine(folder, watched?.map(({ url }) => url) ?? []));
  // The folder must have room for the params and the result of each command.
  const spill = plan.bytes > 0 ? ends.use(makeSmallDisk(Math.max(SPILL_BYTES, 3 * commands * plan.bytes))) : null;
  const data = durable ? ends.use(makeDataFolder(folder, plan)) : null;
  const relays: Relay[] = [];
  const redisProxies: Proxy[] = [];
  for (const name of direct ? NAMES.slice(0, 1) : NAMES) {
    const proxy = single && ends.use(await startProxy(() => [pair?.master.port ?? redis?.port ?? 0]));
    if (proxy) redisProxies.push(proxy);
    const redisUrl = proxy ? `redis://127.0.0.1:${proxy.port}` : (proxied?.url ?? addressOf(sentinel));
    const env: Record<string, string> = {
      ...(redisUrl !== null && { CALLBOARD_DURABILITY: plan.durability, CALLBOARD_STORE: owned ? 'owned' : 'redis' }),
      ...(owned && plan.form === 'cluster' && { CALLBOARD_PARTITIONS: SLOT_GROUPS }),
      ...data?.env,
      ...(proxied && { NODE_EXTRA_CA_CERTS: proxied.authority }),
      ...(spill && { CALLBOARD_SPILL_DIR: spill.path }),
      ...plan.env,
    };
    // For waiting for replicas, an owner opens another connection when it claims partitions, and under a sentinel one
    // to the sentinel too.
    const laterSockets = owned ? (sentinel ? 2 : pair ? 1 : 0) : 0;
    const options = {
      name,
      folder,
      redisUrl,
      namespace: NAMESPACE,
      source,
      env,
      logsMemory: true,
      logsWrites: plan.stops,
      laterSockets,
    };
    relays.push(ends.adopt(await startRelay(options), end));
  }
  const owners = single && (plan.aimed || plan.pair) ? ends.use(await OwnerWatch.start(single.url, NAMESPACE)) : null;
  const front = ends.use(await startFront(relays, plan));
  const who = USERS.flatMap((user) => CLIENTS.map((client) => ({ user, client })));
  const clients: ClientProcess[] = [];
  for (let n = 0; n < CLIENT_PROCESSES; n++) {
    const own = who.filter((_, index) => index % CLIENT_PROCESSES === n);
    const options = { name: `clients-${n + 1}`, folder, port: front.port, who: own, syncs: !plan.stops };
    clients.push(ends.adopt(await startClients(options), end));
  }
  const all = ends.move();
  const serversNow = () =>
    redis ? [redis] : pair ? [pair.master] : (proxied?.cluster?.masters ?? proxied?.servers ?? []);
  const storeUrls = async (): Promise<readonly string[]> =>
    sentinel ? [`redis://127.0.0.1:${await sentinel.master()}`] : serversNow().map(({ url }) => url);
  const stop = (): Promise<void> => all.disposeAsync();
  return {
    folder,
    relays,
    who,
    clients,
    front,
    redis,
    sentinel,
    pair,
    proxied,
    storeUrls,
    redisProxies,
    spill,
    data,
    owners,
    [Symbol.asyncDispose]: stop,
  };
}

type StoreServers = Pick<World, 'redis' | 'sentinel' | 'pair' | 'proxied'>;
const NO_STORE: StoreServers = { redis: null, sentinel: null, pair: null, proxied: null };

async function startStore(ends: AsyncDisposableStack, plan: Plan): Promise<StoreServers> {
  if (plan.form !== null) {
    const proxied = ends.use(await startRedisForm(plan.form, plan.redis, !plan.kinds.some(isOfCluster)));
    const servers = () => proxied.cluster?.masters ?? proxied.servers;
    onExit(ends, () => servers().forEach((server) => server.process.kill('SIGKILL')));
    return { ...NO_STORE, proxied };
  }
  if (plan.pair) {
    const pair = ends.use(await startRedisPair());
    onExit(ends, () => [pair.master, pair.replica].forEach((server) => server.process.kill('SIGKILL')));
    return { ...NO_STORE, pair };
  }
  if (!plan.sentinel) {
    const redis = ends.adopt(await startRedis(plan.redis), (server) => server.stop());
    onExit(ends, () => redis.process.kill('SIGKILL'));
    return { ...NO_STORE, redis };
  }
  const sentinel = ends.adopt(await startRedisSentinel({ args: plan.redis }), (servers) => servers.stop());
  onExit(ends, () => sentinel.servers.forEach((server) => server.process.kill('SIGKILL')));
  return { ...NO_STORE, sentinel };
}

/** Whether a fault needs a server that follows a master of the cluster. */
function isOfCluster(kind: FaultKind): boolean {
  return kind === 'cluster-failover' || kind === 'slots-move';
}

/** Calls `kill` if this program exits before `ends` is disposed. */
function onExit(ends: AsyncDisposableStack, kill: () => void): void {
  process.once('exit', kill);
  ends.defer(() => void process.off('exit', kill));
}

function addressOf(sentinel: RedisSentinel | null): string | null {
  return sentinel && `redis+sentinel://${new URL(sentinel.url).host}/${sentinel.name}`;
}

async function end({ proc }: { readonly proc: Proc }): Promise<void> {
  proc.resume();
  await proc.kill();
}

function startFront(relays: readonly Relay[], plan: Plan): Promise<Proxy> {
  let turn = 0;
  const open = plan.callersOnly && relays.length > 1 ? relays.slice(0, -1) : relays;
  return startProxy(() => {
    turn++;
    return open.map((_, index) => open[(index + turn) % open.length]?.port ?? 0);
  });
}

type ClientsOptions = {
  readonly name: string;
  readonly folder: string;
  readonly port: number;
  readonly who: readonly Who[];
  /** Passed on to the client processes (`ClientOrder`). */
  readonly syncs: boolean;
};

async function startClients(options: ClientsOptions): Promise<ClientProcess> {
  let proc = await bootClients(options, { boot: 1, forging: false });
  return {
    get proc() {
      return proc;
    },
    async restart(how) {
      proc = await bootClients(options, { boot: proc.boot + 1, forging: how?.forging ?? false });
    },
  };
}

type Boot = { readonly boot: number; readonly forging: boolean };

async function bootClients(options: ClientsOptions, { boot, forging }: Boot): Promise<Proc> {
  const { name, folder, port, who, syncs } = options;
  const link = `ws://127.0.0.1:${port}/connect`;
  const order = { proc: name, boot: String(boot), folder, link, secret: SECRET, clients: who, forging, syncs };
  const args = [join(import.meta.dirname, 'processes', 'client.ts'), JSON.stringify(order)];
  return (await start({ name, boot, folder, args })).proc;
}
