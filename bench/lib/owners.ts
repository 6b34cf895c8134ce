/** Finds users whose partitions a relay owns, so that a benchmark knows which relay decides their calls. */
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { readFence } from '../../src/backends/owned/fence.ts';
import { createPlacement } from '../../src/backends/owned/placement.ts';

/**
 * How often the owners of partitions are read until they are stable, and the time between two reads, in milliseconds.
 */
const SETTLE_TRIES = 300;
const TRY_MS = 100;
/**
 * How many reads without a change count as stable. Moves of partitions are at most a second apart, and this number of
 * reads takes three seconds.
 */
const QUIET_TRIES = 30;
const CANDIDATES = 1000;

/**
 * Returns a user whose partition the first relay owns, after no partition has moved for three seconds. `relays`: the
 * ids of all relays. Throws if partitions still move after 30 seconds.
 */
export async function userOwnedBy(redisUrl: string, relays: readonly string[]): Promise<string> {
  const [user = ''] = usersOwnedBy(await partitionsAtRest(redisUrl, relays.length), relays[0] ?? '', 1);
  return user;
}

/**
 * Returns the process that owns each partition, after this number of relays own partitions and no partition has moved
 * for three seconds. Throws if partitions still move after 30 seconds.
 */
export async function partitionsAtRest(redisUrl: string, relays: number): Promise<ReadonlyMap<number, string>> {
  const redis = new Redis(redisUrl);
  try {
    let [before, quiet] = ['', 0];
    for (let i = 0; i < SETTLE_TRIES; i++) {
      const owners = await ownersOf(redis);
      const now = JSON.stringify([...owners]);
      quiet = now === before ? quiet + 1 : 0;
      before = now;
      if (quiet >= QUIET_TRIES && new Set(owners.values()).size === relays) return owners;
      await wait(TRY_MS);
    }
    throw new Error('partitions did not come to rest');
  } finally {
    redis.disconnect();
  }
}

/** Reads which process owns each partition now. */
async function ownersOf(redis: Redis): Promise<ReadonlyMap<number, string>> {
  const keys = (await redis.keys('*:fence:*')).toSorted();
  const texts = keys.length === 0 ? [] : await redis.mget(keys);
  return new Map(
    keys.map((key, i) => [Number(key.slice(key.lastIndexOf(':') + 1)), readFence(texts[i] ?? null)?.process ?? '']),
  );
}

/** Returns users whose partitions a relay owns, each in a different partition. Throws if there are not as many. */
export function usersOwnedBy(owners: ReadonlyMap<number, string>, relay: string, count: number): readonly string[] {
  // One partition has no users, because it has the audit chain.
  const placement = createPlacement(owners.size - 1, (userId) => userId);
  const users = new Map<number, string>();
  for (let i = 0; i < CANDIDATES && users.size < count; i++) {
    const partition = placement.ofUser(`u${i}`);
    if (!users.has(partition) && owners.get(partition)?.startsWith(relay)) users.set(partition, `u${i}`);
  }
  if (users.size < count) throw new Error(`${relay} owns ${users.size} partitions with users`);
  return [...users.values()];
}
