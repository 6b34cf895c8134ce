/** Starts a Redis Cluster of three masters. */
import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { startedAgain, startRedis, type RedisServer } from './redis.ts';

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
  /**
   * Moves the slot of a key with all its keys to the next master, as operators do it. Resolves with the places of both
   * masters. All masters must live.
   */
  moveSlotOf(key: string): Promise<{ readonly from: number; readonly to: number }>;
  /** Returns how many messages of this type each master has sent to other nodes since its start. */
  sentToNodes(type: 'publish' | 'publishshard'): Promise<readonly number[]>;
  /** Kills a master, which has a replica since then, and makes the replica the master of its slots, in its place. */
  failOver(master: number): Promise<void>;
  stop(): Promise<void>;
};

/** Starts a cluster. Resolves when every master knows the whole cluster and serves requests. */
export async function startRedisCluster(masters = 3): Promise<RedisCluster> {
  const servers = [...(await launchAll(masters))];
  const hands = servers.map(({ server }) => new Redis(server.url));
  const dead: RedisServer[] = [];
  // A test may change what a master asks for.
  for (const hand of hands) hand.on('error', () => {});
  const stop = async (): Promise<void> => {
    for (const hand of hands) hand.disconnect();
    await Promise.all([...servers.map(({ server }) => server), ...dead].map((server) => server.stop()));
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
    get urls() {
      return servers.map(({ server }) => server.url);
    },
    get masters() {
      return servers.map(({ server }) => server);
    },
    async failOver(master) {
      const [{ server, bus }, hand] = [servers[master] ?? fail(), hands[master] ?? fail()];
      const replica = await launch();
      dead.push(replica.server);
      const follower = new Redis(replica.server.url);
      follower.on('error', () => {});
      await follower.call('CLUSTER', 'MEET', '127.0.0.1', server.port, bus);
      const id = String(await hand.call('CLUSTER', 'MYID'));
      await until(() => follower.call('CLUSTER', 'REPLICATE', id).then(Boolean, () => false));
      await until(async () => (await follower.info('replication')).includes('master_link_status:up'));
      await server.kill();
      // Without a vote, which two masters cannot always hold.
      await follower.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
      await until(async () => (await follower.info('replication')).includes('role:master'));
      hand.disconnect();
      [servers[master], hands[master]] = [replica, follower];
      dead.splice(dead.indexOf(replica.server), 1, server);
      await allMeet(servers, hands, id);
    },
    async moveSlotOf(key) {
      const slot = calculateSlot(key);
      const from = await masterOf(slot, hands);
      const to = (from + 1) % hands.length;
      await moveSlot(slot, hands[from] ?? fail(), hands[to] ?? fail());
      return { from, to };
    },
    sentToNodes: (type) =>
      Promise.all(
        hands.map(async (hand) => {
          // A type that was never sent is not listed.
          const found = new RegExp(`^cluster_stats_messages_${type}_sent:(\\d+)`, 'm');
          return Number(found.exec(String(await hand.call('CLUSTER', 'INFO')))?.[1] ?? 0);
        }),
      ),
    calls: (command) => Promise.all(hands.map((hand) => callsOf(hand, command))),
    stop,
  };
}

/**
 * Makes all masters know each other, and not a dead one. Otherwise the next failover may end the only node by which one of
 * them knows the others.
 */
async function allMeet(servers: readonly Launched[], hands: readonly Redis[], deadId: string): Promise<void> {
  for (const hand of hands) {
    // It may not have known the node.
    await hand.call('CLUSTER', 'FORGET', deadId).catch(() => undefined);
    for (const { server, bus } of servers) await hand.call('CLUSTER', 'MEET', '127.0.0.1', server.port, bus);
  }
  await Promise.all(hands.map((hand) => isWhole(hand, servers.length)));
}

/** Returns the place of the master that serves a slot, as all masters see it. */
async function masterOf(slot: number, hands: readonly Redis[]): Promise<number> {
  const ids = await Promise.all(hands.map((hand) => hand.cluster('MYID')));
  const shards = (await hands[0]?.call('CLUSTER', 'SLOTS')) as readonly (readonly [number, number, SlotNode])[];
  const range = shards.find(([first, last]) => first <= slot && slot <= last);
  return ids.indexOf(range?.[2][2] ?? '');
}

/** A node in CLUSTER SLOTS. */
type SlotNode = readonly [host: string, port: number, id: string];

async function moveSlot(slot: number, source: Redis, target: Redis): Promise<void> {
  const [sourceId, targetId] = [await source.cluster('MYID'), await target.cluster('MYID')];
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(sourceId));
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(targetId));
  for (;;) {
    const [key] = await source.cluster('GETKEYSINSLOT', slot, 1);
    if (key === undefined) break;
    // One at a time, so that calls find some of their keys here and some there.
    await source.call('MIGRATE', '127.0.0.1', target.options.port ?? 0, key, 0, 5_000);
  }
  for (const hand of [target, source]) await hand.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(targetId));
}

type Launched = { readonly server: RedisServer; readonly bus: number };

function launch(): Promise<Launched> {
  return startedAgain(async () => {
    // The default bus port is 10,000 above the client port, and may exceed the highest port number.
    const bus = await freePort();
    const own = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-announce-ip', '127.0.0.1'];
    return { server: await startRedis([...own, '--save', '', '--appendonly', 'no']), bus };
  });
}

/** Starts so many servers, or none. */
async function launchAll(count: number): Promise<readonly Launched[]> {
  const started = await Promise.allSettled(Array.from({ length: count }, launch));
  const servers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = started.find((one) => one.status === 'rejected');
  if (!failed) return servers;
  await Promise.all(servers.map(({ server }) => server.stop()));
  throw failed.reason;
}

/** Returns the first and last slot of range `i` of `of` ranges of the same length. */
function range(i: number, of: number): readonly [number, number] {
  return [Math.ceil((i * SLOTS) / of), Math.ceil(((i + 1) * SLOTS) / of) - 1];
}

async function isWhole(hand: Redis, masters: number): Promise<void> {
  await until(async () => {
    const info = String(await hand.call('CLUSTER', 'INFO'));
    return info.includes('cluster_state:ok') && info.includes(`cluster_size:${masters}\r`);
  });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((done) => setTimeout(done, 20));
}

function fail(): never {
  throw new Error('there is no such master');
}

async function callsOf(hand: Redis, command: string): Promise<number> {
  const found = new RegExp(`^cmdstat_${command.toLowerCase()}:calls=(\\d+)`, 'm').exec(await hand.info('commandstats'));
  return Number(found?.[1] ?? 0);
}
