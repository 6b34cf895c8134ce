/** Runs the contracts of the stores over partitions whose logs are in Redis: as their owner, and as another process. */
import { storeContracts } from './all-stores.ts';
import type { HistoryBounds } from './kit/bench.ts';
import { ownedRedisBench } from './kit/owned-redis-bench.ts';

// There are fewer random runs than in memory alone, which decides the same.
const RUNS = 5;

for (const role of ['owner', 'foreign'] as const) {
  const name = role === 'owner' ? 'partitions of this process in Redis' : 'partitions of another process in Redis';
  const open = (history: HistoryBounds = {}) => ownedRedisBench(role, { memory: { history } });
  storeContracts(name, open, RUNS);
}
