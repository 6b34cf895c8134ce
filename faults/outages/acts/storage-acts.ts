/**
 * Carries out the faults of the store: kills, power cuts, pauses and failovers of Redis, and damaged or full folders.
 */
import {
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { RedisServer } from '../../../test/kit/redis.ts';
import { between, pick, seeded } from '../../lib/random.ts';
import { fillerOf } from '../log/events.ts';
import { NOT_MOUNTED, type SmallDisk } from '../processes/small-disk.ts';
import type { World } from '../world.ts';
import { type Act, given, sleep, until } from './act.ts';

/** How long Redis accepts writes that are then lost, in milliseconds. */
const LOST_WRITES_MS = 1_000;
/** The timeout for a new replica to copy all data of its master, in milliseconds. */
const REPLICA_FOLLOWS_MS = 60_000;

/** The purposes of a relay's connections to Redis. */
const PURPOSES = ['commands', 'mailbox', 'bus'] as const;
/** The commands with which connections subscribe. Relays that own partitions use the second one in a cluster. */
const SUBSCRIBE = ['SUBSCRIBE', 'SSUBSCRIBE'] as const;
/** How often the next connection of each purpose breaks. */
const BREAKS = 2;
/** The timeout for a connection to be made again and to reach the command at which it breaks, in milliseconds. */
const REACHED_MS = 3_000;
/** The time between two breaks of `redis-flap` and two kills of `redis-kills`, in milliseconds. */
const FLAP_MS = 200;
const KILLS_MS = 1_000;

export const ACTS_OF_REDIS = {
  async 'redis-break'(world, { id }) {
    const redis = given(world.proxied);
    for (const place of id === 1 ? SUBSCRIBE : PURPOSES) {
      let left = BREAKS;
      redis.breakAt(({ connection, name, number }) => {
        if (left === 0) return false;
        const reached = id === 1 ? name === place : number === id - 1 && connection.endsWith(`callboard-${place}`);
        if (reached) left--;
        return reached;
      });
      redis.reset();
      // Not awaited without a limit, because a connection may send fewer commands than this.
      await until(async () => left === 0, REACHED_MS, 20);
      redis.breakAt(null);
    }
  },
  async 'redis-flap'(world, { target, holdMs }) {
    const proxy = given(world.redisProxies[target % world.redisProxies.length]);
    for (let at = 0; at < holdMs; at += FLAP_MS) {
      proxy.reset();
      await sleep(FLAP_MS);
    }
  },
  async 'redis-kills'(world, { holdMs }) {
    const redis = given(world.redis);
    const end = performance.now() + holdMs;
    for (let next = performance.now(); next < end; next += KILLS_MS) {
      await sleep(next - performance.now());
      await redis.kill();
      await redis.restart();
    }
  },
  async 'mail-cut'(world) {
    const hand = new Redis(given(world.redis).url);
    await hand.call('CLIENT', 'KILL', 'TYPE', 'PUBSUB');
    hand.disconnect();
  },
  async 'redis-kill'(world) {
    const redis = given(world.redis);
    await redis.kill();
    await redis.restart();
  },
  async 'redis-cut'(world) {
    const redis = given(world.redis);
    const end = endOfLog(redis.folder);
    await sleep(LOST_WRITES_MS);
    await redis.kill();
    // Cuts the end of the log off, as in a power cut: the writes of the last second never reached the disk, although
    // they were confirmed.
    truncateSync(end.path, end.bytes);
    await redis.restart();
  },
  async 'redis-pause'(world, { holdMs }) {
    const { process } = given(world.redis);
    process.kill('SIGSTOP');
    await sleep(holdMs);
    process.kill('SIGCONT');
  },
  async 'redis-failover'(world) {
    const sentinel = given(world.sentinel);
    const from = await sentinel.master();
    const master = given(sentinel.servers.find(({ port }) => port === from));
    await master.kill();
    await sentinel.movedFrom(from);
    await master.restart();
    // A failover needs a replica. On a busy machine, the sentinel may have made the old master the master again in the
    // meantime.
    if (await until(async () => (await Promise.all(sentinel.servers.map(follows))).includes(true), REPLICA_FOLLOWS_MS))
      return;
    const states = await Promise.all(sentinel.servers.map(replicationOf));
    throw new Error(`no server follows the other one: ${states.join('\n')}`);
  },
} as const satisfies Record<string, Act>;

function endOfLog(folder: string): { readonly path: string; readonly bytes: number } {
  const logs = join(folder, 'appendonlydir');
  const names = readdirSync(logs).filter((name) => name.endsWith('.incr.aof'));
  const path = join(logs, given(names.sort().at(-1)));
  return { path, bytes: statSync(path).size };
}

async function follows(server: RedisServer): Promise<boolean> {
  return (await replicationOf(server)).includes('master_link_status:up');
}

async function replicationOf({ url }: RedisServer): Promise<string> {
  const hand = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  hand.on('error', () => {});
  try {
    await hand.connect();
    return await hand.info('replication');
  } finally {
    hand.disconnect();
  }
}

// The faults of the folder of large payloads (files that are removed, damaged or replaced by symbolic links, and a
// folder that cannot be written), and of a data directory whose disk is full.

/** The number of files that are affected by a fault of single files. */
const FILES = 20;

export const ACTS_OF_SPILL = {
  async 'spill-remove'(world, { id }) {
    for (const path of someOf(world, id)) unlinkSync(path);
  },
  async 'spill-flip'(world, { id }) {
    const random = seeded(id);
    for (const path of someOf(world, id)) {
      const bytes = readFileSync(path);
      const at = between(random, 0, bytes.length - 1);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << between(random, 0, 7));
      writeAside(path, bytes);
    }
  },
  /**
   * Replaces payload files by links. A relay that follows such a link reads a file outside the folder, which has the
   * expected size but the data of another user.
   */
  async 'spill-link'(world, { id }) {
    for (const path of someOf(world, id)) {
      const target = join(world.folder, `planted-${id}-${path.slice(-32)}`);
      writeFileSync(target, fillerOf({ user: 'nobody', command: 'planted' }, statSync(path).size));
      unlinkSync(path);
      symlinkSync(target, path);
    }
  },
  async 'spill-shut'(world, { holdMs }) {
    const spill = given(world.spill);
    if (!spill.setWritable(false)) return `${tmpdir()} can be made read-only neither by mounting nor by rights`;
    await sleep(holdMs);
    if (!spill.setWritable(true)) throw new Error('the directory stays read-only');
    return undefined;
  },
  'spill-full': ({ spill }, { holdMs }) => fillFor(given(spill), holdMs),
  'data-full': ({ data }, { holdMs }) => fillFor(given(data?.disk), holdMs),
} as const satisfies Record<string, Act>;

async function fillFor(disk: SmallDisk, holdMs: number): Promise<string | undefined> {
  if (!disk.mounted) return NOT_MOUNTED;
  if (!disk.setFull(true)) throw new Error('the file system cannot be made full');
  await sleep(holdMs);
  if (!disk.setFull(false)) throw new Error('the file system stays full');
  return undefined;
}

function someOf({ spill }: World, seed: number): readonly string[] {
  const random = seeded(seed);
  const files = given(spill).files();
  return files.length === 0 ? [] : [...new Set(Array.from({ length: FILES }, () => pick(random, files)))];
}

function writeAside(path: string, bytes: Buffer): void {
  writeFileSync(`${path}.aside`, bytes);
  renameSync(`${path}.aside`, path);
}
