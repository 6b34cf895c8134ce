/** Finds a user of a relay that owns partitions, so that a benchmark knows at which relay its calls are decided. */
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { readFence } from '../../src/backends/owned/fence.ts';
import { createPlacement } from '../../src/backends/owned/placement.ts';

/** The time that partitions may take to come to rest after the last relay has started. */
const SETTLE_TRIES = 300;
const TRY_MS = 100;
/** A move of a partition is a second or less from the next one. */
const QUIET_TRIES = 30;
const CANDIDATES = 1000;

/**
 * Waits until no partition has moved for three seconds, and returns a user whose partition the first relay owns.
 * `relays`: the ids of all relays. Throws if partitions still move after 30 seconds.
 */
export async function userOwnedBy(redisUrl: string, relays: readonly string[]): Promise<string> {
  const [user = ''] = usersOwnedBy(await partitionsAtRest(redisUrl, relays.length), relays[0] ?? '', 1);
  return user;
}

/**
 * Waits until this number of relays own partitions and none has moved for three seconds. Returns the process that owns
 * each partition. Throws if partitions still move after 30 seconds.
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

/** Returns the process that owns each partition. */
async function ownersOf(redis: Redis): Promise<ReadonlyMap<number, string>> {
  const keys = (await redis.keys('*:fence:*')).toSorted();
  const texts = keys.length === 0 ? [] : await redis.mget(keys);
  return new Map(
    keys.map((key, i) => [Number(key.slice(key.lastIndexOf(':') + 1)), readFence(texts[i] ?? null)?.process ?? '']),
  );
}

/** Returns users that a relay owns, each in a partition of its own. Throws if there are not as many. */
export function usersOwnedBy(owners: ReadonlyMap<number, string>, relay: string, count: number): readonly string[] {
  // One partition has no users: it has the chain of the audit.
  const placement = createPlacement(owners.size - 1, (userId) => userId);
  const users = new Map<number, string>();
  for (let i = 0; i < CANDIDATES && users.size < count; i++) {
    const partition = placement.ofUser(`u${i}`);
    if (!users.has(partition) && owners.get(partition)?.startsWith(relay)) users.set(partition, `u${i}`);
  }
  if (users.size < count) throw new Error(`${relay} owns ${users.size} partitions with users`);
  return [...users.values()];
}
