/** Starts the paths whose calls are recorded in Redis before they are answered. Each path has its own Redis. */
import { startChild } from './processes.ts';
import type { Sample } from './numbers.ts';
import { EVERYSEC, openRedis, type BenchRedis, type RedisUsage } from './redis.ts';
import { CALLS, IN_FLIGHT, PAYLOAD } from './rpc.ts';
import { httpCalls, overHttp, type RpcContender, type RpcPath } from './rpc-paths.ts';

export const DURABLE = {
  direct: 'callboard, direct mode',
  redis: 'callboard over Redis',
  naive: 'ws relay, awaits one by one',
  auto: 'ws relay, auto-pipelined',
  bullmq: 'BullMQ',
} as const;

export const DURABLE_CONTENDERS: readonly RpcContender[] = [
  { name: DURABLE.naive, kind: 'peer', prepare: (stack) => handmade(stack, 'naive') },
  { name: DURABLE.auto, kind: 'peer', prepare: (stack) => handmade(stack, 'auto') },
  { name: DURABLE.bullmq, kind: 'peer', prepare: bullmq },
  { name: DURABLE.direct, kind: 'own', prepare: (stack) => overHttp(stack) },
  { name: DURABLE.redis, kind: 'own', prepare: shared },
];

async function shared(stack: AsyncDisposableStack): Promise<RpcPath> {
  const redis = stack.use(await openRedis());
  const env = { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec' };
  return withRedis(redis, await overHttp(stack, env));
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

/** Starts the path without a relay: caller and worker communicate through Redis. */
async function bullmq(stack: AsyncDisposableStack): Promise<RpcPath> {
  const redis = stack.use(await openRedis([...REDIS_FOR_BULLMQ]));
  stack.use(await startChild('loads/bullmq-worker.ts', { options: { port: redis.port } }));
  const caller = stack.use(await startChild('loads/bullmq-caller.ts', { options: { port: redis.port } }));
  return withRedis(redis, {
    async drive(length) {
      const { count, ms, p50, p99 } = await caller.ask('drive', { inFlight: IN_FLIGHT, ...length }, CALLS);
      return { rate: (count * 1000) / ms, p50, p99, cpu: NaN, calls: count };
    },
  });
}

export const REDIS_FOR_BULLMQ = [...EVERYSEC, '--maxmemory-policy', 'noeviction'];

/** Returns the path with measurements that include what its Redis used for each call. */
function withRedis(redis: BenchRedis, path: RpcPath): RpcPath {
  return { drive: (length) => counted(redis, () => path.drive(length)) };
}

/** Runs a measurement, and adds what Redis used for each of its calls. */
export async function counted(redis: BenchRedis, measure: () => Promise<Sample>): Promise<Sample> {
  const before = await redis.usage();
  const sample = await measure();
  const after = await redis.usage();
  const each = (of: (usage: RedisUsage) => number): number => (of(after) - of(before)) / (sample['calls'] ?? NaN);
  return {
    ...sample,
    redis: each(({ cpu }) => cpu),
    commands: each(({ commands }) => commands),
    log: each(({ log }) => log),
  };
}
