/**
 * Carries out the faults in which the relays' data move to other servers: failovers, and slots of a cluster that move.
 */
import { Redis } from 'ioredis';
import { pick, seeded } from '../../lib/random.ts';
import { OWNED_KINDS } from '../../../src/backends/owned/keys.ts';
import { type Act, given } from './act.ts';
import { restart } from './relay-acts.ts';

/** The timeouts for a handover to begin by itself, and after the restart of a relay, in milliseconds. */
const MOVES_MS = 3_000;
const MOVES_AGAIN_MS = 30_000;
/**
 * The timeout for a handover from its first note to its last one, in milliseconds. The command WAIT takes half a second
 * of it.
 */
const GIVEN_MS = 5_000;
/** The kind of the keys that name the owner of a partition. */
const FENCE = 'fence' satisfies keyof typeof OWNED_KINDS;

export const ACTS_OF_TOPOLOGY = {
  async 'cluster-failover'(world, { id }) {
    const cluster = given(world.proxied?.cluster);
    await cluster.failOver(id % cluster.masters.length);
  },
  async 'slots-move'(world, { id }) {
    const cluster = given(world.proxied?.cluster);
    const found = await Promise.all(cluster.urls.map(fencesOf));
    await cluster.moveSlotOf(pick(seeded(id), found.flat().toSorted()));
  },
  async 'handover-failover'(world, { target }) {
    const [pair, watch] = [given(world.pair), given(world.owners)];
    const begins = (withinMs: number) => watch.next(({ step }) => step === 'follow', withinMs);
    let moment = await begins(MOVES_MS);
    if (!moment) {
      const relay = given(world.relays[target % world.relays.length]);
      await relay.proc.kill();
      const [begun] = await Promise.all([begins(MOVES_AGAIN_MS), restart(relay)]);
      moment = begun;
    }
    if (!moment) return 'no partition moved';
    // From here on, the replica receives nothing, so the moved fence is only in the master.
    pair.hold();
    const isGiven = (await watch.next(({ step }) => step === 'yours', GIVEN_MS)) !== null;
    for (const proxy of world.redisProxies) {
      proxy.set({ kind: 'refuse' });
      proxy.reset();
    }
    await pair.failOver();
    for (const proxy of world.redisProxies) proxy.set({ kind: 'pass' });
    return isGiven ? undefined : 'the handover that began was not made';
  },
} as const satisfies Record<string, Act>;

async function fencesOf(url: string): Promise<readonly string[]> {
  const redis = new Redis(url);
  try {
    return await redis.keys(`*:${FENCE}:*`);
  } finally {
    redis.disconnect();
  }
}
