/** Starts a Redis Cluster of three masters. */
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { startRedis, type RedisServer } from './redis.ts';

const SLOTS = 16_384;

/**
 * A Redis Cluster of masters without replicas, on free loopback ports. Each master has a range of slots of the same
 * length, in order.
 */
export type RedisCluster = {
  /** The address for the relay's settings. */
  readonly address: string;
  /** The address of each master, in the order of their ranges. */
  readonly urls: readonly string[];
  readonly masters: readonly RedisServer[];
  /** Returns how many times each master has run a command since its start, in the order of the masters' ranges. */
  calls(command: string): Promise<readonly number[]>;
  stop(): Promise<void>;
};

/** Starts a cluster. Resolves when every master knows the whole cluster and serves requests. */
export async function startRedisCluster(masters = 3): Promise<RedisCluster> {
  const servers = await Promise.all(Array.from({ length: masters }, launch));
  const hands = servers.map(({ server }) => new Redis(server.url));
  const stop = async (): Promise<void> => {
    for (const hand of hands) hand.disconnect();
    await Promise.all(servers.map(({ server }) => server.stop()));
  };
  try {
    await Promise.all(hands.map((hand, i) => hand.call('CLUSTER', 'ADDSLOTSRANGE', ...range(i, masters))));
    // Each node gets another epoch. Nodes with equal epochs would first have to resolve that conflict.
    await Promise.all(hands.map((hand, i) => hand.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)));
    for (const { server, bus } of servers.slice(1))
      await hands[0]?.call('CLUSTER', 'MEET', '127.0.0.1', server.port, bus);
    await Promise.all(hands.map((hand) => isWhole(hand, masters)));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    address: `redis+cluster://${servers.map(({ server }) => `127.0.0.1:${server.port}`).join(',')}`,
    urls: servers.map(({ server }) => server.url),
    masters: servers.map(({ server }) => server),
    calls: (command) => Promise.all(hands.map((hand) => callsOf(hand, command))),
    stop,
  };
}

async function launch(): Promise<{ readonly server: RedisServer; readonly bus: number }> {
  // The default bus port is 10,000 above the client port, and may exceed the highest port number.
  const bus = await freePort();
  const own = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-announce-ip', '127.0.0.1'];
  return { server: await startRedis([...own, '--save', '', '--appendonly', 'no']), bus };
}

/** Returns the first and last slot of range `i` of `of` ranges of the same length. */
function range(i: number, of: number): readonly [number, number] {
  return [Math.ceil((i * SLOTS) / of), Math.ceil(((i + 1) * SLOTS) / of) - 1];
}

async function isWhole(hand: Redis, masters: number): Promise<void> {
  for (;;) {
    const info = String(await hand.call('CLUSTER', 'INFO'));
    if (info.includes('cluster_state:ok') && info.includes(`cluster_size:${masters}\r`)) return;
    await new Promise((done) => setTimeout(done, 20));
  }
}

async function callsOf(hand: Redis, command: string): Promise<number> {
  const found = new RegExp(`^cmdstat_${command.toLowerCase()}:calls=(\\d+)`, 'm').exec(await hand.info('commandstats'));
  return Number(found?.[1] ?? 0);
}
