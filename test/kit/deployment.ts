/** Opens several nodes over one Redis in one process. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { createRedisRooms } from '../../src/backends/redis/open.ts';
import type { RedisDeps } from '../../src/backends/redis/deps.ts';
import { connectTo, type Purpose, type Client } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { loadPrograms } from '../../src/backends/redis/program/program.ts';
import { createStore, type Store } from '../../src/backends/redis/store.ts';
import type { Backend } from '../../src/core/backend.ts';
import { type Cancel, silentLog } from '../../src/core/ports.ts';
import type { MailboxRow } from '../../src/core/commands/node-store.ts';
import { NODE_LEASE_MS } from '../../src/core/limits.ts';
import { systemClock, createCrypto } from '../../src/platform/system.ts';
import { type FakeClock, alsoSettles, turns } from './clock.ts';
const programs = loadPrograms();

export type NodeOptions = Pick<RedisDeps, 'retentionMs' | 'streamMessages'> & {
  readonly scopeOf: (userId: string) => string;
};

/**
 * A deployment: the backends of several processes over the run's Redis, in one namespace, with the time of a FakeClock.
 */
export type Deployment = {
  /** Opens the backend of one more process. The caller must close it. */
  open(options: NodeOptions): Promise<Backend>;
};

/**
 * Creates a deployment. Afterwards, `clock.advance` waits until the store has answered every request, and until every
 * mailbox and subscription has been read to its end. `settle` does the same while a backend is open.
 */
export function deployment(clock: FakeClock, partitions = 1): Deployment {
  const namespace = randomUUID();
  const open = new Set<Process>();
  const allQuiet = (): Promise<void> => quiet(open);
  let settled: Cancel = () => {};
  clock.alsoAwaits(allQuiet);
  return {
    async open(options) {
      const process = await openProcess({ ...options, namespace, partitions, time: () => clock.now() });
      open.add(process);
      if (open.size === 1) settled = alsoSettles(allQuiet);
      const close = async (): Promise<void> => {
        open.delete(process);
        if (open.size === 0) settled();
        await process.close();
      };
      return { ...process.backend, close };
    },
  };
}

type Process = {
  readonly backend: Backend;
  /** The number of requests to the store so far, and the number of requests that have no answer yet. */
  readonly traffic: { requested: number; pending: number };
  /** Resolves when this process has received everything that was posted and published before the call. */
  received(): Promise<void>;
  close(): Promise<void>;
};

async function quiet(processes: ReadonlySet<Process>): Promise<void> {
  const sum = (): number => [...processes].reduce((all, { traffic }) => all + traffic.requested, 0);
  const pending = (): boolean => [...processes].some(({ traffic }) => traffic.pending > 0);
  for (;;) {
    await Promise.all([...processes].map((process) => process.received()));
    const [requested, busy] = [sum(), pending()];
    do await turns();
    while (pending());
    if (!busy && requested === sum()) return;
  }
}

async function openProcess(
  options: NodeOptions & { readonly namespace: string; readonly partitions: number; readonly time: () => number },
): Promise<Process> {
  const clients: { readonly purpose: Purpose; readonly client: Client }[] = [];
  const connect = (purpose: Purpose): Client => {
    const client = connectTo(readTarget(inject('redisUrl')), purpose, silentLog);
    clients.push({ purpose, client });
    return client;
  };
  const client = connect('commands');
  await client.connect();
  const { sha256 } = createCrypto('test');
  const traffic = { requested: 0, pending: 0 };
  const store = watched(createStore({ ...options, client, programs, sha256 }), traffic);
  const clock = { now: options.time };
  const parts = {
    ...options,
    store,
    clock,
    connect,
    sha256,
    system: systemClock,
    log: silentLog,
    leaseMs: NODE_LEASE_MS,
  };
  const rooms = createRedisRooms(parts) as Backend;
  // Messages that another process publishes before this process has subscribed are lost.
  await rooms.ready?.();
  const { backend, upToNow } = pulsed(rooms);
  return {
    backend: { ...backend, ready: async () => void (await store.read([['EXISTS', store.key(0, 'meta')]])) },
    traffic,
    async received() {
      // A subscription is ordered, so earlier messages arrive before the answer to this ping.
      const listening = clients.filter(({ purpose, client: { status } }) => purpose === 'bus' && status === 'ready');
      await Promise.all([upToNow(), ...listening.map(({ client: bus }) => bus.ping())]);
    },
    async close() {
      await rooms.close?.();
      client.disconnect();
    },
  };
}

function watched(store: Store, traffic: Process['traffic']): Store {
  const follow = async <T>(answer: Promise<T>): Promise<T> => {
    traffic.requested++;
    traffic.pending++;
    try {
      return await answer;
    } finally {
      traffic.pending--;
    }
  };
  return {
    ...store,
    act: (...requested) => follow(store.act(...requested)),
    read: (...requested) => follow(store.read(...requested)),
    readAll: (...requested) => follow(store.readAll(...requested)),
    transact: (...requested) => follow(store.transact(...requested)),
    get roundTrips() {
      return store.roundTrips;
    },
  };
}

/**
 * Returns the backend, and `upToNow`, which resolves when every mailbox of this process has been read to its end. It
 * sends a pulse through each mailbox.
 */
function pulsed(rooms: Backend): { readonly backend: Backend; upToNow(): Promise<void> } {
  const waiting = new Map<string, () => void>();
  const { nodes } = rooms;
  if (!nodes) return { backend: rooms, upToNow: () => Promise.resolve() };
  const attached = new Set<string>();
  const attach: Backend['nodes']['attach'] = async (nodeId, listener) => {
    const deliver = (row: MailboxRow): void => {
      const done = row.kind === 'pulse' ? waiting.get(nodeId) : undefined;
      if (done) done();
      else listener.deliver(row);
    };
    const detach = await nodes.attach(nodeId, { ...listener, deliver });
    attached.add(nodeId);
    return () => {
      attached.delete(nodeId);
      waiting.get(nodeId)?.();
      detach();
    };
  };
  const pulse = async (nodeId: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(nodeId, resolve);
    // A node that was declared dead may not post.
    const posted = await Promise.resolve(nodes.post(nodeId, { kind: 'pulse' })).catch(() => false);
    if (posted) await promise;
    waiting.delete(nodeId);
  };
  return {
    backend: { ...rooms, nodes: { ...nodes, attach } },
    upToNow: async () => void (await Promise.all([...attached].map(pulse))),
  };
}
