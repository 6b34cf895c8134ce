import { Redis } from 'ioredis';
import { freePort, startRedis, type RedisServer } from './redis.ts';

const SLOTS = 16_384;

/** A Redis Cluster of masters without replicas, on free ports of loopback; each holds an equal range of the slots, in order. */
export type RedisCluster = {
  /** As the settings take it. */
  readonly address: string;
  /** One address a master, in the order of their ranges. */
  readonly urls: readonly string[];
  readonly masters: readonly RedisServer[];
  /** What each master has run of a command since it started, in the order of their ranges. */
  calls(command: string): Promise<readonly number[]>;
  stop(): Promise<void>;
};

/** Resolves once every master sees the whole cluster and serves it. */
export async function startRedisCluster(masters = 3): Promise<RedisCluster> {
  const servers = await Promise.all(Array.from({ length: masters }, launch));
  const hands = servers.map(({ server }) => new Redis(server.url));
  const stop = async (): Promise<void> => {
    for (const hand of hands) hand.disconnect();
    await Promise.all(servers.map(({ server }) => server.stop()));
  };
  try {
    await Promise.all(hands.map((hand, i) => hand.call('CLUSTER', 'ADDSLOTSRANGE', ...range(i, masters))));
    // Nodes that meet with one epoch would have to agree on another first.
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
  // Its usual place, 10,000 above, may lie beyond the last port.
  const bus = await freePort();
  const own = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-announce-ip', '127.0.0.1'];
  return { server: await startRedis([...own, '--save', '', '--appendonly', 'no']), bus };
}

/** The first and last slot of the i-th of so many equal ranges. */
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
