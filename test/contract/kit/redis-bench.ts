/** Opens a Redis backend in its own namespace, whose time a test moves. */
import { randomUUID } from 'node:crypto';
import { Cluster, type Redis } from 'ioredis';
import { inject } from 'vitest';
import { auditNamespace } from '../../../faults/audit/audit.ts';
import { createRedisRooms } from '../../../src/backends/redis/open.ts';
import type { RedisDeps } from '../../../src/backends/redis/deps.ts';
import { connectCommands } from '../../kit/redis.ts';
import { loadPrograms } from '../../../src/backends/redis/program/program.ts';
import { createStore, type Store, type StoreOptions } from '../../../src/backends/redis/store.ts';
import type { Client } from '../../../src/backends/redis/client.ts';
import { createLocalWaits } from '../../../src/backends/redis/waiters-local.ts';
import type { Backend } from '../../../src/core/backend.ts';
import { type Clock, silentLog } from '../../../src/core/ports.ts';
import type { MailboxRow } from '../../../src/core/commands/node-store.ts';
import { SHARE_BOUNDS } from '../../../src/core/shares/share-bounds.ts';
import { createCrypto } from '../../../src/platform/system.ts';
import { FakeClock, settle } from '../../kit/clock.ts';
import type { Bench } from './bench.ts';

const programs = loadPrograms();
/** Whether each act of a call is decided on its own, unless a test says so or otherwise. */
const CAREFUL = process.env['CALLBOARD_TEST_CAREFUL'] === '1';
const { sha256: relaySha256 } = createCrypto('test');

export type RedisBench = Bench & {
  readonly store: Store;
  readonly clock: FakeClock;
  /** The clock of the backend's own timers. Moving the store's time does not move it, so these timers do not fire. */
  readonly system: FakeClock;
  readonly parts: RedisDeps;
  readonly connect: () => Client;
  /** Resolves once none of the backend's acts is running, including background work. */
  quiet(): Promise<void>;
  /** Removes what is over, as each beat of a node does. */
  sweep(): Promise<void>;
  /** Compares every counter of the namespace with what is there. Returns a sentence for each difference. */
  audit(): Promise<readonly string[]>;
};
export type RedisBenchOptions = Partial<
  Pick<
    RedisDeps,
    | 'careful'
    | 'idempotencyWindowMs'
    | 'retentionMs'
    | 'streamMessages'
    | 'streamsPerUser'
    | 'leaseMs'
    | 'held'
    | 'bounds'
    | 'metrics'
    | 'log'
  >
> & {
  readonly partitions?: number;
  /** The digest of the backend's keys and revisions. Absent: that of the relay. */
  readonly sha256?: (text: string) => string;
  /** A clock with real timers, in place of `system`. Tests that break a connection need it. */
  readonly timers?: Clock;
  /**
   * Returns a client of another Redis than the one that all tests of the run share. The client is not connected yet.
   */
  readonly connect?: () => Client;
  /** How far the relay's clock is ahead of the time of the store, milliseconds. */
  readonly aheadMs?: number;
  /** Another bench. The new bench uses its namespace and clock, as a second process of the same deployment does. */
  readonly beside?: RedisBench;
};

/**
 * Opens a backend over the run's Redis, in its own namespace, with the time of a FakeClock. Leases do not end by
 * default.
 */
