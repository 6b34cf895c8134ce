/** Carries out the faults of Redis: kills, power cuts, pauses, failovers and the like. */
import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { RedisServer } from '../../../test/kit/redis.ts';
import type { Act } from './act.ts';
import { given, sleep, until } from './waiting.ts';

/** The time during which Redis accepts writes that are then lost, in milliseconds. */
const LOST_WRITES_MS = 1_000;
/** The time that a new replica may take to copy all data of its master, in milliseconds. */
const REPLICA_FOLLOWS_MS = 60_000;

export const ACTS_OF_REDIS = {
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
    // Cuts the log as a power cut does: the writes of the last second never reached the disk, although they were
    // confirmed.
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
    // A failover needs a replica, so this waits until the replica follows the new master.
    if (!(await until(() => follows(master), REPLICA_FOLLOWS_MS)))
      throw new Error('the old master does not follow the new one');
  },
} as const satisfies Record<string, Act>;

function endOfLog(folder: string): { readonly path: string; readonly bytes: number } {
  const logs = join(folder, 'appendonlydir');
  const names = readdirSync(logs).filter((name) => name.endsWith('.incr.aof'));
  const path = join(logs, given(names.sort().at(-1)));
  return { path, bytes: statSync(path).size };
}

async function follows({ url }: RedisServer): Promise<boolean> {
  const hand = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  hand.on('error', () => {});
  try {
    await hand.connect();
    return (await hand.info('replication')).includes('master_link_status:up');
  } finally {
    hand.disconnect();
  }
}
