/** Runs the contracts of the shares that a store counts over Redis. */
import type { ShareBounds } from '../../src/core/shares/shares.ts';
import { commandShares, type SharesBench } from './command-shares.ts';
import { historyShares } from './history-shares.ts';
import type { HistoryBounds } from './kit/bench.ts';
import { auditedBench, redisBench } from './kit/redis-bench.ts';
import { boundsOf } from './redis-contracts.ts';

async function redis(bounds: ShareBounds, limits: HistoryBounds = {}, open = auditedBench): Promise<SharesBench> {
  const bench = await open({ partitions: 1, bounds, ...boundsOf(limits) });
  return {
    ...bench,
    async used(share) {
      while ((await bench.store.act(0, 'commands-sweep', [100])) === 1);
      return (await bench.backend.sharesInUse?.())?.get(share) ?? NaN;
    },
  };
}

// The audit expects a mark for each name. These tests use up the share `marks`, and then ids of the relay have none.
commandShares('redis', (bounds) => redis(bounds, {}, redisBench), { runs: 12 });
historyShares('redis', (bounds, limits) => redis(bounds, limits), { runs: 12 });
