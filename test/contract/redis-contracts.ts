/** Defines the contract tests of the Redis stores that keep connections, commands, history and sites, for any Redis. */
import { commandContract } from './commands.ts';
import type { SharesBench } from './command-shares.ts';
import { commandModel } from './commands-model.ts';
import { connectionContract } from './connections.ts';
import { contextContract } from './contexts.ts';
import { dedupContract } from './dedup.ts';
import { historyContract } from './history.ts';
import { inspectorContract } from './inspector.ts';
import type { HistoryBounds } from './kit/bench.ts';
import type { RedisBench, RedisBenchOptions } from './kit/redis-bench.ts';
import { nodeContract } from './nodes.ts';
import { sessionContract } from './sessions.ts';
import { siteContract } from './sites.ts';
import { waiterContract } from './waiters.ts';

type MakeRedisBench = (options?: RedisBenchOptions) => Promise<RedisBench>;

/**
 * Defines the contract tests of the Redis stores that keep connections, commands, history and sites. They have fewer
 * random runs than the tests of the single stores.
 */
export function redisContracts(name: string, make: MakeRedisBench): void {
  connectionContract(name, () => make(), { runs: 10, order: 'bytes' });
  contextContract(name, () => make(), { runs: 10 });
  commandContract(name, () => make());
  commandModel(name, () => make(), 15);
  waiterContract(name, () => make());
  nodeContract(name, () => make());
  inspectorContract(name, () => make());
  historyContract(name, (bounds) => make(boundsOf(bounds)), { runs: 8 });
  dedupContract(name, () => make(), { runs: 8 });
  siteContract(name, () => make());
  sessionContract(name, () => make());
}

/** Opens a bench with one partition, so that the totals of shares are not divided. */
export async function sharesBench(make: MakeRedisBench, options: RedisBenchOptions): Promise<SharesBench> {
  const bench = await make({ partitions: 1, ...options });
  return {
    ...bench,
    async used(share) {
      await bench.sweep();
      return (await bench.backend.sharesInUse?.())?.get(share) ?? NaN;
    },
  };
}

/** Returns the limits that are set. An option that is present but undefined would replace its default. */
export function boundsOf(bounds: HistoryBounds = {}): RedisBenchOptions {
  return Object.fromEntries(Object.entries(bounds).filter(([, value]) => value !== undefined));
}
