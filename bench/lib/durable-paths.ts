/** Starts the paths whose calls are recorded in Redis before they are answered. Each path has its own Redis. */
import { z } from 'zod';
import { startRelay, userToken, type Relay } from './callboard.ts';
import { startChild, type Child, type Measured } from './processes.ts';
import { EVERYSEC, openRedis, type BenchRedis, type RedisUsage } from './redis.ts';
import { userOwnedBy } from './owners.ts';
import { PAYLOAD, USER, type End } from './rpc.ts';
import { dataSettings, httpCalls, linkCalls, overHttp, type RpcContender, type RpcPath } from './rpc-paths.ts';

export const DURABLE = {
  direct: 'callboard, direct mode',
  redis: 'callboard over Redis',
  owned: 'callboard with owners',
  naive: 'ws relay, awaits one by one',
  auto: 'ws relay, auto-pipelined',
  bullmq: 'BullMQ',
} as const;

export const DURABLE_CONTENDERS: readonly RpcContender[] = [
  { name: DURABLE.naive, kind: 'peer', prepare: (stack) => handmade(stack, 'naive') },
  { name: DURABLE.auto, kind: 'peer', prepare: (stack) => handmade(stack, 'auto') },
  { name: DURABLE.bullmq, kind: 'peer', prepare: bullmq },
  { name: DURABLE.direct, kind: 'own', prepare: (stack) => overHttp(stack) },
  { name: DURABLE.redis, kind: 'own', prepare: (stack) => shared(stack, 'redis') },
  { name: DURABLE.owned, kind: 'own', prepare: (stack) => shared(stack, 'owned') },
];

async function shared(stack: AsyncDisposableStack, store: 'redis' | 'owned'): Promise<RpcPath> {
  const redis = stack.use(await openRedis());
  return withRedis(redis, await overHttp(stack, { ...settingsOf(redis), CALLBOARD_STORE: store }));
}

async function handmade(stack: AsyncDisposableStack, mode: 'naive' | 'auto'): Promise<RpcPath> {
  const redis = stack.use(await openRedis());
  const relay = stack.use(await startChild('servers/durable.ts', { options: { mode, redis: redis.url } }));
  stack.use(await startChild('loads/rpc-client.ts', { options: { kind: 'ws', port: relay.port } }));
  const body = JSON.stringify({ params: PAYLOAD });
  const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  const requests = [`POST /call HTTP/1.1\r\nHost: bench\r\n${type}\r\n${body}`];
  const sample = '"ok":{"text":"ppp';
  return withRedis(redis, await httpCalls(stack, { port: relay.port, requests, server: relay, sample }));
}

/**
 * Starts a path without a relay, in which caller and worker exchange jobs through Redis. The worker runs as many jobs
 * at once as calls are in flight.
 */
async function bullmq(stack: AsyncDisposableStack): Promise<RpcPath> {
  const redis = stack.use(await openRedis([...EVERYSEC, '--maxmemory-policy', 'noeviction']));
  const worker = stack.use(await startChild('loads/bullmq-worker.ts', { options: { port: redis.port } }));
  const caller = stack.use(await startChild('loads/bullmq-caller.ts', { options: { port: redis.port } }));
  const path = withRedis(redis, linkCalls(caller, together([])));
  return {
    async drive(load) {
      await worker.ask('concurrency', load.inFlight, z.null());
      return path.drive(load);
    },
  };
}

/** Combines the CPU time of several processes; NaN if there are none. */
function together(children: readonly Child[]): Measured {
  const sum = async (of: (child: Child) => Promise<number>): Promise<number> =>
    children.length === 0 ? NaN : (await Promise.all(children.map(of))).reduce((total, each) => total + each);
  return { cpu: () => sum((child) => child.cpu()), system: () => sum((child) => child.system()) };
}

/** Returns the path with additional measurements: what its Redis used for each call. */
function withRedis(redis: BenchRedis, path: RpcPath): RpcPath {
  return {
    async drive(load) {
      const before = await redis.usage();
      const sample = await path.drive(load);
      const after = await redis.usage();
      const each = (of: (usage: RedisUsage) => number): number => (of(after) - of(before)) / (sample['calls'] ?? NaN);
      return {
        ...sample,
        redis: each(({ cpu }) => cpu),
        commands: each(({ commands }) => commands),
        log: each(({ log }) => log),
      };
    },
  };
}

// Paths whose callers use links. The clients are few or many, and on the caller's relay or on another one.

/** The numbers of calls in flight that are measured, each in its own table. */
export const LEVELS: readonly number[] = [1, 8, 64, 256];