export async function redisBench(options: RedisBenchOptions = {}): Promise<RedisBench> {
  const {
    partitions = 2,
    beside,
    connect = beside?.connect ?? ofTheRun,
    timers,
    sha256 = relaySha256,
    aheadMs = 0,
    ...limits
  } = options;
  const clock = beside?.clock ?? new FakeClock();
  const system = new FakeClock();
  const client = connect();
  await client.connect();
  const traffic = { pending: 0 };
  const store = counting(traffic, {
    client,
    programs,
    namespace: beside?.store.namespace ?? randomUUID(),
    partitions,
    sha256,
    scopeOf: (userId) => userId,
    time: () => clock.now(),
  });
  const parts: RedisDeps = {
    store,
    log: silentLog,
    sha256,
    system: timers ?? system,
    clock: { now: () => clock.now() + aheadMs },
    connect,
    oneServer: !(client instanceof Cluster),
    retentionMs: 7 * 24 * 3600_000,
    streamMessages: 10_000,
    leaseMs: 365 * 24 * 3600_000,
    waits: createLocalWaits(),
    careful: CAREFUL,
    ...limits,
  };
  const rooms = createRedisRooms(parts) as Backend;
  await rooms.ready?.();
  const read = takeInTurn(rooms);
  const audit = async (): Promise<readonly string[]> => {
    const servers = client instanceof Cluster ? client.nodes('master') : [client];
    const audited = await auditNamespace({
      ...{ urls: servers.map(urlOf), namespace: store.namespace, now: clock.now() },
      marksRanOut: limits.bounds !== undefined && limits.bounds.marks !== SHARE_BOUNDS.marks,
    });
    return audited.wrong;
  };
  return {
    backend: read.backend,
    store,
    clock,
    system,
    parts,
    connect,
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    async quiet() {
      // Between its reads and its call, an act waits for the next turn and is not counted.
      for (let idle = 0; idle < 2;) {
        await settle();
        idle = traffic.pending > 0 ? 0 : idle + 1;
      }
    },
    audit,
    async sweep() {
      for (let partition = 0; partition < partitions; partition++) {
        const node = ['sweeper', 'boot'];
        await store.act(partition, 'nodes-attach', [...node, 1, null]);
        await store.act(partition, 'nodes-beat', [...node, 1, null, parts.retentionMs]);
        await store.act(partition, 'nodes-reap', node);
      }
    },
    async advance(ms) {
      await clock.advance(ms);
      await read.upToNow();
    },
    async close() {
      await rooms.close?.();
      client.disconnect();
    },
  };
}

/** Opens a backend as `redisBench` does. Closing it throws if a counter in Redis differs from what is there. */
export async function auditedBench(options: RedisBenchOptions = {}): Promise<RedisBench> {
  const bench = await redisBench(options);
  return {
    ...bench,
    async close() {
      await bench.quiet();
      const wrong = await bench.audit();
      await bench.close();
      if (wrong.length > 0) throw new Error(`Counters in Redis are wrong:\n${wrong.join('\n')}`);
    },
  };
}

function counting(traffic: { pending: number }, options: StoreOptions): Store {
  const store = createStore(options);
  const count = <T>(request: Promise<T>): Promise<T> => {
    traffic.pending++;
    return request.finally(() => traffic.pending--);
  };
  return {
    ...store,
    act: (...requested) => count(store.act(...requested)),
    read: (...requested) => count(store.read(...requested)),
    transact: (...requested) => count(store.transact(...requested)),
    get roundTrips() {
      return store.roundTrips;
    },
  };
}

function urlOf({ options }: Redis): string {
  return `redis://${options.host}:${options.port}`;
}

function ofTheRun(): Client {
  return connectCommands(inject('redisUrl'));
}

/**
 * Returns the backend, and a function that waits until every mailbox was read to its current end. The function sends a
 * pulse through each mailbox.
 */
function takeInTurn(rooms: Backend): { backend: Backend; upToNow(): Promise<void> } {
  const received = new Map<string, () => void>();
  const attached = new Set<string>();
  const { nodes } = rooms;
  if (!nodes) return { backend: rooms, upToNow: () => Promise.resolve() };
  const attach: Backend['nodes']['attach'] = async (nodeId, listener) => {
    const deliver = (row: MailboxRow): void => {
      if (row.kind === 'pulse' && received.has(nodeId)) received.get(nodeId)?.();
      else listener.deliver(row);
    };
    const detach = await nodes.attach(nodeId, { ...listener, deliver });
    attached.add(nodeId);
    return () => {
      attached.delete(nodeId);
      detach();
    };
  };
  const pulse = async (nodeId: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    received.set(nodeId, resolve);
    if (await nodes.post(nodeId, { kind: 'pulse' })) await promise;
    received.delete(nodeId);
  };
  return {
    backend: { ...rooms, nodes: { ...nodes, attach } },
    async upToNow() {
      for (const nodeId of attached) await pulse(nodeId);
    },
  };
}
