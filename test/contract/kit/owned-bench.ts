/**
 * The bench of contract tests over a routed backend: several relays own partitions of memory, and their messages are
 * texts that arrive late, out of order and twice.
 */
import type { Backend } from '../../../src/core/backend.ts';
import type { MemoryOptions } from '../../../src/backends/memory/backend.ts';
import { takeTurns } from '../../../src/backends/owned/merging.ts';
import { FakeClock } from '../../kit/clock.ts';
import type { Bench } from './bench.ts';
import { Network } from './owned-network.ts';
import { Relays } from './owned-relays.ts';

/** The relay whose backend is tested owns some of the partitions, or none. */
export type Role = 'owner' | 'foreign';

const PARTITIONS = 5;

type BenchOptions = { readonly memory?: Partial<MemoryOptions>; readonly partitions?: number };

/** Opens three relays and returns the bench of the first one. */
export async function ownedBench(role: Role, { memory, partitions = PARTITIONS }: BenchOptions = {}): Promise<Bench> {
  const clock = new FakeClock();
  // Messages are late and never lost, so no time has to elapse for a repeat.
  const requestClock = new FakeClock();
  const network = new Network(7);
  const relays = new Relays({
    ...{ clock, requestClock, partitions, ...(memory && { memory }) },
    join: (process) => network.join(process),
    mail: (nodeId, deliver) => network.inOrder(nodeId, deliver),
  });
  const backends = ['a', 'b', 'c'].map((process) => relays.open(process));
  relays.giveAll(role === 'owner' ? ['a', 'b', 'c'] : ['b', 'c']);
  clock.alsoAwaits(() => network.quiet());
  return {
    backend: together(backends),
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    async close() {
      for (const backend of backends) await backend.close();
    },
  };
}

/**
 * Returns the first backend. Each relay finds only in its own partitions what is due and what its metrics show, so those
 * of all relays are joined: together they find everything.
 */
export function together(backends: readonly Backend[]): Backend {
  const [first] = backends;
  if (!first) throw new Error('no backend');
  return {
    ...first,
    nodes: {
      ...first.nodes,
      due: async (limit) => takeTurns(await Promise.all(backends.map(({ nodes }) => nodes.due(limit))), limit),
    },
    inspector: {
      ...first.inspector,
      reservedScopes: async () =>
        (await Promise.all(backends.map(({ inspector }) => inspector.reservedScopes()))).flat(),
    },
  };
}
