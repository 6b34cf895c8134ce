/**
 * Starts the paths whose callers use links and whose calls are stored in Redis. The paths are relays with few or many
 * clients, on the caller's relay or on another one, and BullMQ with the same concurrency.
 */
import { z } from 'zod';
import { startRelay, userToken } from './callboard.ts';
import { counted, REDIS_FOR_BULLMQ } from './durable-paths.ts';
import type { Sample } from './numbers.ts';
import { startChild, type Child } from './processes.ts';
import { openRedis } from './redis.ts';
import type { RowKind } from './report.ts';
import type { Length } from './rounds.ts';
import { CALLS, USER, type End } from './rpc.ts';

/** The numbers of calls in flight that are measured. Each has a table of its own. */
export const LEVELS: readonly number[] = [1, 8, 64, 256];

export const LINKS = {
  fewNear: 'callboard over Redis links: 2 clients near',
  fewFar: 'callboard over Redis links: 2 clients far',
  manyNear: 'callboard over Redis links: 64 clients near',
  manyFar: 'callboard over Redis links: 64 clients far',
  ownIds: "callboard over Redis links: 2 clients near with callers' ids",
  bullmq: 'BullMQ',
} as const;

/** A running path. `drive` makes calls with this many in flight for this long, and returns the measurements. */
export type LinkPath = { drive(load: LinkLoad): Promise<Sample> };
type LinkLoad = Length & { readonly inFlight: number };

export type LinkContender = {
  readonly name: string;
  readonly kind: RowKind;
  prepare(stack: AsyncDisposableStack): Promise<LinkPath>;
};

export const LINK_CONTENDERS: readonly LinkContender[] = [
  { name: LINKS.bullmq, kind: 'peer', prepare: bullmq },
  own(LINKS.fewNear, { clients: 2, way: 'near' }),
  own(LINKS.fewFar, { clients: 2, way: 'far' }),
  own(LINKS.manyNear, { clients: 64, way: 'near' }),
  own(LINKS.manyFar, { clients: 64, way: 'far' }),
  own(LINKS.ownIds, { clients: 2, way: 'near', ownIds: true }),
];

type Place = {
  readonly clients: number;
  /**
   * The position of the caller. `near`: the caller and its clients have links to the same relay. `far`: they have links
   * to two relays.
   */
  readonly way: 'near' | 'far';
  readonly ownIds?: boolean;
};

function own(name: string, { clients, way, ownIds = false }: Place): LinkContender {
  return {
    name,
    kind: 'own',
    async prepare(stack) {
      const redis = stack.use(await openRedis());
      const env = { CALLBOARD_REDIS_URL: redis.url, CALLBOARD_DURABILITY: 'aof_everysec' };
      const called = stack.use(await startRelay(env));
      const linked = way === 'near' ? called : stack.use(await startRelay(env));
      const relays = [...new Set([called, linked])];
      const end: Omit<End, 'port'> = {
        kind: 'bare',
        token: await userToken(USER, 'connect', 'invoke'),
        clients,
        ownIds,
      };
      stack.use(await startChild('loads/rpc-client.ts', { options: { ...end, port: linked.port } }));
      const caller = stack.use(await startChild('loads/rpc-caller.ts', { options: { ...end, port: called.port } }));
      return { drive: (load) => counted(redis, () => driven(caller, relays, load)) };
    },
  };
}

/**
 * Starts the BullMQ path. BullMQ has no relay: callers and workers meet in Redis. The worker runs as many jobs at once
 * as there are calls in flight.
 */
async function bullmq(stack: AsyncDisposableStack): Promise<LinkPath> {
  const redis = stack.use(await openRedis(REDIS_FOR_BULLMQ));
  const worker = stack.use(await startChild('loads/bullmq-worker.ts', { options: { port: redis.port } }));
  const caller = stack.use(await startChild('loads/bullmq-caller.ts', { options: { port: redis.port } }));
  return {
    async drive(load) {
      await worker.ask('concurrency', load.inFlight, z.null());
      return counted(redis, () => driven(caller, [], load));
    },
  };
}

/** Makes calls over a path. `relays`: the processes whose CPU time is added up; empty for a path without a relay. */
async function driven(caller: Child, relays: readonly Child[], load: LinkLoad): Promise<Sample> {
  const cpu = async (): Promise<number> =>
    (await Promise.all(relays.map((relay) => relay.cpu()))).reduce((sum, each) => sum + each, 0);
  const before = await cpu();
  const { count, ms, p50, p99 } = await caller.ask('drive', load, CALLS);
  const used = relays.length === 0 ? NaN : ((await cpu()) - before) / count;
  return { rate: (count * 1000) / ms, p50, p99, cpu: used, calls: count };
}
