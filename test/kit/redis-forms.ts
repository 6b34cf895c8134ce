/** Starts Redis in each form that a relay can use, with a proxy in front of every server that it connects to. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startProxy, type Proxy, type Targets } from '../../faults/outages/processes/proxy.ts';
import type { SentCommand } from '../../faults/outages/processes/command-cut.ts';
import { CERTIFICATE } from './certificates.ts';
import { startRedisCluster, type RedisCluster } from './redis-cluster.ts';
import { startSentinel } from './redis-sentinel.ts';
import { startRedis, type RedisServer } from './redis.ts';

/** `tls`: a single Redis behind TLS, with the certificate of certificates.ts. */
export const REDIS_FORMS = ['single', 'tls', 'sentinel', 'cluster'] as const;
export type RedisForm = (typeof REDIS_FORMS)[number];

export type ProxiedRedis = AsyncDisposable & {
  /** The address for the relay's settings. All its connections go through the proxies. */
  readonly url: string;
  /** The servers that hold data. */
  readonly servers: readonly RedisServer[];
  readonly proxies: readonly Proxy[];
  /** The cluster; null in other forms. Its servers may be replaced. */
  readonly cluster: RedisCluster | null;
  /** A file with the certificate that a relay must trust. */
  readonly authority: string;
  /** Calls `breakAt` of every proxy. */
  breakAt(breaksAt: ((command: SentCommand) => boolean) | null): void;
  /** Breaks all connections. */
  reset(): void;
};

/** The arguments of a Redis that persists nothing. */
const NO_DISK = ['--save', '', '--appendonly', 'no'];

/**
 * Starts the servers of a form. `args`: additional arguments of the servers that hold data, in all forms but `cluster`.
 * `counts`: whether the proxies count commands, as `breakAt` needs it. No replica can follow through such a proxy.
 */
export async function startRedisForm(
  form: RedisForm,
  args: readonly string[] = NO_DISK,
  counts = true,
): Promise<ProxiedRedis> {
  await using ends = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'callboard-form-'));
  ends.defer(() => rmSync(folder, { recursive: true, force: true }));
  const authority = join(folder, 'authority.pem');
  writeFileSync(authority, CERTIFICATE.cert);
  const proxies: Proxy[] = [];
  const proxy = async (targets: Targets, tls = false): Promise<Proxy> => {
    const started = ends.use(await startProxy(targets, { counts, ...(tls && { tls: CERTIFICATE }) }));
    proxies.push(started);
    return started;
  };
  const parts = await START[form]({ ends, proxy, args });
  const all = ends.move();
  return {
    ...parts,
    proxies,
    authority,
    breakAt: (breaksAt) => proxies.forEach((one) => one.breakAt(breaksAt)),
    reset: () => proxies.forEach((one) => one.reset()),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

type Starting = {
  readonly ends: AsyncDisposableStack;
  readonly args: readonly string[];
  readonly proxy: (targets: Targets, tls?: boolean) => Promise<Proxy>;
};
type Started = Pick<ProxiedRedis, 'url' | 'servers' | 'cluster'>;

const START: Readonly<Record<RedisForm, (starting: Starting) => Promise<Started>>> = {
  async single({ ends, proxy, args }) {
    const server = ends.adopt(await startRedis(args), (one) => one.stop());
    const { port } = await proxy(() => [server.port]);
    return { url: `redis://127.0.0.1:${port}`, servers: [server], cluster: null };
  },
  async tls({ ends, proxy, args }) {
    const server = ends.adopt(await startRedis(args), (one) => one.stop());
    const { port } = await proxy(() => [server.port], true);
    return { url: `rediss://localhost:${port}`, servers: [server], cluster: null };
  },
  async sentinel({ ends, proxy, args }) {
    const server = ends.adopt(await startRedis(args), (one) => one.stop());
    const master = await proxy(() => [server.port]);
    const sentinel = ends.adopt(await startSentinel(master.port), (one) => one.stop());
    const { port } = await proxy(() => [sentinel.port]);
    return { url: `redis+sentinel://127.0.0.1:${port}/${sentinel.name}`, servers: [server], cluster: null };
  },
  async cluster({ ends, proxy }) {
    const cluster = ends.adopt(await startRedisCluster(3), (one) => one.stop());
    const ports: number[] = [];
    for (const { port } of cluster.masters) ports.push((await proxy(() => [port])).port);
    // Each master announces the port of its proxy, so clients reach it there whichever master they ask.
    await announce(cluster.masters, ports);
    return {
      url: `redis+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(',')}`,
      servers: cluster.masters,
      cluster,
    };
  },
};

async function announce(masters: readonly RedisServer[], ports: readonly number[]): Promise<void> {
  const hands = masters.map(({ url }) => new Redis(url));
  try {
    await Promise.all(hands.map((hand, i) => hand.call('CONFIG', 'SET', 'cluster-announce-port', ports[i] ?? 0)));
    for (const hand of hands)
      while (!ports.every(await knownTo(hand))) await new Promise((done) => setTimeout(done, 20));
  } finally {
    for (const hand of hands) hand.disconnect();
  }
}

async function knownTo(hand: Redis): Promise<(port: number) => boolean> {
  const nodes = String(await hand.call('CLUSTER', 'NODES'));
  return (port) => nodes.includes(`:${port}@`);
}
