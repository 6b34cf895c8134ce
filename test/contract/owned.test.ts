/**
 * Runs the contracts of the stores over partitions that several relays own, except those of delivery: as a relay that
 * owns some of them, and as one that owns none.
 */
import type { ShareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { storeContracts } from './all-stores.ts';
import { commandShares, type SharesBench } from './command-shares.ts';
import { dedupShares } from './dedup.ts';
import { historyShares } from './history-shares.ts';
import type { HistoryBounds } from './kit/bench.ts';
import { ownedBench } from './kit/owned-bench.ts';

// There are fewer random runs than in memory alone, which decides the same.
const RUNS = 25;

for (const role of ['owner', 'foreign'] as const) {
  const name = role === 'owner' ? 'partitions of three relays' : 'partitions of other relays';
  const open = (history: HistoryBounds = {}) => ownedBench(role, { memory: { history } });
  storeContracts(name, open, RUNS);
}

/**
 * Opens a bench with one partition: a partition that needs room drops what is its own, so only there is it what all users
 * together hold most of.
 */
async function withShares(bounds: ShareBounds, limits: HistoryBounds = {}): Promise<SharesBench> {
  const shares = createShares(bounds);
  const history = { ...limits, bytes: bounds.history_bytes.total ?? Infinity };
  const bench = await ownedBench('foreign', { memory: { shares, history }, partitions: 1 });
  return {
    ...bench,
    async used(share) {
      // A read drops what has expired.
      await bench.backend.commands.get([{ userId: 'nobody', clientId: 'tab', commandId: 'c' }]);
      return shares.used(share);
    },
  };
}

const shared = 'a partition of another relay';
dedupShares(shared, withShares);
commandShares(shared, (bounds) => withShares(bounds), { runs: 20 });
historyShares(shared, withShares, { runs: 15 });