export const LINKS = {
  fewNear: 'callboard over Redis links: 2 clients near',
  fewFar: 'callboard over Redis links: 2 clients far',
  manyNear: 'callboard over Redis links: 64 clients near',
  manyFar: 'callboard over Redis links: 64 clients far',
  ownIds: "callboard over Redis links: 2 clients near with callers' ids",
  direct: 'callboard, direct mode links: 2 clients',
  directory: 'callboard, direct mode with a data directory links: 2 clients',
  owner: 'callboard with owners links: all at the owner',
  callerForeign: 'callboard with owners links: the caller at another relay',
  clientForeign: 'callboard with owners links: the clients at another relay',
  allForeign: 'callboard with owners links: caller, clients and owner at three relays',
} as const;

export const LINK_CONTENDERS: readonly RpcContender[] = [
  { name: DURABLE.bullmq, kind: 'peer', prepare: bullmq },
  linked(LINKS.fewNear, { clients: 2, way: 'near' }),
  linked(LINKS.fewFar, { clients: 2, way: 'far' }),
  linked(LINKS.manyNear, { clients: 64, way: 'near' }),
  linked(LINKS.manyFar, { clients: 64, way: 'far' }),
  linked(LINKS.ownIds, { clients: 2, way: 'near', ownIds: true }),
  { name: LINKS.direct, kind: 'own', prepare: (stack) => directLinks(stack, {}) },
  { name: LINKS.directory, kind: 'own', prepare: (stack) => directLinks(stack, dataSettings(stack, '1000')) },
  owned(LINKS.owner, { relays: 1, caller: 0, clients: 0 }),
  owned(LINKS.callerForeign, { relays: 2, caller: 1, clients: 0 }),
  owned(LINKS.clientForeign, { relays: 2, caller: 0, clients: 1 }),
  owned(LINKS.allForeign, { relays: 3, caller: 1, clients: 2 }),
];

type Place = {
  readonly clients: number;
  /**
   * Where the caller's link is. `near`: at the same relay as the links of the called clients. `far`: at another relay.
   */
  readonly way: 'near' | 'far';
  readonly ownIds?: boolean;
};

function linked(name: string, { clients, way, ownIds = false }: Place): RpcContender {
  return {
    name,
    kind: 'own',
    async prepare(stack) {
      const redis = stack.use(await openRedis());
      const ofScripts = { ...settingsOf(redis), CALLBOARD_STORE: 'redis' };
      const called = stack.use(await startRelay(ofScripts));
      const other = way === 'near' ? called : stack.use(await startRelay(ofScripts));
      const token = await userToken(USER, 'connect', 'invoke');
      const end: Omit<End, 'port'> = { kind: 'bare', token, clients, ownIds };
      stack.use(await startChild('loads/rpc-client.ts', { options: { ...end, port: other.port } }));
      const caller = stack.use(await startChild('loads/rpc-caller.ts', { options: { ...end, port: called.port } }));
      return withRedis(redis, linkCalls(caller, together([...new Set([called, other])])));
    },
  };
}

async function directLinks(stack: AsyncDisposableStack, settings: Readonly<Record<string, string>>): Promise<RpcPath> {
  const relay = stack.use(await startRelay(settings));
  const end: Omit<End, 'port'> = { kind: 'bare', token: await userToken(USER, 'connect', 'invoke') };
  stack.use(await startChild('loads/rpc-client.ts', { options: { ...end, port: relay.port } }));
  return linkCalls(
    stack.use(await startChild('loads/rpc-caller.ts', { options: { ...end, port: relay.port } })),
    relay,
  );
}

/**
 * `relays`: the number of relays that own partitions; the first one owns the called user's partition. `caller`,
 * `clients`: the indexes of the relays to which the caller and the clients have links.
 */
type OwnedPlace = { readonly relays: number; readonly caller: number; readonly clients: number };

function owned(name: string, { relays, caller, clients }: OwnedPlace): RpcContender {
  return {
    name,
    kind: 'own',
    async prepare(stack) {
      const redis = stack.use(await openRedis());
      const names = Array.from({ length: relays }, (_, i) => `relay-${i}`);
      const env = { ...settingsOf(redis), CALLBOARD_STORE: 'owned' };
      const started: Relay[] = [];
      for (const id of names) started.push(stack.use(await startRelay({ ...env, CALLBOARD_NODE_ID: id })));
      const user = await userOwnedBy(redis.url, names);
      const token = await userToken(user, 'connect', 'invoke');
      const end: Omit<End, 'port'> = { kind: 'bare', token, user };
      const at = (relay: number): Omit<End, 'port'> & { port: number } => ({ ...end, port: started[relay]?.port ?? 0 });
      stack.use(await startChild('loads/rpc-client.ts', { options: at(clients) }));
      const calling = stack.use(await startChild('loads/rpc-caller.ts', { options: at(caller) }));
      return withRedis(redis, linkCalls(calling, together(started)));
    },
  };
}

function settingsOf({ url }: BenchRedis): Readonly<Record<string, string>> {
  return { CALLBOARD_REDIS_URL: url, CALLBOARD_DURABILITY: 'aof_everysec' };
}
